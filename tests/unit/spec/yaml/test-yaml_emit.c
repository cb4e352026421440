/* SPDX-License-Identifier: MIT */
/*
 * Writing YAML: its style, and that every parser reads the same value. The test does not run other
 * parsers, as tests/golden/test_yaml.py does. It lists texts that they read as something other than
 * text, and these must be quoted.
 */
#include <json-c/json.h>

#include "spec/base/mem.h"
#include "spec/yaml/yaml.h"
#include "tests/unit/unit.h"

static char *emit(struct json_object *value, unsigned flow_depth)
{
	size_t len;
	char *text;

	spec_yaml_emit(value, flow_depth, &text, &len);
	assert_int_equal(strlen(text), len);
	return text;
}

static void check(const char *json, unsigned flow_depth, const char *expected)
{
	struct json_object *value = json_tokener_parse(json);
	cleanup_free char *text = emit(value, flow_depth);

	assert_string_equal(text, expected);
	json_object_put(value);
}

static void test_layout(void **state)
{
	static const char json[] = "{\"id\": \"x-1\", \"roles\": [{\"name\": \"a\", \"k\": [1, [2, "
				   "3]], \"e\": {}}, {\"l\": []}], \"m\": {\"k\": {\"v\": null}}}";

	check(json, 0,
	      "id: x-1\n"
	      "roles:\n"
	      "- name: a\n"
	      "  k:\n"
	      "  - 1\n"
	      "  - - 2\n"
	      "    - 3\n"
	      "  e: {}\n"
	      "- l: []\n"
	      "m:\n"
	      "  k:\n"
	      "    v: null\n");
	check(json, 2,
	      "id: x-1\n"
	      "roles:\n"
	      "- {name: a, k: [1, [2, 3]], e: {}}\n"
	      "- {l: []}\n"
	      "m:\n"
	      "  k: {v: null}\n");
	check(json, 1,
	      "id: x-1\n"
	      "roles: [{name: a, k: [1, [2, 3]], e: {}}, {l: []}]\n"
	      "m: {k: {v: null}}\n");
	check("[[[1]], \"a\"]", 0, "- - - 1\n- a\n");
	check("{}", 0, "{}\n");
	check("null", 0, "null\n");
	check("\"a\\nb\"", 0, "\"a\\nb\"\n");
	check("[true, false, -1, 18446744073709551615, 1e22, 0.1, 2.0, 1E5]", 1,
	      "- true\n- false\n- -1\n- 18446744073709551615\n- 1.0e+22\n- 0.1\n- 2.0\n"
	      "- 100000.0\n");
}

static void test_text(void **state)
{
	check("{\"a\": \"echo hi\\n  done\\n\"}", 0, "a: |\n  echo hi\n    done\n");
	check("{\"a\": [\"x\\n\\ny\", {\"b\": \"z\\n\\n\\n\"}]}", 0,
	      "a:\n- |-\n  x\n\n  y\n- b: |+\n    z\n\n\n");
	check("{\"a\": \"\\n  x\\n\"}", 0, "a: |2\n\n    x\n");
	check("{\"a\": \"x\\r\\ny\\n\"}", 0, "a: \"x\\r\\ny\\n\"\n");
	check("{\"a\": \"\\n\"}", 0, "a: \"\\n\"\n");
	check("{\"a\\nb\": {\"c\": \"d\\ne\"}}", 1, "\"a\\nb\": {c: \"d\\ne\"}\n");
	check("{\"a\": \"it's\", \"b\": \"say \\\"x\\\" \\\\ it's\"}", 0,
	      "a: it's\nb: say \"x\" \\ it's\n");
	check("{\"a\": \"- {\\\"x\\\": 'y'}\"}", 0, "a: '- {\"x\": ''y''}'\n");
	check("[\"\xc3\xa9\", \"\xe6\x97\xa5 \xf0\x9f\x98\x80\"]", 0,
	      "- \xc3\xa9\n- \xe6\x97\xa5 \xf0\x9f\x98\x80\n");
	check("[\"\\u0007\\u0000\\t\", \"\\u0085\\u2028\\ufeff\\u007f\"]", 0,
	      "- \"\\x07\\x00\\t\"\n- \"\\x85\\u2028\\ufeff\\x7f\"\n");
	check("[\"a, b\", \"a:b\", \"x]\"]", 0, "- a, b\n- a:b\n- x]\n");
	check("{\"k\": [\"a, b\", \"a:b\", \"x]\"]}", 1, "k: [\"a, b\", \"a:b\", \"x]\"]\n");
}

/* Bytes that are not UTF-8 can't be written as YAML. The rest of the text is kept. */
static void test_invalid_utf8(void **state)
{
	struct json_object *value = json_object_new_string("a\xff\xc3 b");
	cleanup_free char *text = emit(value, 0);

	assert_string_equal(text, "\"a\xef\xbf\xbd\xef\xbf\xbd b\"\n");
	json_object_put(value);
}

