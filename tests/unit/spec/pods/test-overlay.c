/* SPDX-License-Identifier: MIT */
/* The overlay of pods: a table of pods, overlays and results, and what is refused at which path. */
#include <errno.h>

#include "spec/pods/overlay.h"
#include "tests/unit/unit.h"

struct row {
	const char *spec, *overlay, *result; /* JSON of spec in all three */
};

static const struct row table[] = {
	{"{}", "{}", "{}"},
	{"{'a':1}", "{'b':2}", "{'a':1,'b':2}"},
	{"{'a':1}", "{'a':'x'}", "{'a':'x'}"},
	{"{'a':1}", "{'a':null}", "{}"},
	{"{'m':{'a':1}}", "{'m':{'b':{'c':2}}}", "{'m':{'a':1,'b':{'c':2}}}"},
	{"{'l':[1]}", "{'l':[2,3]}", "{'l':[1,2,3]}"},
	{"{}", "{'l':[2]}", "{'l':[2]}"},
	{"{'l':[1]}", "{'__put__:l':[2]}", "{'l':[2]}"},
	{"{'l':[1]}", "{'__put__:l':{'a':1}}", "{'l':{'a':1}}"},
	{"{'l':[1],'a':1}", "{'__del__:l':null}", "{'a':1}"},
	{"{'a':1}", "{'__del__:l':null}", "{'a':1}"},
	{"{}", "{'m':{'__put__:x':1}}", "{'m':{'x':1}}"},
	{"{'c':[{'name':'a','v':1},{'name':'b','v':1}]}",
	 "{'__join__:c:name':[{'name':'b','v':2,'w':{'x':1}},{'name':'c'}]}",
	 "{'c':[{'name':'a','v':1},{'name':'b','v':2,'w':{'x':1}},{'name':'c'}]}"},
	{"{'c':[{'name':'a'}]}", "{'__join__:c:name':[{'v':1}]}", "{'c':[{'name':'a'},{'v':1}]}"},
	{"{}", "{'__join__:c:name':[{'v':1}]}", "{'c':[{'v':1}]}"},
};

static const struct {
	const char *spec, *overlay, *path, *text;
} refused[] = {
	{"{'l':[1]}", "{'l':1}", "at.spec.l",
	 "must be a list, as in the pod, but is a single value"},
	{"{'l':[1]}", "{'l':null}", "at.spec.l", "must be a list, as in the pod, but is null"},
	{"{'l':{'a':1}}", "{'l':{'a':{'b':1}}}", "at.spec.l.a",
	 "must be a single value, as in the pod, but is a map"},
	{"{'l':{}}", "{'__join__:l:name':[]}", "at.spec[\"__join__:l:name\"]",
	 "this value and the value in the pod must both be lists of maps"},
	{"{}", "{'__join__:l:name':{}}", "at.spec[\"__join__:l:name\"]",
	 "this value and the value in the pod must both be lists of maps"},
	{"{}", "{'__join__:l':[]}", "at.spec[\"__join__:l\"]", "must be __join__:FIELD:KEY"},
};

/* Parse JSON in which ' replaces ". */
static struct json_object *parse(const char *text)
{
	char *json cleanup_free = strdup(text);
	struct json_object *ret;

	assert_non_null(json);
	for (char *p = json; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	ret = json_tokener_parse(json);
	assert_non_null(ret);
	return ret;
}

static struct json_object *pod_of(const char *spec)
{
	struct json_object *ret = parse("{'metadata':{'annotations':{'a':'1'}}}");

	json_object_object_add(ret, "spec", parse(spec));
	return ret;
}

static struct json_object *overlay_of(const char *spec)
{
	struct json_object *ret = json_object_new_object();

