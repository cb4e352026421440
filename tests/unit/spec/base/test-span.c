/* SPDX-License-Identifier: MIT */
/* Members of JSON text, which are found without parsing it. */
#include "spec/base/span.h"
#include "tests/unit/unit.h"

static void test_member(void **state)
{
	static const struct {
		const char *text, *value; /* the value of "a"; NULL: there is none */
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

	assert_true(spec_span_is(s, "ab"));
	assert_false(spec_span_is(s, "a"));
	assert_false(spec_span_is(s, "abc"));
	s.p++;
	assert_false(spec_span_is(s, "b"));
}

/* The result is that of looking at one byte after the other, wherever the byte stands that ends the run. */
static void test_plain(void **state)
{
	char text[40];

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

/* The result is that of looking at one byte after the other, in whatever pieces the text comes. */
static void test_nest(void **state)
{
	static const char *const texts[] = {
		"}",
		"]]",
		"\"a\":[{\"b\":\"]}\"},{}],\"c\":{}}, \"rest\"",
		"\"{{{{{{{{{{{{{{{{{{\",\"}}}}}}}}}}}}}}\",[[[[[[[[[[]]]]]]]]]],{{{{}}}}}   ",
		"\"\\\"\",\"\\\\\",\"\\\\\\\"}\",\"0123456789 0123456789 0123456789 \\u007d\"]]]]",
		"\"\xc3\xa9\xfb\xfd\xdb\xdd\xa2\"}[[[[[[[[[[[[",
		"0,1,2,3,4,5,6,7,8,9,[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"],\"\",[[[[[[[[[[[[[[]]]]]]]]]]]]]]}x",
		"[[\"never closed",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
	};

	for (size_t i = 0; i < array_size(texts); i++) {
		const char *end = texts[i] + strlen(texts[i]), *want = texts[i];
		struct spec_nest one = {.depth = 1};

		while (want < end && one.depth > 0 && one.depth <= 20)
			want = spec_span_nest(&one, 20, want, want + 1);
		for (size_t piece = 2; piece < 40; piece++) {
			struct spec_nest n = {.depth = 1};
			const char *p = texts[i];

			while (p < end && n.depth > 0 && n.depth <= 20)
				p = spec_span_nest(&n, 20, p, p + min_of(piece, (size_t)(end - p)));
			assert_ptr_equal(p, want);
			assert_int_equal(n.depth, one.depth);
			assert_int_equal(n.string, one.string);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_member),
		cmocka_unit_test(test_nest),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
