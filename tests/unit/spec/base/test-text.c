/* SPDX-License-Identifier: MIT */
/* Small functions for bytes and texts, one section per module. */
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "spec/base/amount.h"
#include "spec/base/encode.h"
#include "spec/base/key_table.h"
#include "spec/base/mem.h"
#include "spec/base/span.h"
#include "spec/base/time.h"
#include "spec/base/tree.h"
#include "spec/base/utf8.h"
#include "tests/unit/unit.h"

/* --- amounts of resources, as the server writes them and as people read them --- */

static void test_amount(void **state)
{
	static const struct {
		const char *text;
		double value;
	} table[] = {
		{"0", 0},	 {"2400m", 2.4},      {"456M", 456e6},
		{"1.5Ki", 1536}, {"1Gi", 1073741824}, {".5", 0.5},
		{"5.", 5},	 {"1e3", 1000},	      {"25E-1", 2.5},
		{"2E", 2e18},	 {"100n", 1e-7},
	};
	static const char *const bad[] = {"",	   "m",
					  "1e",	   "-1",
					  "nan",   "0x10",
					  "1.2.3", "1e99",
					  "1 Gi",  "12345678901234567890123456789012345678901"};

	for (size_t i = 0; i < array_size(table); i++) {
		double off = spec_amount_value(table[i].text) - table[i].value;

		if (off > 1e-9 || off < -1e-9)
			fail_msg("%s: %f", table[i].text, off);
	}
	for (size_t i = 0; i < array_size(bad); i++)
		assert_true(spec_amount_value(bad[i]) == -1);
}

static void test_amount_print(void **state)
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

/* --- base64 --- */

