/* SPDX-License-Identifier: MIT */
/*
 * Compares docs/appdef.5 with the parser and with contrib/examples/. The manual must list every
 * field and named resource, with its values, and print the examples that it names unchanged.
 * tests/mount/test_docs.py submits the examples. TEST_SOURCE is the source tree.
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

	if (!f || getdelim(&ret, &room, '\0', f) < 0)
		fail_msg("%s can't be read", path);
	return ret;
}

static char *page; /* the manual */

static int setup(void **state)
{
	page = read_file(TEST_SOURCE "/docs/appdef.5");
	return 0;
}

static int teardown(void **state)
{
	free(page);
	return 0;
}

/* Assert that the manual contains the text of this format. */
static void printf_like(1, 2) assert_in_manual(const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	assert_true(vasprintf(&text, fmt, ap) >= 0);
	va_end(ap);
	if (!strstr(page, text))
		fail_msg("the manual lacks this:%s", text);
}

static void test_fields(void **state)
{
	/* The error for an unknown field lists all fields. */
	static const char text[] = "name: a\nroles:\n- resource: {zzzz: 1}\n  zzzz: 1\nzzzz: 1\n";
	static const char key[] = "the fields here are ";
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	size_t n = 0;

	assert_int_equal(document_parse(text, strlen(text), NULL, &app, &e), -EINVAL);
	for (size_t i = 0; i < e.n; i++) {
		char *rest = strstr(e.v[i].text, key), *name;

		n += rest != NULL;
		rest = rest ? rest + strlen(key) : NULL;
		while ((name = strsep(&rest, ",")))
			assert_in_manual("\n.It Cm %s : ", name + (*name == ' '));
	}
	assert_int_equal(n, 3);
	for (int i = SPEC_RETRY_APPLICATION; i <= SPEC_RETRY_HOT_SPARE; i++)
		assert_in_manual("\n.It Cm %s\n", spec_retry_name(i));
}

static int count(const struct spec_counts *counts, const char *key)
{
	for (size_t i = 0; i < counts->n; i++)
		if (streq(counts->v[i].key, key))
			return (int)counts->v[i].value;
	return 0;
}

static void test_resources(void **state)
{
	const char *name, *near;

	for (size_t i = 0; (name = document_resource_name(i)); i++) {
		struct spec_resource r = {0};
		char devices[64] = "";
		int efa, neuron;

		/* The manual describes the null resource in its text. */
		if (streq(name, "NULL") || streq(name, "MISSING"))
			continue;
		assert_int_equal(spec_named_resource(name, &r, &near), 0);
		efa = count(&r.devices, "vpc.amazonaws.com/efa");
		neuron = count(&r.devices, "aws.amazon.com/neurondevice");
		assert_int_equal(r.devices.n, (efa > 0) + (neuron > 0));
		if (efa)
			sprintf(devices, "  efa %d", efa);
		if (neuron)
			sprintf(devices + strlen(devices), "%s neuron %d", efa ? "," : " ", neuron);
		assert_in_manual("\n%-22s %5.0f %4d %8.0f%s\n", name, r.cpu, (int)r.gpu, r.mem_mb,
				 devices);
		spec_resource_clear(&r);
	}
}

/* An example is printed without its first line. */
static void test_examples(void **state)
{
	glob_t found;

	assert_int_equal(glob(TEST_SOURCE "/contrib/examples/*.yaml", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 4);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		cleanup_free char *text = read_file(found.gl_pathv[i]), *named = NULL;
		const char *name = basename(found.gl_pathv[i]);

		assert_true(asprintf(&named, "\n.Pa %s :", name) > 0);
		assert_memory_equal(text, "# SPDX", 6);
		if (strstr(page, named) || streq(name, "hello.yaml"))
			assert_in_manual(".Bd -literal -offset indent\n%s.Ed\n",
					 strchr(text, '\n') + 1);
	}
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_resources),
		cmocka_unit_test(test_examples),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
