/* SPDX-License-Identifier: MIT */
/*
 * Compares docs/appdef.5 and contrib/examples/ with the parser. The manual must list every field
 * and named resource, with its values. Every example must be accepted, and an example in the manual
 * must equal its file. TEST_SOURCE is the source tree.
 */
#include <errno.h>
#include <glob.h>
#include <libgen.h>

#include "spec/app/app_value.h"
#include "tests/unit/spec/app-document.h"
#include "tests/unit/unit.h"

static char *read_file(const char *path)
{
	cleanup_file FILE *f = fopen(path, "re");
	char *ret = NULL;
	size_t room = 0;

	if (!f)
		fail_msg("%s can't be opened", path);
	if (getdelim(&ret, &room, '\0', f) < 0)
		fail_msg("%s can't be read", path);
	return ret;
}

static char *manual(void)
{
	return read_file(TEST_SOURCE "/docs/appdef.5");
}

static void test_fields(void **state)
{
	/* The error for an unknown field lists all fields. */
	static const char text[] = "name: a\nroles:\n- resource: {zzzz: 1}\n  zzzz: 1\nzzzz: 1\n";
	static const char key[] = "the fields here are ";
	cleanup_free char *page = manual();
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	size_t n = 0;

	assert_int_equal(document_parse(text, strlen(text), NULL, &app, &e), -EINVAL);
	for (size_t i = 0; i < e.n; i++) {
		char *rest = strstr(e.v[i].text, key), *name;

		n += rest != NULL;
		rest = rest ? rest + strlen(key) : NULL;
		while ((name = strsep(&rest, ","))) {
			cleanup_free char *item = NULL;

			name += *name == ' ';
			assert_true(asprintf(&item, "\n.It Cm %s : ", name) > 0);
			if (!strstr(page, item))
				fail_msg("the field %s is not in the manual", name);
		}
	}
	assert_int_equal(n, 3);
}

static void test_retry_policies(void **state)
{
	cleanup_free char *page = manual();

	for (int i = SPEC_RETRY_APPLICATION; i <= SPEC_RETRY_HOT_SPARE; i++) {
		cleanup_free char *item = NULL;

		assert_true(asprintf(&item, "\n.It Cm %s\n", spec_retry_name(i)) > 0);
		assert_non_null(strstr(page, item));
	}
}

static int64_t count(const struct spec_counts *counts, const char *key)
{
	for (size_t i = 0; i < counts->n; i++) {
		if (streq(counts->v[i].key, key))
			return counts->v[i].value;
	}
	return 0;
}

/* Return the line for the resource NAME that the manual's tables must contain. */
static char *resource_line(const char *name)
{
	struct spec_resource r = {0};
	char devices[64] = "";
	const char *near;
	int64_t efa, neuron;
	char *ret;

	assert_int_equal(spec_named_resource(name, &r, &near), 0);
	efa = count(&r.devices, "vpc.amazonaws.com/efa");
	neuron = count(&r.devices, "aws.amazon.com/neurondevice");
	assert_int_equal(r.devices.n, (efa > 0) + (neuron > 0));
	if (efa)
		snprintf(devices, sizeof(devices), "  efa %d", (int)efa);
	if (neuron)
		snprintf(devices + strlen(devices), sizeof(devices) - strlen(devices),
			 "%s neuron %d", efa ? "," : " ", (int)neuron);
	assert_true(asprintf(&ret, "\n%-22s %5.0f %4d %8.0f%s\n", name, r.cpu, (int)r.gpu, r.mem_mb,
			     devices) > 0);
	spec_resource_clear(&r);
	return ret;
}

static void test_resources(void **state)
{
	cleanup_free char *page = manual();
	const char *name;

	for (size_t i = 0; (name = document_resource_name(i)); i++) {
		cleanup_free char *line = NULL;

		/* The manual describes the null resource in its text. */
		if (streq(name, "NULL") || streq(name, "MISSING"))
			continue;
		line = resource_line(name);
		if (!strstr(page, line))
			fail_msg("the manual lacks this line:%s", line);
	}
}

/*
 * Assert that an example that the manual names is printed there unchanged, except for its first
 * line.
 */
static void check_in_manual(const char *page, char *path, const char *text)
{
	cleanup_free char *named = NULL, *block = NULL;

	assert_true(asprintf(&named, "\n.Pa %s :", basename(path)) > 0);
	if (!strstr(page, named) && !streq(basename(path), "hello.yaml"))
		return;
	assert_memory_equal(text, "# SPDX", 6);
	assert_true(asprintf(&block, ".Bd -literal -offset indent\n%s.Ed\n",
			     strchr(text, '\n') + 1) > 0);
	if (!strstr(page, block))
		fail_msg("%s is not what the manual shows", path);
}

static void test_examples(void **state)
{
	cleanup_free char *page = manual();
	glob_t found;

	assert_int_equal(glob(TEST_SOURCE "/contrib/examples/*.yaml", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 4);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		cleanup_free char *text = read_file(found.gl_pathv[i]);
		struct spec_errors e = SPEC_ERRORS_INIT;
		struct spec_app *app = NULL;

		if (document_parse(text, strlen(text), NULL, &app, &e) < 0)
			fail_msg("%s", spec_errors_text(&e, found.gl_pathv[i]));
		spec_app_free(app);
		check_in_manual(page, found.gl_pathv[i], text);
	}
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_retry_policies),
		cmocka_unit_test(test_resources),
		cmocka_unit_test(test_examples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
