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

static struct spec_options *options;
static struct spec_errors errors;

static int end(void **state)
{
	spec_options_free(options);
	spec_errors_clear(&errors);
	options = NULL;
	return 0;
}

/* Start again with no values for the options in TABLE. */
static void start(const struct spec_option *table)
{
	end(NULL);
	options = spec_options_new("volcano", table);
}

static int set(const char *name, const char *text)
{
	return spec_options_set(options, name, text, &errors);
}

/* Merge scheduler_args, in which ' replaces ". */
static void merge(const char *args)
{
	cleanup_free char *json = unit_json(text_copy(args));

	spec_options_merge(options, json, "ns", &errors);
}

static void test_types(void **state)
{
	int64_t n = 0;

	start(volcano);
	assert_null(spec_options_text(options, "queue"));
	assert_false(spec_options_int(options, "efa_device_count", &n));
	assert_false(spec_options_bool(options, "no_annotations"));
	set("queue", "");
	assert_string_equal(spec_options_text(options, "queue"), "");
	set("queue", "team.robot-1");
	assert_string_equal(spec_options_text(options, "queue"), "team.robot-1");
	set("efa_device_count", "0");
	assert_true(spec_options_int(options, "efa_device_count", &n));
	assert_int_equal(n, 0);
	set("no_annotations", "Yes");
	assert_true(spec_options_bool(options, "no_annotations"));
	set("no_annotations", "off");
	assert_false(spec_options_bool(options, "no_annotations"));
	assert_int_equal(errors.n, 0);
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
		char path[64];
		int64_t n;

		start(mcad);
		assert_int_equal(set("priority", "-3"), 0);
		assert_int_equal(set(bad[i][0], bad[i][1]), -EINVAL);
		snprintf(path, sizeof(path), "-o %s", bad[i][0]);
		assert_string_equal(errors.v[0].path, path);
		assert_true(spec_options_int(options, "priority", &n));
		assert_int_equal(n, -3);
	}
}

static void test_unknown(void **state)
{
	start(volcano);
	assert_int_equal(set("serviceAccount", "x"), -EINVAL);
	assert_string_equal(errors.v[0].text,
			    "volcano has no such run option; did you mean service_account?");
	merge("{'network':'x'}");
	assert_string_equal(errors.v[1].path, "scheduler_args.network");
	assert_non_null(strstr(errors.v[1].text, "its run options are queue, service_account, "));
	assert_non_null(strstr(errors.v[1].text, ", hold, begin, after"));
}

static void test_merge(void **state)
{
	int64_t n;

	start(mcad);
	set("network", "a");
	set("image_repo", "b");
	set("priority", "1");
	spec_options_merge(options, NULL, "ns", &errors);
	merge("{'network':5,'priority':null,'no_annotations':true,'namespace':'ns'}");
	assert_int_equal(errors.err, 0);
	assert_string_equal(spec_options_text(options, "network"), "5");
	assert_string_equal(spec_options_text(options, "image_repo"), "b");
	assert_false(spec_options_int(options, "priority", &n));
	assert_true(spec_options_bool(options, "no_annotations"));
}

/* A wrong value in a document is one error of its option. */
static void test_bad_json(void **state)
{
	static const char *const bad[][2] = {
		{"priority", "'5'"},	    {"priority", "5.5"},     {"priority", "true"},
		{"priority", "9999999999"}, {"network", "1.5"},	     {"network", "true"},
		{"network", "[]"},	    {"no_annotations", "1"}, {"no_annotations", "'true'"},
		{"namespace", "'other'"},   {"namespace", "1"},
	};

	for (size_t i = 0; i < array_size(bad); i++) {
		cleanup_free char *json = text_print("{'%s':%s}", bad[i][0], bad[i][1]);
		cleanup_free char *path = text_print("scheduler_args.%s", bad[i][0]);

		start(mcad);
		merge(json);
		assert_int_equal(errors.err, -EINVAL);
		assert_int_equal(errors.n, 1);
		assert_string_equal(errors.v[0].path, path);
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
		cleanup_free char *json = text_print("{'limit':'%s'}", table[i].text);
		int64_t seconds = 0;

		start(mcad);
		assert_int_equal(set("limit", table[i].text), table[i].error ? -EINVAL : 0);
		merge(json);
		assert_int_equal(errors.err, table[i].error ? -EINVAL : 0);
		assert_int_equal(spec_options_int(options, "limit", &seconds), !table[i].error);
		assert_int_equal(seconds, table[i].seconds);
		for (size_t k = 0; table[i].error && k < 2; k++)
			assert_non_null(strstr(errors.v[k].text, table[i].error));
	}
}

static void test_refusal(void **state)
{
	start(mcad);
	merge("{'never':'1d','more':1}");
	assert_int_equal(errors.n, 2);
	assert_string_equal(errors.v[0].text, "can't be had");
	assert_null(strstr(errors.v[1].text, "never"));
	merge("{'never':null}");
	assert_int_equal(errors.n, 2);
}

/*
 * A missing required option is reported once, with its name. It is not reported if its value was
 * refused.
 */
static void test_required(void **state)
{
	start(volcano);
	set("queue", "q");
	spec_options_check(options, &errors);
	assert_int_equal(errors.n, 0);
	merge("{'queue':null}");
	spec_options_check(options, &errors);
	assert_int_equal(errors.n, 1);
	assert_string_equal(errors.v[0].path, "scheduler_args.queue");
	start(volcano);
	merge("{'queue':5.5}");
	spec_options_check(options, &errors);
	assert_int_equal(errors.n, 1);
	assert_string_equal(errors.v[0].text, "must be text, but is 5.5; put it into quotes");
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

	return cmocka_run_group_tests(tests, NULL, end);
}
