/* SPDX-License-Identifier: MIT */
/* JSON trees: how a text becomes a tree, and its numbers. */
#include "spec/base/tree.h"
#include "tests/unit/unit.h"

/* Each text, and how its tree is printed; NULL: it is null, or no JSON. */
static void test_texts(void **state)
{
	static const struct {
		const char *json, *again;
	} table[] = {
		{" {\"a\" : [1, {\"b\": null}, \"x/\\u0000\\u00e4\"], \"c\": {}, \"d\": []} ",
		 "{\"a\":[1,{\"b\":null},\"x/\\u0000\xc3\xa4\"],\"c\":{},\"d\":[]}"},
		{"{\"a\":1,\"b\":true,\"a\":false}", "{\"a\":false,\"b\":true}"},
		{"[-0, 9223372036854775807, -9223372036854775808]",
		 "[0,9223372036854775807,-9223372036854775808]"},
		/* Whole numbers have up to 64 bits; larger ones are doubles, which are printed in the shortest way. */
		{"[9223372036854775808, 18446744073709551615]",
		 "[9223372036854775808,18446744073709551615]"},
		{"[18446744073709551616, -9223372036854775809]",
		 "[1.8446744073709552e+19,-9.223372036854776e+18]"},
		{"[0.10, 2.0, 1e22, -1.5E-3]", "[0.1,2.0,1.0e+22,-0.0015]"},
		{"[1e999]", "[\"1e999\"]"},
		{"\"text\"", "\"text\""},
		{"null", NULL},
		{"{\"a\":1,}", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct json_object *tree cleanup_json = spec_tree_parse(table[i].json);
		char *again cleanup_free = tree ? spec_tree_print(tree) : NULL;

		if (table[i].again)
			assert_string_equal(again, table[i].again);
		else
			assert_null(again);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