/*
 * Texts, separated by "|". Parsers of YAML 1.1 or 1.2 read these as another type, or as syntax. The
 * first one is empty.
 */
static const char quoted[] =
	"|~|null|Null|NULL|true|True|FALSE|yes|No|ON|off|y|N|1|+1|-1|0|00|1.0|1.|.5|-.5|+.5|1e3|1E3|"
	"12e03|-1.5e-3|0x1F|0o17|017|0b11|1_000|1:30|190:20:30.15|1.2.3|.inf|-.INF|+.inf|.nan|.NaN|"
	"nan|inf|.|..|...|-|+|--|---|--- a|2024-01-01|2024-01-01T00:00:00Z|2024-01-01 00:00:00 +1|=|"
	"<<|- a|-\ta|a: b|a:|:|:a|a #b|#a|{}|[]|[a|]|}|,|*x|&x|!t|>|> x|%d|@a|`b`|'|'a'|\"|\"a\"|?|"
	"? a| | a|a |\t|a\tb|\x1b|\xc2\x85|\xe2\x80\xa8|\xef\xbb\xbf";

/* These need no quotes, and would be less readable with them. */
static const char plain[] =
	"a|trainer-0|-c|--lr=0.1|-m|a b|/bin/sh|http://a/b?c=d|a:b|it's|x7k2pd0|python3|1st|10Gi|"
	"img:1.10|a=b|${app_id}|e|nul|yesno|\xc3\xa9|\xc2\xa0x";

/* Call FN with each text in LIST. */
static void each(const char *list, void (*fn)(const char *text))
{
	cleanup_free char *copy = text_copy(list);
	char *rest = copy, *text;

	while ((text = strsep(&rest, "|")))
		fn(text);
}

/* True if TEXT is written without quotes as the item of a list. */
static bool is_written_plain(const char *text)
{
	struct json_object *list = json_object_new_array();
	cleanup_free char *written = NULL, *expected = text_print("- %s\n", text);

	json_object_array_add(list, json_object_new_string(text));
	written = emit(list, 0);
	json_object_put(list);
	return streq(written, expected);
}

static void check_quoted(const char *text)
{
	if (is_written_plain(text))
		fail_msg("%s must be quoted", text);
}

static void check_plain(const char *text)
{
	if (!is_written_plain(text))
		fail_msg("%s needs no quotes", text);
}

static void test_quoting(void **state)
{
	each(quoted, check_quoted);
	check_quoted("|");
	check_quoted("|-");
	each(plain, check_plain);
}

/* --- round trips with our own parser --- */

static void check_round_trip(struct json_object *value, unsigned flow_depth)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct json_object *again = NULL;
	struct spec_yaml *root = NULL;
	cleanup_free char *text = emit(value, flow_depth);

	if (spec_yaml_parse(text, strlen(text), &root, &e) < 0)
		fail_msg("%s", text);
	again = spec_yaml_to_json(root);
	if (!json_object_equal(value, again))
		fail_msg("%s", text);
	json_object_put(again);
	spec_yaml_free(root);
}

/* Write the text as a root, an item, a value and a key, and nested in each of these. */
static void check_everywhere(const char *s)
{
	struct json_object *list = json_object_new_array(), *map = json_object_new_object();

	json_object_array_add(list, json_object_new_string(s));
	json_object_array_add(list, json_object_new_string(s));
	json_object_object_add(map, s, json_object_new_string(s));
	json_object_object_add(map, "other", json_object_get(list));
	json_object_array_add(list, NULL);
	check_round_trip(json_object_array_get_idx(list, 0), 0);
	for (unsigned flow_depth = 0; flow_depth < 3; flow_depth++)
		check_round_trip(map, flow_depth);
	json_object_put(map);
	json_object_put(list);
}

static void test_round_trip(void **state)
{
	each(quoted, check_everywhere);
	each(plain, check_everywhere);
	each("\n|\n\n|a\n|a\n\n|\na|\n\n  a\n| a\nb|a\n b\n|a\n  \nb|a  \nb|a\r\nb|\r|\ta\nb|a\n\tb|"
	     "a\n# c\n|a\n---\nb\n|a\n...\n|- a\n- b\n|a: b\nc: d\n|#x\ny|a\xe2\x80\xa8\x62\n|tail\n |"
	     "tail\n \n|a\n\n\nb\n\n\n|a\x7f\x62\n|\\|a'b\"c\\",
	     check_everywhere);
	check_everywhere("|\n x");
	/* Parsers look for the ":" of a key only within a limited number of characters. */
	for (int n = 2000; n > 900; n -= 50) {
		cleanup_free char *key = text_print("k%0*d", n - 1, 0);

		check_everywhere(key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),	     cmocka_unit_test(test_text),
		cmocka_unit_test(test_invalid_utf8), cmocka_unit_test(test_quoting),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
