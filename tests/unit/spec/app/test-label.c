/* SPDX-License-Identifier: MIT */
/* Values of labels: a valid one stays as it is, and any other text becomes a valid one. */
#include "spec/app/label.h"
#include "tests/unit/unit.h"

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
	for (size_t i = 0; i < array_size(table); i++) {
		char *got cleanup_free = spec_label_clean(table[i][0]);

		assert_non_null(got);
		assert_string_equal(got, table[i][1]);
		assert_true(spec_label_is_valid(got));
		assert_int_equal(spec_label_is_valid(table[i][0]), streq(table[i][0], table[i][1]));
	}
}

/* Whoever the user is, from whichever host: the value is valid, and each user has another. */
static void test_user(void **state)
{
	static const char *const users[][2] = {
		{"ada@login1", "ada"},
		{"ada@login2.example.org", "ada"},
		{"ada", "ada"},
		{"1000@login1", "1000"},
		{"Ada.L_1@h", "Ada.L_1"},
		{"ada@example.org@login1", "ada.example.org-cfe00dde46ef9426"},
		{"CORP\\ada@h", "CORP.ada-86a325e5e63b3d3c"},
		{"ada-@h", "ada-28cd54fe3e0c710e"},
		{"日本@h", "cf2abf0c5be326cb"},
		{"@h", "e3b0c44298fc1c14"},
		{"", "e3b0c44298fc1c14"},
		{X31 X31 "x@h", X31 X31 "x"},
		{X31 X31 "xy@h", X31 "xxxxxxxxxxxxxxx-d00194072cfc20cc"},
	};

	for (size_t i = 0; i < array_size(users); i++) {
		char *got cleanup_free = spec_label_user(users[i][0]);

		assert_string_equal(got, users[i][1]);
		assert_true(*got && spec_label_is_valid(got));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
