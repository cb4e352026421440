/* SPDX-License-Identifier: MIT */
/* Run options: their types, their names, and which value counts. */
#include <errno.h>

#include "spec/app/run_options.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

static const struct spec_option volcano[] = {
	{.name = "queue", .type = SPEC_OPTION_NAME, .required = true},
	{.name = "service_account", .type = SPEC_OPTION_NAME},
	{.name = "efa_device_count", .type = SPEC_OPTION_INT, .max = 1024},
	{.name = "no_annotations", .type = SPEC_OPTION_BOOL},
	{0},
};

static const struct spec_option mcad[] = {
	{.name = "service_account", .type = SPEC_OPTION_NAME},
	{.name = "image_secret", .type = SPEC_OPTION_NAME},
	{.name = "image_repo", .type = SPEC_OPTION_TEXT},
	{.name = "network", .type = SPEC_OPTION_TEXT},
	{.name = "priority", .type = SPEC_OPTION_INT, .min = INT32_MIN, .max = INT32_MAX},
	{.name = "no_annotations", .type = SPEC_OPTION_BOOL},
	{.name = "limit", .type = SPEC_OPTION_TIME, .min = 1, .max = 864000},
	{.name = "never", .type = SPEC_OPTION_TIME, .refusal = "can't be had"},
	{0},
};

struct fixture {
	struct spec_options *o;
	struct spec_errors e;
};

static void start(struct fixture *f, const struct spec_option *table)
{
	f->e = SPEC_ERRORS_INIT;
	f->o = spec_options_new("volcano", table);
}

static void stop(struct fixture *f)
{
	spec_options_free(f->o);
	spec_errors_clear(&f->e);
}

static void test_types(void **state)
{
	struct fixture f;
	int64_t n = 0;

	start(&f, volcano);
	assert_null(spec_options_text(f.o, "queue"));
	assert_false(spec_options_int(f.o, "efa_device_count", &n));
	assert_false(spec_options_bool(f.o, "no_annotations"));
	assert_int_equal(spec_options_set(f.o, "queue", "", &f.e), 0);
	assert_string_equal(spec_options_text(f.o, "queue"), "");
	assert_int_equal(spec_options_set(f.o, "queue", "research", &f.e), 0);
	assert_string_equal(spec_options_text(f.o, "queue"), "research");
	assert_int_equal(spec_options_set(f.o, "service_account", "team.robot-1", &f.e), 0);
	assert_string_equal(spec_options_text(f.o, "service_account"), "team.robot-1");
	assert_int_equal(spec_options_set(f.o, "efa_device_count", "0", &f.e), 0);
	assert_true(spec_options_int(f.o, "efa_device_count", &n));
	assert_int_equal(n, 0);
	assert_int_equal(spec_options_set(f.o, "no_annotations", "Yes", &f.e), 0);
	assert_true(spec_options_bool(f.o, "no_annotations"));
	assert_int_equal(spec_options_set(f.o, "no_annotations", "off", &f.e), 0);
	assert_false(spec_options_bool(f.o, "no_annotations"));
	assert_int_equal(f.e.n, 0);
	stop(&f);
}

/* A bad value is an error of its option, and does not change the current value. */
static void test_bad_text(void **state)
{
	static const char *const bad[][2] = {
		{"priority", ""},	    {"priority", "x"},
		{"priority", "1.5"},	    {"priority", "010"},
		{"priority", "1 "},	    {"priority", "99999999999999999999"},
		{"priority", "2147483648"}, {"no_annotations", "ja"},
		{"image_secret", "My Key"}, {"image_secret", "a..b"},
		{"image_secret", "-a"},	    {"service_account", "a/b"},
	};

	for (size_t i = 0; i < array_size(bad); i++) {
		struct fixture f;
		char path[64];
		int64_t n;

		start(&f, mcad);
		assert_int_equal(spec_options_set(f.o, "priority", "-3", &f.e), 0);
		assert_int_equal(spec_options_set(f.o, bad[i][0], bad[i][1], &f.e), -EINVAL);
		snprintf(path, sizeof(path), "-o %s", bad[i][0]);
		assert_string_equal(f.e.v[0].path, path);
		assert_true(spec_options_int(f.o, "priority", &n));
		assert_int_equal(n, -3);
		stop(&f);
	}
}

static void test_unknown(void **state)
{
	struct fixture f;

	start(&f, volcano);
	assert_int_equal(spec_options_set(f.o, "serviceAccount", "x", &f.e), -EINVAL);
	assert_string_equal(f.e.v[0].text,
			    "volcano has no such run option; did you mean service_account?");
	spec_options_merge(f.o, "{\"network\":\"x\"}", "ns", &f.e);
	assert_string_equal(f.e.v[1].path, "scheduler_args.network");
	assert_non_null(strstr(f.e.v[1].text, "its run options are queue, service_account, "));
	assert_non_null(strstr(f.e.v[1].text, ", hold, begin, after"));
	stop(&f);
}

static void test_merge(void **state)
{
	struct fixture f;
	int64_t n;

	start(&f, mcad);
	spec_options_set(f.o, "network", "a", &f.e);
	spec_options_set(f.o, "image_repo", "b", &f.e);
	spec_options_set(f.o, "priority", "1", &f.e);
	spec_options_merge(f.o, NULL, "ns", &f.e);
	spec_options_merge(f.o,
			   "{\"network\":\"c\",\"priority\":null,"
			   "\"no_annotations\":true,\"namespace\":\"ns\"}",
			   "ns", &f.e);
	assert_int_equal(f.e.err, 0);
	assert_string_equal(spec_options_text(f.o, "network"), "c");
	assert_string_equal(spec_options_text(f.o, "image_repo"), "b");
	assert_false(spec_options_int(f.o, "priority", &n));
	assert_true(spec_options_bool(f.o, "no_annotations"));
	stop(&f);
}

