/* SPDX-License-Identifier: MIT */
/* Members of JSON text, found without parsing it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "spec/base/span.h"

static void test_member(void **state)
{
	static const struct {
		const char *text, *value; /* of "a"; NULL: none */
	} table[] = {
		{"{\"a\":1}", "1"},
		{" { \"b\" : \"}\" , \"a\" : [ {\"a\":2} , \"]\" ] } ", "[ {\"a\":2} , \"]\" ]"},
		{"{\"b\":{\"a\":1},\"a\":\"x\\\"y\"}", "\"x\\\"y\""},
		{"{\"a\":1,\"a\":{}}", "{}"},
		{"{\"a\":true,\"b\":}", "true"},
		{"{}", NULL},
		{"[\"a\",1]", NULL},
		{"{\"b\":\"a\"}", NULL},
		{"{\"a\"}", NULL},
		{"{\"a\":", NULL},
		{"{\"a\":{", NULL},
		{"{\"a\":\"", NULL},
		{"{\"a\":\"\\", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < array_size(table); i++) {
		struct spec_span s = {table[i].text, table[i].text + strlen(table[i].text)};
		struct spec_span value;
		bool found = spec_span_member(s, "a", &value);

		assert_int_equal(found, table[i].value != NULL);
		if (!found)
			continue;
		assert_int_equal(spec_span_len(value), strlen(table[i].value));
		assert_memory_equal(value.p, table[i].value, spec_span_len(value));
	}
}

static void test_is(void **state)
{
	static const char text[] = "\"ab\"";
	struct spec_span s = {text, text + strlen(text)};

	(void)state;
	assert_true(spec_span_is(s, "ab"));
	assert_false(spec_span_is(s, "a"));
	assert_false(spec_span_is(s, "abc"));
	s.p++;
	assert_false(spec_span_is(s, "b"));
}

/* As one byte after the other says, wherever the byte stands that ends the run. */
static void test_plain(void **state)
{
	char text[40];

	(void)state;
	for (int c = 0; c < 256; c++) {
		bool plain = c >= 0x20 && c != '"' && c != '\\';

		for (size_t at = 0; at < sizeof(text); at++) {
			memset(text, at % 2 ? 'a' : 0xc3, sizeof(text));
			text[at] = (char)c;
			assert_ptr_equal(spec_span_plain(text, text + sizeof(text)),
					 text + (plain ? sizeof(text) : at));
			assert_ptr_equal(spec_span_plain(text, text + at), text + at);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_member),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
