/* SPDX-License-Identifier: MIT */
/*
 * Parsing YAML: the meaning of a document, the positions and texts of its errors, and the limits.
 */
#include <errno.h>
#include <time.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/tree.h"
#include "spec/yaml/yaml.h"
#include "tests/unit/unit.h"

#define SIZED(s) (s), sizeof(s) - 1

/* --- meaning --- */

/* Assert that TEXT means the JSON value EXPECTED, or that it has the errors EXPECTED. */
static void check(const char *text, size_t len, const char *expected)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_yaml *root = NULL;
	int err = spec_yaml_parse(text, len, &root, &e);
	cleanup_free char *errors = spec_errors_text(&e, NULL);

	assert_int_equal(err, e.err);
	if (err < 0) {
		assert_messages(errors, expected);
	} else {
		struct json_object *value cleanup_json = spec_yaml_to_json(root);
		cleanup_free char *json = spec_tree_print(value);

		assert_string_equal(json, expected);
	}
	spec_yaml_free(root);
	spec_errors_clear(&e);
}

struct pair {
	const char *text, *expected;
};

static void check_all(const struct pair *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(table[i].text, strlen(table[i].text), table[i].expected);
}

static void test_scalars(void **state)
{
	static const struct pair table[] = {
		{"[1, -1, +5, 0, -0]", "[1,-1,5,0,0]"},
		{"[1.5, .5, 5., 1e3, 1E-3, -0.0]", "[1.5,0.5,5.0,1000.0,0.001,-0.0]"},
		/* Some parsers read these as numbers. */
		{"[010, 0x10, 0o10, 0b1, 1_000, 1:30, 00, 1.5.1]",
		 "[\"010\",\"0x10\",\"0o10\",\"0b1\",\"1_000\",\"1:30\",\"00\",\"1.5.1\"]"},
		{"[.inf, .nan, 1e999, ., -, e1, 1e, +]",
		 "[\".inf\",\".nan\",\"1e999\",\".\",\"-\",\"e1\",\"1e\",\"+\"]"},
		{"[9223372036854775807, 18446744073709551615, -9223372036854775808]",
		 "[9223372036854775807,18446744073709551615,-9223372036854775808]"},
		{"[18446744073709551616, -9223372036854775809]",
		 "[1.8446744073709552e+19,-9.223372036854776e+18]"},
		{"[true, True, FALSE, yes, no, on, off, y]",
		 "[true,true,false,\"yes\",\"no\",\"on\",\"off\",\"y\"]"},
		{"[null, ~, Null, nULL, ]", "[null,null,null,\"nULL\"]"},
		{"{a: , b:\n}", "{\"a\":null,\"b\":null}"},
		{"['1', \"true\", '', \"~\"]", "[\"1\",\"true\",\"\",\"~\"]"},
		{"[!!str 1, !!str true, !!str '']", "[\"1\",\"true\",\"\"]"},
		{"[!!int '1', !!float 1, !!float '1.5', !!bool \"true\", !!null '']",
		 "[1,1,1.5,true,null]"},
		{"[2024-01-01, 1.2.3, a:b, -x, http://a/b]",
		 "[\"2024-01-01\",\"1.2.3\",\"a:b\",\"-x\",\"http://a/b\"]"},
	};

	check_all(table, array_size(table));
}

