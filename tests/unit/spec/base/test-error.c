/* SPDX-License-Identifier: MIT */
/* The list of a document's errors: its order, limit and text, and which names it suggests. */
#include <errno.h>

#include "spec/base/error.h"
#include "spec/base/limits.h"
#include "tests/unit/unit.h"

static void assert_text(const struct spec_errors *e, const char *file, const char *expected)
{
	cleanup_free char *text = spec_errors_text(e, file);

	assert_string_equal(text, expected);
}

static void test_text(void **state)
{
	struct spec_errors e = SPEC_ERRORS_INIT;

	assert_text(&e, "a.yaml", "");
	assert_int_equal(spec_errors_add(&e, -EINVAL, 3, 7, "roles[0].env.A", "is %s", "wrong"),
			 -EINVAL);
	spec_errors_add(&e, -EINVAL, 0, 0, "", "the document is empty");
	assert_text(&e, "a.yaml",
		    "a.yaml: the document is empty\n"
		    "a.yaml:3:7: roles[0].env.A: is wrong\n");
	assert_text(&e, NULL,
		    "the document is empty\n"
		    "3:7: roles[0].env.A: is wrong\n");
	spec_errors_clear(&e);
	assert_int_equal(e.n, 0);
	assert_int_equal(e.err, 0);
}

static void test_order(void **state)
{
	struct spec_errors e = SPEC_ERRORS_INIT;

	spec_errors_add(&e, -EINVAL, 2, 1, "", "c");
	spec_errors_add(&e, -EINVAL, 1, 9, "", "b");
	spec_errors_add(&e, -EINVAL, 1, 2, "", "a");
	spec_errors_add(&e, -EINVAL, 2, 1, "", "d");
	spec_errors_add(&e, -EINVAL, 2, 1, "", "c"); /* the same error again */
	assert_text(&e, NULL, "1:2: a\n1:9: b\n2:1: c\n2:1: d\n");
	spec_errors_clear(&e);
}

static void test_bound(void **state)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *one = NULL, *two = NULL;

	for (unsigned i = 0; i < SPEC_MAX_ERRORS; i++)
		spec_errors_add(&e, -EINVAL, 10 + i, 1, "", "x");
	assert_int_equal(e.dropped, 0);
	spec_errors_add(&e, -EINVAL, 1000, 1, "", "behind all others");
	assert_int_equal(e.n, SPEC_MAX_ERRORS);
	one = spec_errors_text(&e, "f");
	assert_non_null(strstr(one, "f: 1 more error\n"));
	assert_null(strstr(one, "behind"));
	spec_errors_add(&e, -EFBIG, 1, 1, "", "later");
	assert_int_equal(e.n, SPEC_MAX_ERRORS);
	assert_int_equal(e.dropped, 2);
	assert_int_equal(e.err, -EFBIG);
	two = spec_errors_text(&e, NULL);
	assert_non_null(strstr(two, "\n2 more errors\n"));
	spec_errors_clear(&e);
}

/* -EFBIG wins, whatever comes first. */
static void test_errno(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct spec_errors e = SPEC_ERRORS_INIT;

		spec_errors_add(&e, i ? -EFBIG : -EINVAL, 1, 1, "", "x");
		spec_errors_add(&e, i ? -EINVAL : -EFBIG, 1, 1, "", "x");
		assert_int_equal(e.err, -EFBIG);
		spec_errors_clear(&e);
	}
}

/* Errors quote the document and are printed to terminals. */
static void test_control_characters(void **state)
{
	struct spec_errors e = SPEC_ERRORS_INIT;

	spec_errors_add(&e, -EINVAL, 1, 1, "env[\"\x1b\"]", "%s",
			"a\nb\tc\x1b[2J\x7f\xc2\x9b\xc3\xa9");
	assert_text(&e, "a\nb", "a\\nb:1:1: env[\"\\x1b\"]: a\\nb\\tc\\x1b[2J\\x7f\\x9b\xc3\xa9\n");
	spec_errors_clear(&e);
}

static void test_long_text(void **state)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	char name[6001];
	const char *text;

	for (size_t i = 0; i < sizeof(name) - 1; i += 2)
		memcpy(name + i, "\xc3\xa9", 2);
	name[sizeof(name) - 1] = '\0';
	spec_errors_add(&e, -EINVAL, 1, 1, "", "begin %s end", name);
	text = e.v[0].text;
	assert_in_range(strlen(text), 800, 1000);
	assert_memory_equal(text, "begin \xc3\xa9", 8);
	assert_string_equal(text + strlen(text) - 6, "\xc3\xa9 end");
	/* The quote is not truncated in the middle of a character. */
	assert_non_null(strstr(text, "\xc3\xa9 ... \xc3\xa9"));
	spec_errors_clear(&e);
}

static void test_suggest(void **state)
{
	static const char *const words[] = {"name",	    "image",	   "num_replicas",
					    "min_replicas", "max_retries", "retry_policy",
					    "APPLICATION",  "REPLICA",	   NULL};
	static const char *const table[][2] = {
		{"nmae", "name"},
		{"naem", "name"},
		{"Name", "name"},
		{"nam", "name"},
		{"images", "image"},
		{"max_retry", "max_retries"},
		{"num-replicas", "num_replicas"},
		{"application", "APPLICATION"},
		{"replicas", "REPLICA"},
		{"retries", "max_retries"},
		{"policy", "retry_policy"},
		{"x", NULL},
		{"", NULL},
		{"command", NULL},
		{"a-word-that-is-longer-than-every-word-that-there-is-in-the-table-of-all", NULL},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const char *near = spec_suggest(table[i][0], words);

		if (!streq(near, table[i][1]))
			fail_msg("%s: %s", table[i][0], near);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_errno),
		cmocka_unit_test(test_control_characters),
		cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_suggest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
