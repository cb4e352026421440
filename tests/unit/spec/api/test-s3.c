/* SPDX-License-Identifier: MIT */
/* spec/api/s3.h: lists, errors, and keys. */
#include <errno.h>

#include "spec/api/s3.h"
#include "tests/unit/unit.h"

static void test_list(void **state)
{
	static const char text[] =
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
		"<Name>bucket</Name><Prefix>p/</Prefix><IsTruncated>true</IsTruncated>"
		"<Contents><Key>p/b&amp;c</Key><ETag>&#34;x&#34;</ETag><Size>8388608</Size></Contents>"
		"<Contents><Size>5</Size><Key>p/z</Key><Owner><ID>me</ID></Owner></Contents>"
		"<CommonPrefixes><Prefix>p/a/</Prefix></CommonPrefixes></ListBucketResult>";
	struct spec_s3_list list;

	assert_true(spec_s3_list_parse(text, strlen(text), &list));
	assert_int_equal(list.n, 3);
	assert_string_equal(list.objects[0].name, "p/a/");
	assert_int_equal(list.objects[0].size, 0);
	assert_string_equal(list.objects[1].name, "p/b&c");
	assert_int_equal(list.objects[1].size, 8388608);
	assert_string_equal(list.objects[2].name, "p/z");
	assert_true(list.more);
	spec_s3_list_clear(&list);
	assert_true(spec_s3_list_parse("<ListBucketResult/>", 19, &list));
	assert_int_equal(list.n, 0);
	assert_false(list.more);
	spec_s3_list_clear(&list);
	assert_false(spec_s3_list_parse("<html></html>", 13, &list));
	spec_s3_list_clear(&list);
	assert_false(spec_s3_list_parse(text, strlen(text) - 5, &list));
	spec_s3_list_clear(&list);
}

static void assert_error(const char *text, const char *code, const char *message,
			 const char *region)
{
	struct spec_s3_error e;

	spec_s3_error_parse(text, strlen(text), &e);
	assert_string_equal(e.code, code);
	assert_string_equal(e.message, message);
	assert_string_equal(e.region, region);
	spec_s3_error_clear(&e);
}

static void test_error(void **state)
{
	assert_error("<Error><Code>AccessDenied</Code><Message>No\033[1m.</Message>"
		     "<Region>eu-west-1</Region></Error>",
		     "AccessDenied", "No\\x1b[1m.", "eu-west-1");
	/* The error as the token service writes it. */
	assert_error("<ErrorResponse xmlns='x'><Error><Type>Sender</Type><Code>ExpiredToken</Code>"
		     "</Error></ErrorResponse>",
		     "ExpiredToken", "", "");
	assert_error("<html><body>502</body></html>", "", "", "");
	assert_error("<Error><Code>AccessDenied</Code>", "", "", "");
}

static void test_service(void **state)
{
	static const char text[] =
		"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>"
		"<Credentials><AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>s+/=</SecretAccessKey>"
		"<SessionToken>t</SessionToken><Expiration>2026-11-26T12:00:00Z</Expiration>"
		"</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
	static const char line_end[] = "<R><Credentials><AccessKeyId>A&#10;X-Evil: 1</AccessKeyId>"
				       "<SecretAccessKey>s</SecretAccessKey></Credentials></R>";
	struct spec_s3_keys keys;

	assert_true(spec_s3_keys_reply(text, strlen(text), &keys));
	assert_string_equal(keys.id, "ASIA1");
	assert_string_equal(keys.secret, "s+/=");
	assert_string_equal(keys.session, "t");
	assert_int_equal(keys.expires / 1000000000, 1795694400);
	spec_s3_keys_clear(&keys);
	assert_false(spec_s3_keys_reply(line_end, strlen(line_end), &keys));
	assert_false(spec_s3_keys_reply("<R/>", 4, &keys));
	assert_null(keys.id);
}

static void test_file(void **state)
{
	static const char text[] = "# mine\n[default]\naws_access_key_id = A1\r\n"
				   "aws_secret_access_key=s=1\n[ other ]\n"
				   "  aws_access_key_id=A2\naws_secret_access_key=s2\n"
				   "aws_session_token = t2\n[half]\naws_access_key_id = A3";
	struct spec_s3_keys keys;

	assert_int_equal(spec_s3_keys_file(text, strlen(text), "default", &keys), 0);
	assert_string_equal(keys.id, "A1");
	assert_string_equal(keys.secret, "s=1");
	assert_string_equal(keys.session, "");
	spec_s3_keys_clear(&keys);
	assert_int_equal(spec_s3_keys_file(text, strlen(text), "other", &keys), 0);
	assert_string_equal(keys.id, "A2");
	assert_string_equal(keys.session, "t2");
	spec_s3_keys_clear(&keys);
	assert_int_equal(spec_s3_keys_file(text, strlen(text), "half", &keys), -EINVAL);
	assert_int_equal(spec_s3_keys_file(text, strlen(text), "none", &keys), -ENOENT);
	assert_int_equal(spec_s3_keys_file("", 0, "default", &keys), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_service),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
