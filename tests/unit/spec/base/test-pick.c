/* SPDX-License-Identifier: MIT */
/* Members copied out of JSON text: what stays, and what the scan leaves to others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "spec/base/pick.h"

static const struct spec_pick b_pick[] = {{"c", NULL}, {"d", NULL}, {NULL, NULL}};
static const struct spec_pick pick[] = {{"a", NULL}, {"b", b_pick}, {NULL, NULL}};

static void test_pick(void **state)
{
	static const struct {
		const char *text, *kept; /* NULL: it is left to others */
	} table[] = {
		{"{}", "{}"},
		{" { \"a\" : 1 , \"x\" : 2 } \n", "{\"a\":1}"},
		{"{\"x\":{\"a\":1},\"a\":[ {\"x\":\"}\"} , null]}",
		 "{\"a\":[ {\"x\":\"}\"} , null]}"},
		{"{\"b\":{\"c\":true,\"x\":[[]],\"d\":-7},\"ab\":1}",
		 "{\"b\":{\"c\":true,\"d\":-7}}"},
		/* The members of each item of a list, and what is no object. */
		{"{\"b\":[{\"x\":0,\"c\":\"\\\\\\\"\"},{},5,[{\"d\":{},\"y\":{}}]]}",
		 "{\"b\":[{\"c\":\"\\\\\\\"\"},{},5,[{\"d\":{}}]]}"},
		{"{\"b\":\"text\"}", "{\"b\":\"text\"}"},
		{"{\"x\":\"\\u00e4 \\n\",\"a\":\"\\u0041\"}", "{\"a\":\"\\u0041\"}"},
		/* The last of two wins, for whoever parses it. */
		{"{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"},
		{"{\"\":1}", "{}"},
		/* What json-c may take in another way, or refuse. */
		{"[]", NULL},
		{"1", NULL},
		{"", NULL},
		{" ", NULL},
		{"{", NULL},
		{"{\"a\"", NULL},
		{"{\"a\":", NULL},
		{"{\"a\":1", NULL},
		{"{\"a\":1,}", NULL},
		{"{\"a\":1 2}", NULL},
		{"{\"a\":[1,]}", NULL},
		{"{\"a\":[1}", NULL},
		{"{\"a\":1}x", NULL},
		{"{\"\\u0061\":1}", NULL},
		{"{'a':1}", NULL},
		{"{\"a\":'x'}", NULL},
		{"{\"x\":nan}", NULL},
		{"{\"x\":truely}", NULL},
		{"{\"x\":01}", NULL},
		{"{\"x\":-}", NULL},
		{"{\"x\":1.5}", NULL},
		{"{\"x\":1e5}", NULL},
		{"{\"x\":\"\\q\"}", NULL},
		{"{\"x\":\"\\ud83d\\ude00\"}", NULL},
		{"{\"x\":\"\\u00g0\"}", NULL},
		{"{\"x\":\"\t\"}", NULL},
		{"{\"x\":\"\\", NULL},
		{"{\"x\":\"\\u00", NULL},
		{"{/**/\"x\":1}", NULL},
	};

	(void)state;
	for (size_t i = 0; i < array_size(table); i++) {
		size_t len = strlen(table[i].text), n = 0;
		char *kept cleanup_free = NULL;
		/* Without a NUL behind it, so that reading on is found. */
		char *text cleanup_free = len ? malloc(len) : malloc(1);

		memcpy(text, table[i].text, len);
		kept = spec_pick(text, len, pick, &n);
		if (!table[i].kept) {
			assert_null(kept);
			continue;
		}
		assert_non_null(kept);
		assert_string_equal(kept, table[i].kept);
		assert_int_equal(n, strlen(kept));
	}
}

/* What is nested deeper than any object is left to others. */
static void test_depth(void **state)
{
	char text[1024];
	size_t len, n;

	(void)state;
	for (size_t depth = 1; depth < 400; depth++) {
		char *kept;

		memcpy(text, "{\"x\":", 5);
		memset(text + 5, '[', depth);
		memset(text + 5 + depth, ']', depth);
		len = 5 + 2 * depth;
		text[len++] = '}';
		kept = spec_pick(text, len, pick, &n);
		assert_true(depth > 40 || kept);
		assert_true(depth < 64 || !kept);
		free(kept);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pick),
		cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests_name("pick", tests, NULL, NULL);
}
