/* SPDX-License-Identifier: MIT */
/* Bytes as base64, and back. */
#include "spec/base/base64.h"
#include "tests/unit/unit.h"

static void test_base64(void **state)
{
	static const char *const pairs[][2] = {
		{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob\xff", "Zm9vYv8="},
	};
	static const char *const bad[] = {"Z",	      "Zg",   "Zg=",  "Zm9v=", "Zh==",	  "Z===",
					  "Zg==Zg==", "Zm9*", "====", "Zm 9v", "Zm9v\x80"};
	size_t n;

	for (size_t i = 0; i < array_size(pairs); i++) {
		cleanup_free char *to = spec_base64_encode(pairs[i][0], strlen(pairs[i][0]));
		cleanup_free char *from = spec_base64_decode(pairs[i][1], strlen(pairs[i][1]), &n);

		assert_string_equal(to, pairs[i][1]);
		assert_string_equal(from, pairs[i][0]);
		assert_int_equal(n, strlen(pairs[i][0]));
	}
	for (size_t i = 0; i < array_size(bad); i++)
		assert_null(spec_base64_decode(bad[i], strlen(bad[i]), &n));
	free(spec_base64_decode("Zm\r\n9v\n", 7, &n));
	assert_int_equal(n, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