static void test_base64(void **state)
{
	static const char *const pairs[][2] = {
		{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob\xff", "Zm9vYv8="},
	};
	static const char *const bad[] = {"Z",	      "Zg",   "Zg=",  "Zm9v=", "Zh==",	  "Z===",
					  "Zg==Zg==", "Zm9*", "====", "Zm 9v", "Zm9v\x80"};
	size_t n;

	for (size_t i = 0; i < array_size(pairs); i++) {
		cleanup_free char *to = spec_base64_encode(pairs[i][0], strlen(pairs[i][0]));
		cleanup_free char *from = spec_base64_decode(pairs[i][1], strlen(pairs[i][1]), &n);

		assert_string_equal(to, pairs[i][1]);
		assert_string_equal(from, pairs[i][0]);
		assert_int_equal(n, strlen(pairs[i][0]));
	}
	for (size_t i = 0; i < array_size(bad); i++)
		assert_null(spec_base64_decode(bad[i], strlen(bad[i]), &n));
	free(spec_base64_decode("Zm\r\n9v\n", 7, &n));
	assert_int_equal(n, 3);
}

/* --- SHA-256: examples of FIPS 180-4, and lengths near those where padding adds a block --- */

static void check(const char *text, size_t len, const char *expected)
{
	char got[65];

	spec_sha256(text, len, got);
	assert_string_equal(got, expected);
}

static void test_sha256(void **state)
{
	cleanup_free char *million = text_print("%01000000d", 0);

	check("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
	      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	for (char *c = million; *c; c++)
		*c = 'a';
	check(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_sha256_padding(void **state)
{
	static const struct {
		size_t len;
		const char *digest;
	} table[] = {
		{55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
		{56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
		{63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
		{64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
		{65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"},
		{119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c"},
		{120, "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98"},
	};
	char text[128];

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < array_size(table); i++)
		check(text, table[i].len, table[i].digest);
}

/* --- RFC 3339 times --- */

static void test_time(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		int64_t ns;
	} good[] = {
		{"1970-01-01T00:00:00Z", 20, 0},
		{"2026-11-21T09:08:40.123456789Z x", 30, 1795252120123456789},
		{"2026-11-21T09:08:40.5+02:30 x", 27, 1795243120500000000},
		{"2026-11-21t09:08:40.1234567891z", 31, 1795252120123456789},
		{"1969-12-31T23:59:59.75-00:00", 28, -250000000},
		{"0001-01-01T00:00:00Z", 20, INT64_MIN},
		{"9999-12-31T23:59:60Z", 20, INT64_MAX},
		{"2028-02-29T00:00:00Z", 20, 1835395200000000000},
		{"2000-02-29T00:00:00Z", 20, 951782400000000000},
		{"2026-01-31T00:00:00Z", 20, 1769817600000000000},
	};
	static const char *const bad[] = {
		"2026-11-21 09:08:40Z", "2026-11-21T09:08:40",	    "2026-11-21T09:08:40.Z",
		"2026-13-21T09:08:40Z", "2026-11-21T24:08:40Z",	    "2026-11-31T09:08:40Z",
		"2026-12-32T09:08:40Z", "2026-02-29T09:08:40Z",	    "2100-02-29T09:08:40Z",
		"+026-11-21T09:08:40Z", "2026-11-21T09:08:40+1:00",
	};
	int64_t ns;

	for (size_t i = 0; i < array_size(good); i++) {
		assert_int_equal(spec_time_parse(good[i].text, strlen(good[i].text), &ns),
				 good[i].len);
		assert_true(ns == good[i].ns);
	}
	for (size_t i = 0; i < array_size(bad); i++)
		assert_int_equal(spec_time_parse(bad[i], strlen(bad[i]), &ns), 0);
	for (size_t n = 0; n < 30; n++)
		assert_int_equal(spec_time_parse(good[1].text, n, &ns), 0);
}

/* --- JSON trees: parsing, and numbers --- */

/* AGAIN is how the tree of JSON is printed, or NULL if JSON is null or invalid. */
static void test_tree(void **state)
{
	static const struct {
		const char *json, *again;
	} table[] = {
		{" {\"a\" : [1, {\"b\": null}, \"x/\\u0000\\u00e4\"], \"c\": {}, \"d\": []} ",
		 "{\"a\":[1,{\"b\":null},\"x/\\u0000\xc3\xa4\"],\"c\":{},\"d\":[]}"},
		{"{\"a\":1,\"b\":true,\"a\":false}", "{\"a\":false,\"b\":true}"},
		{"[-0, 9223372036854775807, -9223372036854775808]",
		 "[0,9223372036854775807,-9223372036854775808]"},
		/*
		 * Integers have up to 64 bits. Larger numbers become doubles, which are printed in
		 * the shortest form.
		 */
		{"[9223372036854775808, 18446744073709551615]",
		 "[9223372036854775808,18446744073709551615]"},
		{"[18446744073709551616, -9223372036854775809]",
		 "[1.8446744073709552e+19,-9.223372036854776e+18]"},
		{"[0.10, 2.0, 1e22, -1.5E-3, 1.5e-7]", "[0.1,2.0,1.0e+22,-0.0015,1.5e-07]"},
		{"[0.333333333333333314829616256247, 5e-324]",
		 "[0.3333333333333333,4.94065645841247e-324]"},
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

/* --- escaping in URLs --- */

static void test_url(void **state)
{
	static const char *const cases[][2] = {
		{"", ""},
		{"eyJ2IjoibWV0YS5rOHMuaW8_-~.", "eyJ2IjoibWV0YS5rOHMuaW8_-~."},
		{"a=b,c in (d)", "a%3Db%2Cc%20in%20%28d%29"},
		{"50%&x#\n", "50%25%26x%23%0A"},
		{"\xc3\xa4\xff", "%C3%A4%FF"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		cleanup_free char *got = spec_url_escape(cases[i][0]);

		assert_string_equal(got, cases[i][1]);
	}
}

/* --- texts without control characters --- */

static void test_utf8(void **state)
{
	static const struct {
		const char *text, *keep, *want;
	} cases[] = {
		{"", "", ""},
		{"plain, \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x98\x80", "", NULL},
		{"a\nb\tc\rd", "", "a\\nb\\tc\\rd"},
		{"a\nb\tc\rd", "\n\t", "a\nb\tc\\rd"},
		{"\x1b[31mred\x7f\x07", "\n\t", "\\x1b[31mred\\x7f\\x07"},
		/*
		 * C1 control characters, as one byte and as a character. A terminal acts on both.
		 */
		{"\x9b 2J", "", "\\x9b 2J"},
		{"\xc2\x9b 2J", "", "\\x9b 2J"},
		{"\xc2\xa0", "", NULL},
		/* Truncated, overlong, a surrogate, and too large. */
		{"\xe2\x82", "", "\\xe2\\x82"},
		{"\xc0\xafx", "", "\\xc0\\xafx"},
		{"\xed\xa0\x80", "", "\\xed\\xa0\\x80"},
		{"\xf5\x80", "", "\\xf5\\x80"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		const char *want = cases[i].want ? cases[i].want : cases[i].text;
		cleanup_free char *got = spec_utf8_clean_copy(cases[i].text, cases[i].keep);

		assert_string_equal(got, want);
		assert_int_equal(spec_utf8_is_clean(cases[i].text, cases[i].keep),
				 strcmp(cases[i].text, want) == 0);
		assert_true(spec_utf8_is_clean(got, cases[i].keep));
	}
}

/* --- hash table with text keys --- */

struct item {
	char key[16];
};

static const char *key_of(const void *item)
{
	return ((const struct item *)item)->key;
}

static void test_table(void **state)
{
	static struct item items[1000];
	struct key_table t = {.key = key_of};
	size_t at = 0, n = 0;

	assert_null(key_table_find(&t, ""));
	for (size_t i = 0; i < array_size(items); i++) {
		snprintf(items[i].key, sizeof(items[i].key), "%zu", i * i);
		key_table_add(&t, &items[i]);
	}
	/* Remove two of three. The rest must still be found. */
	for (size_t i = 0; i < array_size(items); i++)
		if (i % 3)
			key_table_remove(&t, &items[i]);
	for (size_t i = 0; i < array_size(items); i++)
		assert_ptr_equal(key_table_find(&t, items[i].key), i % 3 ? NULL : &items[i]);
	while (key_table_next(&t, &at))
		n++;
	assert_int_equal(n, 334);
	assert_int_equal(t.n, 334);
	assert_true(4 * 1000 <= 3 * t.room && t.room <= 2048);
	key_table_clear(&t);
	assert_null(key_table_find(&t, "0"));
}

static void test_more(void **state)
{
	cleanup_free int *v = NULL, *grown = mem_grow(NULL, 0, sizeof(*grown));
	size_t n = 0;

	assert_non_null(grown);
	/* However the memory shrinks in between, there is always space for one more. */
	for (int i = 0; i < 1000; i++) {
		v = mem_more(v, n, sizeof(*v));
		assert_true(malloc_usable_size(v) >= (n + 1) * sizeof(*v));
		v[n++] = i;
		if (i % 100 == 99)
			n -= 70;
		grown = mem_grow(grown, (size_t)i + 1, sizeof(*grown));
		grown[i] = i;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(grown[i], i);
	for (int i = 0; i < 30; i++)
		assert_int_equal(v[i], i);
}

static void test_copy(void **state)
{
	cleanup_free char *bytes = mem_copy("a\0b", 3), *text = text_copy("text");

	assert_memory_equal(bytes, "a\0b", 4);
	text_set(&text, "<%s>", text); /* the new text is made from the old one */
	assert_string_equal(text, "<text>");
}

/*
 * True if a child process that requests too much memory ends with an error. (A sanitizer ends it in
 * its own way.)
 */
static bool ends(int how)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		(void)!freopen("/dev/null", "w", stderr);
		signal(SIGABRT, SIG_DFL);
		free(how == 0	? mem_zero_n(SIZE_MAX / 2, 16)
		     : how == 1 ? mem_grow(NULL, SIZE_MAX / 2, 16)
				: mem_copy("", SIZE_MAX));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void test_none(void **state)
{
	cleanup_free void *none = mem_zero(0);

	assert_non_null(none);
	for (int how = 0; how < 3; how++)
		assert_true(ends(how));
}

static void test_member(void **state)
{
	static const char *const table[][2] = {
		/* a text, and the value of "a" */
		{"{'a':1}", "1"},
		{" { 'b' : '}' , 'a' : [ {'a':2} , ']' ] } ", "[ {'a':2} , ']' ]"},
		{"{'b':{'a':1},'a':'x\\'y'}", "'x\\'y'"},
		{"{'a':1,'a':{}}", "{}"},
		{"{'a':true,'b':}", "true"},
		{"{}", NULL},
		{"['a',1]", NULL},
		{"{'b':'a'}", NULL},
		{"{'a'}", NULL},
		{"{'a':", NULL},
		{"{'a':{", NULL},
		{"{'a':'", NULL},
		{"{'a':'\\", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *json = unit_json(text_copy(table[i][0]));
		struct spec_span s = {json, json + strlen(json)}, value;
		bool found = spec_span_member(s, "a", &value);

		assert_int_equal(found, table[i][1] != NULL);
		if (found) {
			cleanup_free char *want = unit_json(text_copy(table[i][1]));

			assert_int_equal(spec_span_len(value), strlen(want));
			assert_memory_equal(value.p, want, strlen(want));
		}
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

/* The result is the same as when checking one byte at a time, at whichever byte the run ends. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	     cmocka_unit_test(test_amount),
		cmocka_unit_test(test_amount_print), cmocka_unit_test(test_base64),
		cmocka_unit_test(test_sha256),	     cmocka_unit_test(test_sha256_padding),
		cmocka_unit_test(test_time),	     cmocka_unit_test(test_tree),
		cmocka_unit_test(test_url),	     cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_more),	     cmocka_unit_test(test_copy),
		cmocka_unit_test(test_none),	     cmocka_unit_test(test_member),
		cmocka_unit_test(test_plain),	     cmocka_unit_test(test_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