static void test_styles(void **state)
{
	static const struct pair table[] = {
		{"a: plain words # not this", "{\"a\":\"plain words\"}"},
		{"a: 'it''s \\n'", "{\"a\":\"it's \\\\n\"}"},
		{"a: \"\\x41\\u00e9\\U0001F600\\/\"", "{\"a\":\"A\xc3\xa9\xf0\x9f\x98\x80/\"}"},
		{"a: |\n  x\n   y\n\n  z\n", "{\"a\":\"x\\n y\\n\\nz\\n\"}"},
		{"a: |-\n  x\nb: |+\n  y\n\n", "{\"a\":\"x\",\"b\":\"y\\n\\n\"}"},
		{"a: >\n  x\n  y\n\n  z\n", "{\"a\":\"x y\\nz\\n\"}"},
		{"a: |2\n    x\n", "{\"a\":\"  x\\n\"}"},
		{"a: |\r\n  x\r\n  y\r\nb: 1\r\n", "{\"a\":\"x\\ny\\n\",\"b\":1}"},
		{"\xef\xbb\xbf"
		 "a: 1",
		 "{\"a\":1}"},
		{"%YAML 1.2\n---\na: 1\n...\n", "{\"a\":1}"},
		{"? a\n: b\n", "{\"a\":\"b\"}"},
		{"- - a\n  - b\n-\n  c: d\n", "[[\"a\",\"b\"],{\"c\":\"d\"}]"},
		{"{\"a\":1,\n\t\"b\":[true,null]}", "{\"a\":1,\"b\":[true,null]}"},
		{"1: a\ntrue: b\n", "{\"1\":\"a\",\"true\":\"b\"}"},
	};

	check_all(table, array_size(table));
	check(SIZED("a: \"x\\0y\""), "{\"a\":\"x\\u0000y\"}");
}

/* JSON files as other programs write them. */
static void test_json(void **state)
{
	static const struct pair table[] = {
		{"{\"a\": \"\\ud83d\\ude00\"}", "{\"a\":\"\xf0\x9f\x98\x80\"}"},
		{"[\"\\\\ud83d\\\\ude00\"]", "[\"\\\\ud83d\\\\ude00\"]"},
		{"[\"\\ud83d\\ude00\", \"\\\\\\ud83d\\ude00\"]",
		 "[\"\xf0\x9f\x98\x80\",\"\\\\\xf0\x9f\x98\x80\"]"},
		/* Characters that must be escaped in YAML. */
		{"{\"\x7f\": \"\xe2\x80\xa8\xef\xbb\xbf\xc2\x85\"}",
		 "{\"\x7f\":\"\xe2\x80\xa8\xef\xbb\xbf\xc2\x85\"}"},
		/* These are not JSON: single quotes have no escapes. */
		{"{a: '\\ud83d\\ude00'}", "{\"a\":\"\\\\ud83d\\\\ude00\"}"},
		{"[\"\\ud83d\"]", "1:5: this escape is not a Unicode character\n"},
	};

	check_all(table, array_size(table));
}

static void test_aliases_and_merges(void **state)
{
	static const struct pair table[] = {
		{"a: &x [1, {b: 2}]\nc: *x\n", "{\"a\":[1,{\"b\":2}],\"c\":[1,{\"b\":2}]}"},
		{"a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}"},
		{"&k a: b\nc: *k\n", "{\"a\":\"b\",\"c\":\"a\"}"},
		{"a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\n  r: 4\n",
		 "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"p\":1,\"q\":3,\"r\":4}}"},
		{"a: {r: 4, p: 3, <<: {p: 1, q: 2}}", "{\"a\":{\"p\":3,\"q\":2,\"r\":4}}"},
		/* In a list of maps, the first one with a key counts. */
		{"<<: [{a: 1, b: 1}, {b: 2, c: 2}]\nd: 3\n", "{\"b\":1,\"c\":2,\"a\":1,\"d\":3}"},
		{"a: &x {<<: &y {p: 1}}\nb: *x\nc: *y\n",
		 "{\"a\":{\"p\":1},\"b\":{\"p\":1},\"c\":{\"p\":1}}"},
		{"\"<<\": 1", "{\"<<\":1}"},
		{"{<<: {a: 1, b: 1}, c: 0, <<: {b: 2, c: 2}}", "{\"a\":1,\"b\":2,\"c\":0}"},
		{"<<: 1", "1:5: <<: only a map or a list of maps can be merged...\n"},
	};

	check_all(table, array_size(table));
}

