/* SPDX-License-Identifier: MIT */
/* JSON from a server as values: what is accepted, and which texts are invalid. */
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/value.h"
#include "tests/unit/unit.h"

/* Parse TEXT without a NUL after it, so that reads beyond its end are detected. */
static int parse(const char *text, struct spec_value **ret)
{
	size_t len = strlen(text);
	char *copy cleanup_free = new0_n(char, len);

	memcpy(copy, text, len);
	return spec_value_parse_map(copy, len, ret);
}

static void test_values(void **state)
{
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *list, *map;

	assert_int_equal(
		parse(" { \"m\" : {\"t\":\"x\",\"n\":null} , \"l\":[1, {\"k\":\"v\"},[],\"s\" ],"
		      "\"i\":42,\"big\":2147483648,\"minus\":-1,\"float\":1.5e+3,\"yes\":true,"
		      "\"no\":false,\"word\":\"text\",\"\":7,\"empty\":{}}\r\n\t",
		      &o),
		0);
	map = spec_read_map(o, "m");
	assert_string_equal(spec_read_text(map, "t"), "x");
	assert_string_equal(spec_read_text(map, "n"), "");
	assert_null(spec_read_map(map, "n"));
	list = spec_read_list(o, "l");
	assert_int_equal(spec_read_count(list), 4);
	assert_string_equal(spec_read_text(spec_read_at(list, 1), "k"), "v");
	assert_null(spec_read_at(list, 4));
	assert_int_equal(spec_read_int(o, "i", 5), 42);
	assert_int_equal(spec_read_int(o, "big", 5), 5);
	assert_int_equal(spec_read_int(o, "minus", 5), 5);
	assert_int_equal(spec_read_int(o, "float", 5), 5);
	assert_int_equal(spec_read_int(o, "", 5), 7);
	assert_int_equal(spec_read_int(o, "word", 5), 5);
	assert_string_equal(spec_read_word(o, "float"), "1.5e+3");
	assert_string_equal(spec_read_word(o, "i"), "42");
	assert_string_equal(spec_read_word(o, "word"), "text");
	assert_string_equal(spec_read_word(o, "yes"), "");
	assert_true(spec_read_bool(o, "yes") && !spec_read_bool(o, "no"));
	assert_true(spec_read_flag(o, "word", true) && !spec_read_flag(o, "no", true));
	assert_true(spec_read_flag(map, "n", true));
	assert_int_equal(spec_read_count(spec_read_map(o, "empty")), 0);
	assert_null(spec_read_map(list, "m"));
	assert_null(spec_read_map(NULL, "m"));
}

static void test_texts(void **state)
{
	static const struct {
		const char *json, *text; /* the value of "a" */
	} table[] = {
		{"{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t"},
		{"{\"a\":\"x\\u0041\\u00e9\\u20ACy\"}", "xA\xc3\xa9\xe2\x82\xacy"},
		{"{\"a\":\"\\ud83d\\ude00!\"}", "\xf0\x9f\x98\x80!"},
		/* Halves of surrogate pairs. */
		{"{\"a\":\"\\ud83d\\u0041\"}", "\xef\xbf\xbd\x41"},
		{"{\"a\":\"\\ude00\\ud83d\"}", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"{\"a\":\"cut\\u0000here\"}", "cut"},
		{"{\"\\u0061\":\"key\"}", "key"},
		/* If a member occurs twice, the last one counts, even if it is not a string. */
		{"{\"a\":\"one\",\"a\":\"two\"}", "two"},
		{"{\"a\":\"one\",\"a\":2}", ""},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct spec_value *o cleanup_free = NULL;

		assert_int_equal(parse(table[i].json, &o), 0);
		assert_string_equal(spec_read_text(o, "a"), table[i].text);
	}
}

