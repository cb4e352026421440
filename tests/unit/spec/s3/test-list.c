/* SPDX-License-Identifier: MIT */
/* Lists of spec/s3/reply.h, of friendly and of hostile servers. */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/s3/reply.h"
#include "tests/unit/unit.h"

#define OBJECT(key, size) "<Contents><Key>" key "</Key><Size>" size "</Size></Contents>"
#define FOLDER(name)	  "<CommonPrefixes><Prefix>" name "</Prefix></CommonPrefixes>"
#define LIST(inside)                                                                               \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>"                                               \
	"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" inside              \
	"</ListBucketResult>"
#define MORE "<IsTruncated>true</IsTruncated>"

#define list_scope struct spec_s3_list cleanup(spec_s3_list_clear)

static int parse(const char *text, const char *prefix, const char *after, struct spec_s3_list *ret)
{
	return spec_s3_list_parse(text, strlen(text), prefix, after, ret);
}

/* The names of TEXT below PREFIX behind AFTER are NAMES, with a blank behind each. */
static void expect(const char *text, const char *prefix, const char *after, const char *names)
{
	cleanup_free char *found = text_copy("");
	list_scope l;

	assert_int_equal(parse(text, prefix, after, &l), 0);
	for (size_t i = 0; i < l.n; i++)
		text_set(&found, "%s%s ", found, l.v[i].name);
	assert_string_equal(found, names);
}

static void test_list(void **state)
{
	static const char text[] =
		LIST("<Name>logs</Name><Prefix>a/</Prefix>"
		     "<IsTruncated>false</IsTruncated>" OBJECT("a/list.jsonl", "8388608")
			     OBJECT("a/b", "0") FOLDER("a/z/") FOLDER("a/c/"));
	list_scope l;

	assert_int_equal(parse(text, "a/", NULL, &l), 0);
	assert_int_equal(l.n, 4);
	assert_string_equal(l.v[0].name, "b");
	assert_string_equal(l.v[1].name, "c/");
	assert_string_equal(l.v[2].name, "list.jsonl");
	assert_int_equal(l.v[2].size, 8388608);
	assert_string_equal(l.v[3].name, "z/");
	assert_int_equal(l.v[3].size, 0);
	assert_false(l.more);
	expect(text, "a/", "c/", "list.jsonl z/ ");
	expect(text, "a/", "z/", "");
	expect(LIST(""), "a/", NULL, "");
}

static void test_escaped(void **state)
{
	/* Where the list says so, wherever it says so; and only where it is an escape. */
	expect(LIST(OBJECT("a%2Fx+%2b%7E%", "1") "<EncodingType>url</EncodingType>"), "a/", NULL,
	       "x +~% ");
	expect(LIST(OBJECT("a/x%2by", "1")), "a/", NULL, "x%2by ");
	expect(LIST("<EncodingType>url</EncodingType>" OBJECT("a%00", "1") OBJECT("b", "1")), "",
	       NULL, "b ");
	expect(LIST(OBJECT("a &amp; b", "1")), "", NULL, "a & b ");
	/* Another way to say the same names. */
	expect("<s3:ListBucketResult xmlns:s3=\"x\"><s3:Contents><s3:Key>k</s3:Key></s3:Contents>"
	       "</s3:ListBucketResult>",
	       "", NULL, "k ");
}

/* What can't be a name of ours is not shown. */
static void test_foreign(void **state)
{
	expect(LIST("<EncodingType>url</EncodingType>" OBJECT("a/", "0") OBJECT("a/b/c", "1")
			    OBJECT("b", "1") OBJECT("a/.", "1") OBJECT("a/..", "1") FOLDER(
				    "a/../") FOLDER("a//") FOLDER("a/x") FOLDER("a/y/z/")
				    OBJECT("a/%0a", "1") OBJECT("a/%ff", "1")
					    OBJECT("a/%1b[31m", "1") OBJECT("a/...", "1")
						    OBJECT("", "1") "<Contents/>" OBJECT("a/good",
											 "x")),
	       "a/", NULL, "... good ");
	/* Twice is once. */
	expect(LIST(OBJECT("a", "1") OBJECT("a", "2") FOLDER("a/") FOLDER("a/")), "", NULL,
	       "a a/ ");
}