static void test_positions(void **state)
{
	static const char text[] = "# caf\xc3\xa9\n\xc3\xa9t\xc3\xa9: {a: 'x', b: [1, &z yes]}\n"
				   "c: *z\n";
	struct spec_errors e = SPEC_ERRORS_INIT;
	const struct spec_yaml *map, *list;
	struct spec_yaml *root;

	assert_int_equal(spec_yaml_parse(text, strlen(text), &root, &e), 0);
	assert_int_equal(root->line, 2);
	assert_int_equal(root->column, 1);
	map = spec_yaml_get(root, "\xc3\xa9t\xc3\xa9");
	assert_int_equal(map->type, SPEC_YAML_MAP);
	/* Columns count characters, not bytes. */
	assert_int_equal(map->column, 6);
	assert_false(spec_yaml_get(map, "a")->plain);
	list = spec_yaml_get(map, "b");
	assert_int_equal(list->n, 2);
	assert_int_equal(list->v[1]->column, 22);
	assert_true(list->v[1]->plain);
	assert_string_equal(list->v[1]->text, "yes");
	/* What an alias repeats has the position of the anchor. */
	assert_int_equal(spec_yaml_get(root, "c")->line, 2);
	assert_null(spec_yaml_get(root, "d"));
	assert_null(spec_yaml_get(list, "d"));
	spec_yaml_free(root);
}

/* --- errors --- */

static void test_documents(void **state)
{
	static const struct pair table[] = {
		{"", "the document is empty\n"},
		{"# nothing\n", "the document is empty\n"},
		{"---\n", "the document is empty\n"},
		{"---\n---\n# nothing\n---\nnull\n...\n", "the document is empty\n"},
		{"---\n# one\n---\na: &a 1\n---\n# nothing\n...\n---\n~\n", "{\"a\":1}"},
		{"{\"a\": 1}\n---\n", "{\"a\":1}"},
		/* An alias refers to an anchor in its own document. */
		{"a: &a 1\n---\nb: *a\n",
		 "3:4: there is no \"&a\" before this \"*a\"; text that begins...\n"},
		{"a: 1\n---\nb: 2\n",
		 "3:1: a second document begins here; write one document per file\n"},
		{"a: 1\nb: 2\na: 3\n\"b\": 4\n",
		 "3:1: the key \"a\" is given twice; the first is at line 1\n"
		 "4:1: the key \"b\" is given twice; the first is at line 2\n"},
		{"[a]: 1\n", "1:1: a key must be text, not a list\n"},
		{"? {a: 1}\n: 1\n", "1:3: a key must be text, not a map\n"},
		{"\"a\\0\": 1\n", "1:1: a key can't contain a NUL character\n"},
		{"a: *b\n", "1:4: there is no \"&b\" before this \"*b\"; text that begins...\n"},
		{"a: &a [*a]\n", "1:8: \"*a\" refers to a node that contains this alias\n"},
		{"a: !!python/tuple [1]\n",
		 "1:4: the tag !!python/tuple is not supported; write Python objects...\n"},
		{"a: !!binary aGk=\nb: !x y\nc: !!int z\n",
		 "1:4: the tag !!binary is not supported; text that begins...\n"
		 "2:4: the tag !x is not supported; text that begins...\n"
		 "3:4: the value does not fit its tag !!int\n"},
		{"a: !!map []\nb: !!seq {}\nc: !!str []\n",
		 "1:4: the value does not fit its tag !!map\n"
		 "2:4: the value does not fit its tag !!seq\n"
		 "3:4: the value does not fit its tag !!str\n"},
	};

	check_all(table, array_size(table));
}

static void test_bytes(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *errors;
	} table[] = {
		{SIZED("a: b\nc: caf\xe9\n"), "2:7: byte 0xe9 is not UTF-8...\n"},
		{SIZED("a: \xed\xa0\x80"), "1:4: byte 0xed is not UTF-8...\n"},
		{SIZED("a: \xc0\x80"), "1:4: byte 0xc0 is not UTF-8...\n"},
		{SIZED("a: \xf4\x90\x80\x80"), "1:4: byte 0xf4 is not UTF-8...\n"},
		{SIZED("a: \xe2\x82"), "1:4: byte 0xe2 is not UTF-8...\n"},
		{SIZED("\xff\xfe\x61\0:\0"), "1:1: the file is encoded in UTF-16...\n"},
		{SIZED("\xff\xfe\0\0a\0\0\0"), "1:1: the file is encoded in UTF-32...\n"},
		{SIZED("a: b\0c"), "1:5: the file contains a NUL byte; is it text?\n"},
		{SIZED("\x7f\x45LF\2\1"),
		 "1:1: the file begins with the control character U+007F...\n"},
		{SIZED("\x1f\x8b\x08"),
		 "1:1: the file begins with the control character U+001F...\n"},
		{SIZED("a: \x1b[1m"), "1:4: the control character U+001B is not allowed in a file; "
				      "write it as \"\\u001b\", in double quotes\n"},
		{SIZED("a:\r\nb: \xc2\x85"), "2:4: the line separator U+0085 is not allowed...\n"},
		{SIZED("a:\rb: \xef\xbb\xbf"),
		 "2:4: a byte order mark inside the text, U+FEFF is not allowed...\n"},
	};

	for (size_t i = 0; i < array_size(table); i++)
		check(table[i].text, table[i].len, table[i].errors);
}