static void test_refused(void **state)
{
	/* Each part of this text is refused, and the whole is not. */
	static const char whole[] = " {\"a\":[1.5e+3,{\"b\\u00e9\\\"\":null}],\"c\":-0}";
	static const char *const texts[] = {
		"[]",	       "1",	"\"a\"",   "null",  "{,}",  "{\"a\" 1}", "{\"a\":1}x",
		"{\"a\":1}{}", "{a:1}", "{'a':1}", "{1:2}", "{:1}", "{/**/}",
	};
	/* no values of a member */
	static const char *const values[] = {
		"",    "1,",	 "1 2",	    "1,,",	 "[1,]",       "[,1]",
		"[1",  "[1 2]",	 "{]",	    "01",	 "-",	       "-01",
		"1.",  ".5",	 "1e",	    "1e+",	 "+1",	       "0x1",
		"nan", "NaN",	 "tru",	    "truely",	 "Infinity",   "'x'",
		"\"x", "\"\t\"", "\"\\q\"", "\"\\u12\"", "\"\\u1g4\"",
	};
	struct spec_value *o;

	for (size_t i = 0; i < array_size(texts); i++)
		assert_int_equal(parse(texts[i], &o), -EINVAL);
	for (size_t i = 0; i < array_size(values); i++) {
		cleanup_free char *text = text_print("{\"a\":%s}", values[i]);

		assert_int_equal(parse(text, &o), -EINVAL);
	}
	for (int n = 0; n < (int)strlen(whole); n++) {
		cleanup_free char *part = text_print("%.*s", n, whole);

		assert_int_equal(parse(part, &o), -EINVAL);
	}
	assert_int_equal(parse(whole, &o), 0);
	free(o);
	assert_int_equal(spec_value_parse_map("{}\0{}", 5, &o), -EINVAL);
	assert_int_equal(spec_value_parse_map("{\"a\":\"\0\"}", 9, &o), -EINVAL);
}

/* Any JSON, a NUL in a string, and a text that is larger than the limit. */
static void test_any(void **state)
{
	static const struct {
		const char *json, *text;
		enum spec_value_type type;
		unsigned n;
	} table[] = {
		{" null ", "null", SPEC_VALUE_NULL, 0},
		{"true", "true", SPEC_VALUE_BOOL, 0},
		{"-1.5e3", "-1.5e3", SPEC_VALUE_NUMBER, 0},
		{"\"a\\u0000\\u00e4\"", "a", SPEC_VALUE_STRING, 4},
		{"[1, {}]", "", SPEC_VALUE_LIST, 2},
	};
	size_t len = SPEC_MAX_WATCHED + 1;
	char *much = memset(new0_n(char, len), ' ', len);
	struct spec_value *o;

	for (size_t i = 0; i < array_size(table); i++) {
		assert_int_equal(spec_value_parse(table[i].json, strlen(table[i].json), &o), 0);
		assert_string_equal(o->text, table[i].text);
		assert_int_equal(o->type, table[i].type);
		assert_int_equal(o->n, table[i].n);
		free(o);
	}
	assert_int_equal(spec_value_parse("1 2", 3, &o), -EINVAL);
	much[len - 2] = '{';
	much[len - 1] = '}';
	assert_int_equal(spec_value_parse_map(much, len, &o), -EINVAL);
	assert_int_equal(spec_value_parse_map(much + 1, len - 1, &o), 0);
	free(o);
	assert_int_equal(spec_value_parse(much, len, &o), 0);
	free(o);
	free(much);
}

/* The greatest depth that the splitter accepts, and one more. */
static void test_depth(void **state)
{
	size_t deep = (size_t)2 * SPEC_MAX_DEPTH + 1;

	for (size_t depth = deep; depth <= deep + 1; depth++) {
		char text[1024] = "{\"a\":";
		struct spec_value *o;
		int err;

		memset(text + 5, '[', depth);
		memset(text + 5 + depth, ']', depth);
		text[5 + 2 * depth] = '}';
		err = parse(text, &o);
		assert_int_equal(err, depth == deep ? 0 : -EINVAL);
		if (!err)
			free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	cmocka_unit_test(test_texts),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_depth),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