static void test_bad_json(void **state)
{
	static const char *const bad[][2] = {
		{"{\"priority\":\"5\"}", "scheduler_args.priority"},
		{"{\"priority\":5.5}", "scheduler_args.priority"},
		{"{\"priority\":true}", "scheduler_args.priority"},
		{"{\"priority\":9999999999}", "scheduler_args.priority"},
		{"{\"network\":1.5}", "scheduler_args.network"},
		{"{\"network\":true}", "scheduler_args.network"},
		{"{\"network\":[]}", "scheduler_args.network"},
		{"{\"no_annotations\":1}", "scheduler_args.no_annotations"},
		{"{\"no_annotations\":\"true\"}", "scheduler_args.no_annotations"},
		{"{\"namespace\":\"other\"}", "scheduler_args.namespace"},
		{"{\"namespace\":1}", "scheduler_args.namespace"},
	};

	for (size_t i = 0; i < array_size(bad); i++) {
		struct fixture f;

		start(&f, mcad);
		spec_options_merge(f.o, bad[i][0], "ns", &f.e);
		assert_int_equal(f.e.err, -EINVAL);
		assert_int_equal(f.e.n, 1);
		assert_string_equal(f.e.v[0].path, bad[i][1]);
		stop(&f);
	}
}

/* Times require a unit, so that nobody confuses minutes with seconds. */
static void test_time(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
		const char *error;
	} table[] = {
		{"1s", 1, NULL},
		{"90m", 5400, NULL},
		{"4h", 14400, NULL},
		{"10d", 864000, NULL},
		{"0s", 0, "must be between 1s and 10d"},
		{"11d", 0, "must be between 1s and 10d"},
		{"99999999999999999999d", 0, "must be between 1s and 10d"},
		{"", 0, "\"\""},
		{"4", 0, "\"4\""},
		{"h", 0, "\"h\""},
		{"4h30m", 0, "\"4h30m\""},
		{"1.5h", 0, "\"1.5h\""},
		{"-4h", 0, "\"-4h\""},
		{"4 h", 0, "\"4 h\""},
		{"4H", 0, "\"4H\""},
		{"4:00:00", 0, "\"4:00:00\""},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *json = text_print("{\"limit\":\"%s\"}", table[i].text);
		struct fixture f;
		int64_t seconds = 0;

		start(&f, mcad);
		assert_int_equal(spec_options_set(f.o, "limit", table[i].text, &f.e),
				 table[i].error ? -EINVAL : 0);
		spec_options_merge(f.o, json, "ns", &f.e);
		assert_int_equal(f.e.err, table[i].error ? -EINVAL : 0);
		assert_int_equal(spec_options_int(f.o, "limit", &seconds), !table[i].error);
		assert_int_equal(seconds, table[i].seconds);
		for (size_t k = 0; table[i].error && k < 2; k++)
			assert_non_null(strstr(f.e.v[k].text, table[i].error));
		stop(&f);
	}
}

static void test_refusal(void **state)
{
	struct fixture f;

	start(&f, mcad);
	spec_options_merge(f.o, "{\"never\":\"1d\",\"more\":1}", "ns", &f.e);
	assert_int_equal(f.e.n, 2);
	assert_string_equal(f.e.v[0].text, "can't be had");
	assert_null(strstr(f.e.v[1].text, "never"));
	spec_options_merge(f.o, "{\"never\":null}", "ns", &f.e);
	assert_int_equal(f.e.n, 2);
	stop(&f);
}

/*
 * A missing required option is reported once, with its name. It is not reported if its value was
 * refused.
 */
static void test_required(void **state)
{
	struct fixture f;

	start(&f, volcano);
	spec_options_check(f.o, &f.e);
	assert_int_equal(f.e.n, 1);
	assert_string_equal(f.e.v[0].path, "scheduler_args.queue");
	stop(&f);
	start(&f, volcano);
	spec_options_set(f.o, "queue", "q", &f.e);
	spec_options_check(f.o, &f.e);
	assert_int_equal(f.e.n, 0);
	spec_options_merge(f.o, "{\"queue\":null}", "ns", &f.e);
	spec_options_check(f.o, &f.e);
	assert_int_equal(f.e.n, 1);
	stop(&f);
	start(&f, volcano);
	spec_options_merge(f.o, "{\"queue\":5.5}", "ns", &f.e);
	spec_options_check(f.o, &f.e);
	assert_int_equal(f.e.n, 1);
	assert_string_equal(f.e.v[0].text, "must be text, but is 5.5; put it into quotes");
	stop(&f);
	start(&f, volcano);
	spec_options_merge(f.o, "{\"queue\":5}", "ns", &f.e);
	assert_int_equal(f.e.n, 0);
	assert_string_equal(spec_options_text(f.o, "queue"), "5");
	stop(&f);
}

static void test_check(void **state)
{
	cleanup_free char *text = NULL;

	assert_int_equal(spec_option_check("mcad", mcad, "priority", "5", &text), 0);
	assert_null(text);
	assert_int_equal(spec_option_check("mcad", mcad, "priority", "x", &text), -EINVAL);
	assert_string_equal(text, "-o priority: must be a whole number, not \"x\"");
	assert_ptr_equal(spec_option_find(mcad, "network"), &mcad[3]);
	assert_null(spec_option_find(volcano, "network"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),	 cmocka_unit_test(test_bad_text),
		cmocka_unit_test(test_unknown),	 cmocka_unit_test(test_merge),
		cmocka_unit_test(test_bad_json), cmocka_unit_test(test_required),
		cmocka_unit_test(test_check),	 cmocka_unit_test(test_time),
		cmocka_unit_test(test_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
