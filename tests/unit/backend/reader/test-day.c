/* SPDX-License-Identifier: MIT */
/*
 * backend/reader/day.h: lines of a list become jobs, each with a name and a uid; a line that is no job hides no other.
 */
#include "backend/reader/day.h"
#include "tests/unit/unit.h"

static void add(struct day_list *list, const char *uid, const char *id, int minute)
{
	cleanup_free char *line = text_print(
		"{\"uid\":\"%s\",\"id\":\"%s\",\"created\":\"2026-11-26T10:%02d:00Z\"}\n", uid, id,
		minute);

	day_add(list, line, strlen(line));
}

static void test_names(void **state)
{
	struct day_list list cleanup(day_clear) = {0};

	add(&list, "11111111-a", "twice", 3);
	add(&list, "22222222-b", "twice", 1);
	add(&list, "33333333-c", "once", 2);
	add(&list, "33333333-c", "again", 2);
	day_settle(&list);
	assert_int_equal(list.n, 3);
	assert_string_equal(list.jobs[0]->id, "twice~22222222");
	assert_null(list.jobs[0]->line);
	assert_string_equal(list.jobs[1]->uid, "33333333-c");
	assert_string_equal(list.jobs[2]->id, "twice");
	assert_int_equal(list.passed_over, 1);
}

/* In such a case the uid decides, in whichever order the lines stand. */
static void test_names_of_one_moment(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct day_list list cleanup(day_clear) = {0};

		add(&list, i ? "22222222-b" : "11111111-a", "twice", 1);
		add(&list, i ? "11111111-a" : "22222222-b", "twice", 1);
		day_settle(&list);
		assert_int_equal(list.n, 2);
		assert_string_equal(list.jobs[0]->id, "twice~11111111");
		assert_string_equal(list.jobs[1]->uid, "22222222-b");
	}
}

static void test_bad_lines(void **state)
{
	static const char text[] = "x\n\n{\"uid\":\"u\",\"id\":\"../a\"}\n\0\n{\"uid\":\"u\",";
	struct day_list list cleanup(day_clear) = {0};

	day_add(&list, text, sizeof(text) - 1);
	add(&list, "u", "good", 1);
	day_settle(&list);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.jobs[0]->id, "good");
	assert_int_equal(list.passed_over, 4);
}

static void test_is(void **state)
{
	assert_true(day_is("2026-11-26"));
	assert_false(day_is("2026-11-2"));
	assert_false(day_is("2026-11-266"));
	assert_false(day_is("2026/11-26"));
	assert_false(day_is("source.json"));
	assert_false(day_is(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_of_one_moment),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