	json_object_object_add(ret, "spec", parse(spec));
	return ret;
}

static void test_merge(void **state)
{
	for (size_t i = 0; i < array_size(table); i++) {
		struct json_object *pod = pod_of(table[i].spec), *same = pod_of(table[i].spec);
		struct json_object *overlay = overlay_of(table[i].overlay);
		struct json_object *wanted = pod_of(table[i].result), *got = NULL;
		struct spec_errors e = SPEC_ERRORS_INIT;

		assert_int_equal(spec_overlay_apply(pod, overlay, "at", &got, &e), 0);
		if (!json_object_equal(got, wanted))
			fail_msg("%s", json_object_to_json_string(got));
		assert_true(json_object_equal(pod, same));
		json_object_put(pod);
		json_object_put(same);
		json_object_put(overlay);
		json_object_put(wanted);
		json_object_put(got);
	}
}

static void test_refused(void **state)
{
	for (size_t i = 0; i < array_size(refused); i++) {
		struct json_object *pod = pod_of(refused[i].spec), *got = NULL;
		struct json_object *overlay = overlay_of(refused[i].overlay);
		struct spec_errors e = SPEC_ERRORS_INIT;

		assert_int_equal(spec_overlay_apply(pod, overlay, "at", &got, &e), -EINVAL);
		assert_null(got);
		assert_int_equal(e.n, 1);
		assert_string_equal(e.v[0].path, refused[i].path);
		assert_string_equal(e.v[0].text, refused[i].text);
		spec_errors_clear(&e);
		json_object_put(pod);
		json_object_put(overlay);
	}
}

/* metadata and spec remain maps, whatever the overlay does to them. */
static void test_whole(void **state)
{
	struct json_object *pod = pod_of("{'a':1}");
	struct json_object *del = parse("{'__del__:metadata':null}"),
			   *put = parse("{'__put__:spec':5}");
	struct json_object *got = NULL, *wanted = parse("{'metadata':{},'spec':{'a':1}}");
	struct spec_errors e = SPEC_ERRORS_INIT;

	assert_int_equal(spec_overlay_apply(pod, del, "at", &got, &e), 0);
	assert_true(json_object_equal(got, wanted));
	json_object_put(got);
	got = NULL;
	assert_int_equal(spec_overlay_apply(pod, put, "at", &got, &e), -EINVAL);
	assert_null(got);
	assert_string_equal(e.v[0].path, "at.spec");
	spec_errors_clear(&e);
	json_object_put(pod);
	json_object_put(del);
	json_object_put(put);
	json_object_put(wanted);
}

static const struct {
	const char *metadata, *path; /* NULL: there is no overlay */
	const char *error;	     /* path that the error names, or NULL */
} found[] = {
	{"{}", NULL, NULL},
	{"{'other':1}", NULL, NULL},
	{"{'kubernetes':{}}", NULL, NULL},
	{"{'kubernetes':{'spec':{}}}", "r.metadata.kubernetes", NULL},
	{"{'kubernetes':{'spec':{},'metadata':{}}}", "r.metadata.kubernetes", NULL},
	{"{'kubernetes':{'__put__:spec':{}}}", "r.metadata.kubernetes", NULL},
	{"{'kubernetes':{'V1Pod':{'spec':{}}}}", "r.metadata.kubernetes.V1Pod", NULL},
	{"{'kubernetes':{'V1Pod':{},'__torchx_overlays__':true}}", "r.metadata.kubernetes.V1Pod",
	 NULL},
	{"{'kubernetes':{'V1Job':{},'__torchx_overlays__':true}}", NULL, NULL},
	{"{'kubernetes':'/etc/overlay.yaml'}", NULL, "r.metadata.kubernetes"},
	{"{'kubernetes':[]}", NULL, "r.metadata.kubernetes"},
	{"{'kubernetes':null}", NULL, "r.metadata.kubernetes"},
	{"{'kubernetes':{'V1Pod':1}}", NULL, "r.metadata.kubernetes.V1Pod"},
	{"{'kubernetes':{'V1Pod':{},'spec':{}}}", NULL, "r.metadata.kubernetes"},
	{"{'kubernetes':{'specs':{}}}", NULL, "r.metadata.kubernetes.specs"},
	{"{'kubernetes':{'V1Pod':{'x.y':1}}}", NULL, "r.metadata.kubernetes.V1Pod[\"x.y\"]"},
};

static void test_find(void **state)
{
	for (size_t i = 0; i < array_size(found); i++) {
		struct json_object *metadata = parse(found[i].metadata), *overlay = NULL;
		struct spec_errors e = SPEC_ERRORS_INIT;
		char *path cleanup_free = NULL;
		int err = spec_overlay_find(metadata, "r", &overlay, &path, &e);

		assert_int_equal(err, found[i].error ? -EINVAL : 0);
		if (found[i].error) {
			assert_string_equal(e.v[0].path, found[i].error);
		} else if (found[i].path) {
			assert_non_null(overlay);
			assert_string_equal(path, found[i].path);
		} else {
			assert_null(overlay);
		}
		spec_errors_clear(&e);
		json_object_put(metadata);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
