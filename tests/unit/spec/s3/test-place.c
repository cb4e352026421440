/* SPDX-License-Identifier: MIT */
/* spec/s3/place.h: where a bucket is, and the paths and queries of requests. */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/s3/place.h"
#include "tests/unit/unit.h"

static void expect(const char *text, const char *endpoint, const char *region, const char *prefix,
		   const char *url)
{
	struct spec_s3_place p cleanup(spec_s3_place_clear);
	cleanup_free char *why = NULL;

	assert_int_equal(spec_s3_place_parse(text, endpoint, region, &p, &why), 0);
	assert_null(why);
	assert_string_equal(p.prefix, prefix);
	assert_string_equal(p.url, url);
	assert_string_equal(p.region, region);
}

static void test_places(void **state)
{
	expect("s3://logs", "", "us-east-1", "", "https://logs.s3.us-east-1.amazonaws.com");
	expect("s3://logs/", "", "eu-central-1", "", "https://logs.s3.eu-central-1.amazonaws.com");
	expect("s3://my.logs/a/b", "", "us-east-1", "a/b/",
	       "https://s3.us-east-1.amazonaws.com/my.logs");
	expect("s3://logs/a/b/", "http://10.0.0.7:9000/", "r", "a/b/",
	       "http://10.0.0.7:9000/logs");
	expect("s3://logs/J\xc3\xa4nner", "https://s3.example.org/gate", "r", "J\xc3\xa4nner/",
	       "https://s3.example.org/gate/logs");
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *endpoint, *region, *what;
	} rows[] = {
		{"s3:/logs", "", "r", "s3://BUCKET/PREFIX"},
		{"s3://", "", "r", "3 to 63"},
		{"s3://ab", "", "r", "3 to 63"},
		{"s3://Logs", "", "r", "3 to 63"},
		{"s3://-logs", "", "r", "3 to 63"},
		{"s3://lo..gs", "", "r", "3 to 63"},
		{"s3://user@logs", "", "r", "3 to 63"},
		{"s3://logs/a//b", "", "r", "single slashes"},
		{"s3://logs//", "", "r", "single slashes"},
		{"s3://logs/a//", "", "r", "single slashes"},
		{"s3://logs/../b", "", "r", "single slashes"},
		{"s3://logs/./b", "", "r", "single slashes"},
		{"s3://logs/a\nb", "", "r", "single slashes"},
		{"s3://logs", "s3.example.org", "r", "not a URL"},
		{"s3://logs", "ftp://s3.example.org", "r", "not a URL"},
		{"s3://logs", "https://", "r", "not a URL"},
		{"s3://logs", "https:///x", "r", "not a URL"},
		{"s3://logs", "https://a:b@s3.example.org", "r", "not a URL"},
		{"s3://logs", "https://s3.example.org?x", "r", "not a URL"},
		{"s3://logs", "", "eu central", "not the name of a region"},
		{"s3://logs", "", "eu/../x", "not the name of a region"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_s3_place p cleanup(spec_s3_place_clear);
		cleanup_free char *why = NULL;

		assert_int_equal(spec_s3_place_parse(rows[i].text, rows[i].endpoint, rows[i].region,
						     &p, &why),
				 -EINVAL);
		assert_non_null(strstr(why, rows[i].what));
		assert_null(strchr(why, '\n'));
	}
}

static void test_long_prefix(void **state)
{
	for (size_t n = 512; n <= 513; n++) {
		struct spec_s3_place p cleanup(spec_s3_place_clear);
		cleanup_free char *why = NULL, *text = new0_n(char, n + 16);

		strcpy(text, "s3://logs/");
		memset(text + strlen(text), 'a', n);
		assert_int_equal(spec_s3_place_parse(text, "", "r", &p, &why),
				 n == 512 ? 0 : -EINVAL);
	}
}

static void test_paths(void **state)
{
	cleanup_free char *object = spec_s3_object_path("a b/c~d+%/\xc3\xa4");
	cleanup_free char *all = spec_s3_list_path("", NULL);
	cleanup_free char *some = spec_s3_list_path("a b/", "c+");
	cleanup_free char *behind = spec_s3_list_path("", "folder/");

	assert_string_equal(object, "/a%20b/c~d%2B%25/%C3%A4");
	assert_string_equal(all,
			    "/?delimiter=%2F&encoding-type=url&list-type=2&max-keys=1000&prefix=");
	assert_string_equal(some, "/?delimiter=%2F&encoding-type=url&list-type=2&max-keys=1000"
				  "&prefix=a%20b%2F&start-after=a%20b%2Fc%2B");
	/* Behind all that is in the folder. */
	assert_non_null(strstr(behind, "&start-after=folder%2F%F4%8F%BF%BF"));
}

static void test_form(void **state)
{
	cleanup_free char *form = spec_s3_token_form("arn:aws:iam::1:role/r", "kx", "a.b&c");

	assert_string_equal(form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15"
				  "&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=kx"
				  "&WebIdentityToken=a.b%26c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),	    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_long_prefix), cmocka_unit_test(test_paths),
		cmocka_unit_test(test_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