static void test_syntax(void **state)
{
	static const struct pair table[] = {
		{"a:\n\tb: 1\n", "2:1: a tab can't be used to indent; use spaces\n"},
		{"a:\n  b: 1\n\tc: 2\n", "3:1: a tab can't be used to indent; use spaces\n"},
		{"a: 1\nb\nc: 2\n", "2:1: a key needs a \":\" after it...\n"},
		{"a: b: c\n", "1:5: a \"KEY: VALUE\" is not allowed here...\n"},
		{"a: 1\n  b: 2\n", "2:4: a \"KEY: VALUE\" is not allowed here...\n"},
		{"a: [1, 2\nb: 3\n",
		 "2:2: a \",\" or the closing \"]\" of the list is missing here (the list begins at line "
		 "1, column 4)\n"},
		{"a: {b: 1\n",
		 "2:1: a \",\" or the closing \"}\" of the map is missing here (the map begins at line "
		 "1, column 4)\n"},
		{"a: \"x\nb: 1\n", "1:4: this quoted text is never closed\n"},
		{"a: 'x\n---\n", "1:4: this quoted text is not closed before a line...\n"},
		{"a: \"\\d\"\n", "1:5: this escape is not known...\n"},
		{"a: \"\\xg\"\n", "1:7: the escapes \\x, \\u and \\U need 2, 4 and 8...\n"},
		{"a: @x\n", "1:4: text can't begin with \"@\"; put it in quotes\n"},
		{"a: %x\n", "1:4: text can't begin with \"%\"; put it in quotes\n"},
		{"a: *.log\n", "1:4: \"&\" and \"*\" begin an anchor or alias here...\n"},
		{"a: !e!x y\n", "1:4: this tag (\"!NAME\") is unknown; text that begins...\n"},
		{"a: \"x\" y\n", "1:8: this does not belong to the map around it...\n"},
		{"- a\nb: 1\n", "2:1: this is not an item (\"- \") of the list around it...\n"},
		{"a: - b\n", "1:4: a list item (\"- \") can't begin here...\n"},
		{"a: |x\n  b\n", "1:5: after \"|\" or \">\" the text begins on the next line...\n"},
		{"a: |0\n", "1:5: the indentation after \"|\" or \">\" must be...\n"},
		{"a: [b, , c]\n", "1:8: a value is missing here\n"},
		{"{a: 1}}\n", "1:7: the document ends before this...\n"},
		{"%TAG !e! tag:yaml.org,2002:\n---\na\n", "1:1: %TAG is not supported...\n"},
		{"a\n...\n%TAG !e! x\n---\na\n", "3:1: %TAG is not supported...\n"},
		{"%YAML 3.0\n---\na\n", "1:1: kxfs reads only YAML 1.1 and 1.2\n"},
	};

	check_all(table, array_size(table));
}

/* --- limits --- */

/*
 * Parse BEFORE, COUNT times TEXT, and AFTER. Assert that this is refused with -EFBIG and a message
 * that contains EXPECTED, or that it is accepted if EXPECTED is NULL.
 */