static void test_more(void **state)
{
	list_scope l, foreign, none, again;

	assert_int_equal(parse(LIST(MORE OBJECT("a", "1") FOLDER("b/")), "", NULL, &l), 0);
	assert_true(l.more);
	assert_string_equal(l.last, "b/");
	assert_int_equal(parse(LIST(MORE OBJECT("p/b/x", "1")), "p/", "a", &foreign), 0);
	assert_int_equal(foreign.n, 0);
	assert_string_equal(foreign.last, "b/x");
	/* One that never comes to its end. */
	assert_int_equal(parse(LIST(MORE), "", NULL, &none), -EINVAL);
	assert_int_equal(parse(LIST(MORE OBJECT("a", "1")), "", "a", &again), -EINVAL);
}

static void test_too_many(void **state)
{
	cleanup_free char *text = text_copy("");
	list_scope l;

	for (int i = 0; i < 1001; i++)
		text_set(&text, "%s<Contents><Key>%04d</Key></Contents>", text, 1000 - i);
	text_set(&text, "<ListBucketResult>%s</ListBucketResult>", text);
	assert_int_equal(parse(text, "", NULL, &l), 0);
	assert_int_equal(l.n, 1000);
	assert_true(l.more);
	assert_string_equal(l.v[999].name, "0999");
	assert_string_equal(l.last, "0999");
}

static void test_no_list(void **state)
{
	static const char *const texts[] = {
		"",
		"null",
		"<html><body>Login</body></html>",
		"<ListBucketResult>",
		"<ListBucketResult><Contents></ListBucketResult>",
		LIST(OBJECT("a", "1")) "trailing",
		"<Error><Code>AccessDenied</Code></Error>",
		"<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult></ListBucketResult>",
		"<a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a></a>",
		LIST(OBJECT("\xff", "1")),
	};

	for (size_t i = 0; i < array_size(texts); i++) {
		list_scope l;

		assert_int_equal(parse(texts[i], "", NULL, &l), -EINVAL);
	}
}

/* Just below and just above the bounds of an element and of a reply. */
static void test_bounds(void **state)
{
	for (size_t n = 16384; n <= 16385; n++) {
		cleanup_free char *name = new0_n(char, n + 1), *text = NULL;
		list_scope l;

		memset(name, 'n', n);
		text = text_print(LIST("<Contents><Key>%s</Key></Contents>"), name);
		assert_int_equal(parse(text, "", NULL, &l), n == 16384 ? 0 : -EINVAL);
		assert_int_equal(l.n, 0);
	}
	for (size_t n = 4u << 20; n <= (4u << 20) + 1; n++) {
		static const char list[] = LIST("");
		cleanup_free char *text = new0_n(char, n + 1);
		list_scope l;

		memset(text, '\n', n);
		memcpy(text, list, strlen(list));
		assert_int_equal(parse(text, "", NULL, &l), n == 4u << 20 ? 0 : -EINVAL);
	}
	for (size_t n = 255; n <= 256; n++) {
		cleanup_free char *name = new0_n(char, n + 1), *text = NULL;
		list_scope l;

		memset(name, 'n', n);
		text = text_print(LIST("<Contents><Key>%s</Key></Contents>"), name);
		assert_int_equal(parse(text, "", NULL, &l), 0);
		assert_int_equal(l.n, n == 255 ? 1 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),	 cmocka_unit_test(test_escaped),
		cmocka_unit_test(test_foreign),	 cmocka_unit_test(test_more),
		cmocka_unit_test(test_too_many), cmocka_unit_test(test_no_list),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
