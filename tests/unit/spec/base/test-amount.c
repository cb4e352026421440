/* SPDX-License-Identifier: MIT */
/* Amounts of resources: what the server writes, and what a person reads. */
#include "spec/base/amount.h"
#include "tests/unit/unit.h"

static void test_values(void **state)
{
	static const struct {
		const char *text;
		double value;
	} table[] = {
		{"0", 0},
		{"2400m", 2.4},
		{"3", 3},
		{"456M", 456e6},
		{"1Gi", 1073741824},
		{"1.5Ki", 1536},
		{".5", 0.5},
		{"5.", 5},
		{"1e3", 1000},
		{"25E-1", 2.5},
		{"2E", 2e18},
		{"100n", 1e-7},
		{"", -1},
		{"m", -1},
		{"1.2.3", -1},
		{"0x10", -1},
		{"1e99", -1},
		{"1 Gi", -1},
		{"-1", -1},
		{"nan", -1},
		{"12345678901234567890123456789012345678901", -1},
		{"1e", -1},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		double got = spec_amount_value(table[i].text);
		double off = got - table[i].value;

		if (off > 1e-9 || off < -1e-9)
			fail_msg("%s: %f", table[i].text, got);
	}
}

static void test_print(void **state)
{
	static const struct {
		const char *name;
		double value;
		const char *text;
	} table[] = {
		{"cpu", 2.4, "2.4"},
		{"cpu", 100, "100"},
		{"cpu", 0, "0"},
		{"cpu", 0.0001, "0"},
		{"memory", 1610612736, "1.5 GiB"},
		{"limits.memory", 512, "512 bytes"},
		{"ephemeral-storage", 1024, "1 KiB"},
		{"nvidia.com/gpu", 8, "8"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		char *text cleanup_free = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		spec_amount_print(out, table[i].name, table[i].value);
		fclose(out);
		assert_string_equal(text, table[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
					   cmocka_unit_test(test_print)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