static void check_bound(const char *before, const char *text, size_t count, const char *after,
			const char *expected)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_yaml *root = NULL;
	cleanup_free char *whole = NULL;
	clock_t start = clock();
	size_t len;
	FILE *out = text_stream(&whole, &len);
	int err;

	fputs(before, out);
	for (size_t i = 0; i < count; i++)
		fputs(text, out);
	fputs(after, out);
	text_stream_close(out);
	err = spec_yaml_parse(whole, len, &root, &e);
	assert_int_equal(err, expected ? -EFBIG : 0);
	if (expected && !strstr(e.v[0].text, expected))
		fail_msg("%s, not %s", e.v[0].text, expected);
	/* Work that grows with the square of the input would take minutes. */
	assert_true((clock() - start) / CLOCKS_PER_SEC < 10);
	spec_yaml_free(root);
	spec_errors_clear(&e);
}

static void test_size(void **state)
{
	check_bound("", "x", SPEC_MAX_FILE, "", NULL);
	check_bound("", "x", SPEC_MAX_FILE + 1, "", "the file has more than 1048576 bytes (1 MiB)");
	check_bound("a: |\n", "  line\n", 100000, "", NULL);
	check_bound("a: \"", "word \\\n", 100000, "\"", NULL);
	check_bound("a: 1", "\n", 1000000, "b: 2\n", NULL);
	check_bound("a: 1 ", "#", 1000000, "\n", NULL);
	check_bound("[", "x,", SPEC_MAX_NODES - 1, "]", NULL);
	check_bound("[", "x,", SPEC_MAX_NODES, "]", "more than 200000 values");
}

static void test_depth(void **state)
{
#define CLOSE24 "]]]]]]]]]]]]]]]]]]]]]]]]"
#define CLOSE40 "]]]]]]]]]]]]]]]]" CLOSE24
	static const char too_deep[] = "maps and lists are nested more than 64 levels deep";

	check_bound("", "[", 64, "x" CLOSE24 CLOSE40, NULL);
	check_bound("", "[", 65, "x", too_deep);
	check_bound("", "[", 1000000, "", too_deep);
	check_bound("", "{a: ", 200000, "", too_deep);
	check_bound("", "- ", 65, "x", too_deep);
	check_bound("", "? ", 500000, "", too_deep);
	/* An alias adds the depth of what it repeats. */
	check_bound("a: &a ", "[", 40, CLOSE40 "\nb: [[[[[[[[[[[[[[[[[[[[[[[[*a" CLOSE24 "\n",
		    too_deep);
}

static void test_bombs(void **state)
{
	cleanup_free char *laughs = text_copy("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
	cleanup_free char *x100000 = text_print("a: &a x%099999d\nb: [", 0);

	for (int c = 'b', d = 'a'; c < 'j'; d = c++)
		text_set(&laughs, "%s%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", laughs,
			 c, c, d, d, d, d, d, d, d, d, d, d);
	check_bound(laughs, "", 0, "", "more than 200000 values (aliases expanded)");
	/* Few values, but many bytes. */
	check_bound(x100000, "*a,", 9, "]\n", NULL);
	check_bound(x100000, "*a,", 11, "]\n", "more than 1048576 bytes (aliases expanded)");
}

/* Many different keys, and many anchors. */
static void test_linear(void **state)
{
	cleanup_free char *keys = NULL, *anchors = NULL;
	size_t len;
	FILE *out = text_stream(&keys, &len);

	for (int i = 0; i < 60000; i++)
		fprintf(out, "k%d: v\n", i);
	text_stream_close(out);
	check_bound(keys, "", 0, "", NULL);
	out = text_stream(&anchors, &len);
	for (int i = 0; i < 40000; i++)
		fprintf(out, "&a%d x, *a%d,", i, i / 2);
	text_stream_close(out);
	check_bound("[", anchors, 1, "]", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scalars),	  cmocka_unit_test(test_styles),
		cmocka_unit_test(test_json),	  cmocka_unit_test(test_aliases_and_merges),
		cmocka_unit_test(test_positions), cmocka_unit_test(test_documents),
		cmocka_unit_test(test_bytes),	  cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_size),	  cmocka_unit_test(test_depth),
		cmocka_unit_test(test_bombs),	  cmocka_unit_test(test_linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
