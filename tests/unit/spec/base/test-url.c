/* SPDX-License-Identifier: MIT */
/*
 * spec/base/url.h.
 */
#include "spec/base/url.h"
#include "tests/unit/unit.h"

static void test_escape(void **state)
{
	static const char *const cases[][2] = {
		{"", ""},
		{"eyJ2IjoibWV0YS5rOHMuaW8_-~.", "eyJ2IjoibWV0YS5rOHMuaW8_-~."},
		{"a=b,c in (d)", "a%3Db%2Cc%20in%20%28d%29"},
		{"50%&x#\n", "50%25%26x%23%0A"},
		{"\xc3\xa4\xff", "%C3%A4%FF"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		cleanup_free char *got = spec_url_escape(cases[i][0]);

		assert_string_equal(got, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_escape)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
