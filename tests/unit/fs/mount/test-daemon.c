/* SPDX-License-Identifier: MIT */
/*
 * kxfs ignores an invalid address of the service manager. tests/mount/test_life.py receives what
 * kxfs sends to a valid one.
 */
#include "fs/mount/daemon.h"
#include "tests/unit/unit.h"

static void test_invalid_address(void **state)
{
	char too_long[256] = "/";
	const char *const addresses[] = {"", "@", "relative", "/nonexistent/socket", too_long};
	struct notify n;

	memset(too_long, '/', sizeof(too_long) - 1);
	for (size_t i = 0; i < array_size(addresses); i++) {
		setenv("NOTIFY_SOCKET", addresses[i], 1);
		notify_init(&n);
		assert_null(getenv("NOTIFY_SOCKET"));
		assert_int_equal(n.len > 0, i == 3); /* only the syntax is checked */
		notify_send(&n, "READY=1");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_invalid_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
