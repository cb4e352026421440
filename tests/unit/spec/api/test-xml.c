/* SPDX-License-Identifier: MIT */
/* spec/api/xml.h: the elements of a text, each when it ends, and which texts are refused. */
#include "spec/api/xml.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

static char *told;

static void on_element(void *data, const char *path, const char *value)
{
	assert_null(data);
	text_set(&told, "%s%s=%s\n", told, path, value);
}

static bool read_text(const char *text, size_t len)
{
	free(told);
	told = text_copy("");
	return spec_xml_read(text, len, on_element, NULL);
}

static void assert_reads(const char *text, const char *want)
{
	assert_true(read_text(text, strlen(text)));
	assert_string_equal(told, want);
}

static void test_elements(void **state)
{
	assert_reads("<?xml version=\"1.0\"?>\n<a x='>' y=\"/\"><!-- <b> --><b>1</b> <b/></a >\n",
		     "/a/b=1\n/a/b=\n/a=\n");
	assert_reads("<a/>", "/a=\n");
	assert_reads("<a>1<b>2</b>3</a>", "/a/b=2\n/a=3\n");
}

static void test_entities(void **state)
{
	assert_reads("<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#xe9;&#x20ac;&#x1F600;</a>",
		     "/a=<>&\"'AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n");
}

static void test_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		" ",
		"x",
		"<a>",
		"<a></b>",
		"</a>",
		"<a",
		"<a x='>",
		"<>",
		"<a></a>x",
		"<a>&b;</a>",
		"<a>&#0;</a>",
		"<a>&#;</a>",
		"<a>&#x110000;</a>",
		"<a>&#xd800;</a>",
		"<a>&#-1;</a>",
		"<a>&",
		"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
		"<a><![CDATA[b]]></a>",
		"<?xml",
		"<!-- ",
	};
	cleanup_free char *deep = text_copy("");

	for (size_t i = 0; i < array_size(wrong); i++)
		if (read_text(wrong[i], strlen(wrong[i])))
			fail_msg("%s is read", wrong[i]);
	assert_false(read_text("<a>\0</a>", 8));
	for (size_t i = 0; i < 300; i++)
		text_set(&deep, "%s<a>", deep);
	assert_false(read_text(deep, strlen(deep)));
}

static int end(void **state)
{
	free(told);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_entities),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
