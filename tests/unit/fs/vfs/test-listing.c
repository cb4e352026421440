/* SPDX-License-Identifier: MIT */
/* fs/vfs/listing.h: the names that a directory has at one moment. */
#include "fs/vfs/listing.h"
#include "tests/unit/unit.h"

static void test_begins_with_dots(void **state)
{
	struct listing *l cleanup(listing_freep) = listing_new();

	assert_non_null(l);
	assert_string_equal(listing_name(l, 0), ".");
	assert_string_equal(listing_name(l, 1), "..");
	assert_null(listing_name(l, 2));
}

static void test_keeps_many_names_in_order(void **state)
{
	struct listing *l cleanup(listing_freep) = listing_new();
	char name[32];

	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "job-%d", i);
		listing_add(l, name);
	}
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "job-%d", i);
		assert_string_equal(listing_name(l, (size_t)i + 2), name);
	}
	assert_null(listing_name(l, 10002));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begins_with_dots),
		cmocka_unit_test(test_keeps_many_names_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
