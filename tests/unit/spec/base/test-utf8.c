/* SPDX-License-Identifier: MIT */
/*
 * spec/base/utf8.h.
 */
#include "spec/base/utf8.h"
#include "tests/unit/unit.h"

static void test_clean(void **state)
{
	static const struct {
		const char *text, *keep, *want;
	} cases[] = {
		{"", "", ""},
		{"plain, \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x98\x80", "", NULL},
		{"a\nb\tc\rd", "", "a\\nb\\tc\\rd"},
		{"a\nb\tc\rd", "\n\t", "a\nb\tc\\rd"},
		{"\x1b[31mred\x7f\x07", "\n\t", "\\x1b[31mred\\x7f\\x07"},
		/* C1 controls, as one byte and as a character: a terminal obeys both. */
		{"\x9b 2J", "", "\\x9b 2J"},
		{"\xc2\x9b 2J", "", "\\x9b 2J"},
		{"\xc2\xa0", "", NULL},
		/* These are cut off, overlong, a surrogate, and too high. */
		{"\xe2\x82", "", "\\xe2\\x82"},
		{"\xc0\xafx", "", "\\xc0\\xafx"},
		{"\xed\xa0\x80", "", "\\xed\\xa0\\x80"},
		{"\xf5\x80", "", "\\xf5\\x80"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		const char *want = cases[i].want ? cases[i].want : cases[i].text;
		cleanup_free char *got = spec_utf8_clean_copy(cases[i].text, cases[i].keep);

		assert_string_equal(got, want);
		assert_int_equal(spec_utf8_is_clean(cases[i].text, cases[i].keep),
				 strcmp(cases[i].text, want) == 0);
		assert_true(spec_utf8_is_clean(got, cases[i].keep));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_clean)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
