/* SPDX-License-Identifier: MIT */
/*
 * Label values: what is valid stays, everything else becomes valid.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "spec/app/label.h"

#define X31 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const char *const table[][2] = {
	{"", ""},
	{"trainer", "trainer"},
	{"My_Train.App-01", "My_Train.App-01"},
	{"My App/v1 (test)-", "My.App.v1..test"},
	{"_Role Name_", "Role.Name"},
	{"---", ""},
	{"  a", "a"},
	{"日本", ""},
	{"a日b", "a.b"},
	{"é", ""},
	{"a\x7f", "a"},
	{X31 X31 "x", X31 X31 "x"},
	{X31 X31 "xy", X31 X31 "x"},
	{X31 X31 "-y", X31 X31},
	{"-" X31 X31 "ab", X31 X31 "a"},
};

static void test_clean(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(table); i++) {
		char *got cleanup_free = spec_label_clean(table[i][0]);

		assert_non_null(got);
		assert_string_equal(got, table[i][1]);
		assert_true(spec_label_is_valid(got));
		assert_int_equal(spec_label_is_valid(table[i][0]), streq(table[i][0], table[i][1]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
