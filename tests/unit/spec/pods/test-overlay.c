/* SPDX-License-Identifier: MIT */
/* The overlay of pods: a table of pods, overlays and results, and what is refused at which path. */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/tree.h"
#include "spec/pods/overlay.h"
#include "tests/unit/unit.h"

static const struct {
	/* JSON of spec, in which ' replaces "; a result may also be the path and text of an error */
	const char *spec, *overlay, *result;
} table[] = {
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
	{"{'l':[1]}", "{'l':1}", ".l: must be a list, as in the pod, but is a single value"},
	{"{'l':[1]}", "{'l':null}", ".l: must be a list, as in the pod, but is null"},
	{"{'l':{'a':1}}", "{'l':{'a':{'b':1}}}",
	 ".l.a: must be a single value, as in the pod, but is a map"},
	{"{'l':{}}", "{'__join__:l:name':[]}",
	 "[\"__join__:l:name\"]: this value and the value in the pod must both be lists of maps"},
	{"{}", "{'__join__:l:name':{}}",
	 "[\"__join__:l:name\"]: this value and the value in the pod must both be lists of maps"},
	{"{}", "{'__join__:l':[]}", "[\"__join__:l\"]: must be __join__:FIELD:KEY"},
};

/* Parse JSON in which ' replaces ". */
static struct json_object *parse(const char *text)
{
	char *json cleanup_free = unit_json(text_copy(text));
	struct json_object *ret = json_tokener_parse(json);

	assert_non_null(ret);
	return ret;
}

/* Apply OVERLAY to POD. Return the result as JSON, or "PATH: MESSAGE" of the error. malloc'ed. */
static char *apply(const char *pod_json, const char *overlay_json)
{
	struct json_object *pod cleanup_json = parse(pod_json),
				*same cleanup_json = parse(pod_json);
	struct json_object *overlay cleanup_json = parse(overlay_json), *got cleanup_json = NULL;
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	int err = spec_overlay_apply(pod, overlay, "at", &got, &e);

	assert_true(json_object_equal(pod, same));
	assert_int_equal(err, e.n ? -EINVAL : 0);
	assert_int_equal(!got, err != 0);
	return err ? text_print("%s: %s", e.v[0].path, e.v[0].text) : spec_tree_print(got);
}

#define METADATA "'metadata':{'annotations':{'a':'1'}}"

static void test_merge(void **state)
{
	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *pod = text_print("{" METADATA ",'spec':%s}", table[i].spec);
		cleanup_free char *overlay = text_print("{'spec':%s}", table[i].overlay);
		cleanup_free char *got = apply(pod, overlay), *want = NULL;

		if (*table[i].result == '{') {
			cleanup_free char *json =
				text_print("{" METADATA ",'spec':%s}", table[i].result);
			struct json_object *o cleanup_json = parse(json);

			want = spec_tree_print(o);
		} else {
			want = text_print("at.spec%s", table[i].result);
		}
		assert_string_equal(got, want);
	}
}

/* metadata and spec remain maps, whatever the overlay does to them. */
static void test_whole(void **state)
{
	cleanup_free char *del =
		apply("{" METADATA ",'spec':{'a':1}}", "{'__del__:metadata':null}");
	cleanup_free char *put = apply("{" METADATA ",'spec':{'a':1}}", "{'__put__:spec':5}");

	assert_string_equal(del, "{\"spec\":{\"a\":1},\"metadata\":{}}");
	assert_memory_equal(put, "at.spec: ", 9);
}

static const struct {
	const char *metadata;
	const char *path;  /* of the overlay, or NULL if there is none */
	const char *error; /* path that the error names, or NULL */
} found[] = {
	{"{}", NULL, NULL},
	{"{'other':1}", NULL, NULL},
	{"{'kubernetes':{}}", NULL, NULL},
	{"{'kubernetes':{'spec':{},'metadata':{}}}", "", NULL},
	{"{'kubernetes':{'__put__:spec':{}}}", "", NULL},
	{"{'kubernetes':{'V1Pod':{'spec':{}}}}", ".V1Pod", NULL},
	{"{'kubernetes':{'V1Pod':{},'__torchx_overlays__':true}}", ".V1Pod", NULL},
	{"{'kubernetes':{'V1Job':{},'__torchx_overlays__':true}}", NULL, NULL},
	{"{'kubernetes':'/etc/overlay.yaml'}", NULL, ""},
	{"{'kubernetes':[]}", NULL, ""},
	{"{'kubernetes':null}", NULL, ""},
	{"{'kubernetes':{'V1Pod':1}}", NULL, ".V1Pod"},
	{"{'kubernetes':{'V1Pod':{},'spec':{}}}", NULL, ""},
	{"{'kubernetes':{'specs':{}}}", NULL, ".specs"},
	{"{'kubernetes':{'V1Pod':{'x.y':1}}}", NULL, ".V1Pod[\"x.y\"]"},
};

static void test_find(void **state)
{
	static const char prefix[] = "r.metadata.kubernetes";

	for (size_t i = 0; i < array_size(found); i++) {
		struct json_object *metadata cleanup_json = parse(found[i].metadata);
		cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
		const char *want = found[i].error ? found[i].error : found[i].path, *got;
		struct json_object *overlay = NULL;
		char *path cleanup_free = NULL;
		int err = spec_overlay_find(metadata, "r", &overlay, &path, &e);

		assert_int_equal(err, found[i].error ? -EINVAL : 0);
		assert_true(err || !overlay == !found[i].path);
		got = err ? e.v[0].path : path;
		if (want) {
			assert_memory_equal(got, prefix, strlen(prefix));
			assert_string_equal(got + strlen(prefix), want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
