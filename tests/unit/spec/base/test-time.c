/* SPDX-License-Identifier: MIT */
/* Times of RFC 3339: which texts are such a time, and what they mean. */
#include "spec/base/time.h"
#include "tests/unit/unit.h"

static void test_time(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		int64_t ns;
	} good[] = {
		{"1970-01-01T00:00:00Z", 20, 0},
		{"2026-11-21T09:08:40.123456789Z x", 30, 1795252120123456789},
		{"2026-11-21T09:08:40.5+02:30 x", 27, 1795243120500000000},
		{"2026-11-21t09:08:40.1234567891z", 31, 1795252120123456789},
		{"1969-12-31T23:59:59.75-00:00", 28, -250000000},
		{"0001-01-01T00:00:00Z", 20, INT64_MIN},
		{"9999-12-31T23:59:60Z", 20, INT64_MAX},
		{"2028-02-29T00:00:00Z", 20, 1835395200000000000},
		{"2000-02-29T00:00:00Z", 20, 951782400000000000},
		{"2026-01-31T00:00:00Z", 20, 1769817600000000000},
	};
	static const char *const bad[] = {
		"",
		"2026-11-21",
		"2026-11-21 09:08:40Z",
		"2026-11-21T09:08:40",
		"2026-11-21T09:08:40.Z",
		"2026-13-21T09:08:40Z",
		"2026-11-21T24:08:40Z",
		"2026-11-31T09:08:40Z",
		"2026-12-32T09:08:40Z",
		"2026-02-29T09:08:40Z",
		"2100-02-29T09:08:40Z",
		"2026-11-21T09:08:40+1:00",
		"+026-11-21T09:08:40Z",
	};
	int64_t ns;

	for (size_t i = 0; i < array_size(good); i++) {
		assert_int_equal(spec_time_parse(good[i].text, strlen(good[i].text), &ns),
				 good[i].len);
		assert_true(ns == good[i].ns);
	}
	for (size_t i = 0; i < array_size(bad); i++)
		assert_int_equal(spec_time_parse(bad[i], strlen(bad[i]), &ns), 0);
	for (size_t n = 0; n < 30; n++)
		assert_int_equal(spec_time_parse(good[1].text, n, &ns), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
