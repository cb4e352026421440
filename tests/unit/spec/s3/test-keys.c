/* SPDX-License-Identifier: MIT */
/* spec/s3/keys.h: the shared credentials file. */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/s3/keys.h"
#include "tests/unit/unit.h"

#define keys_scope struct spec_s3_keys cleanup(spec_s3_keys_clear)

static int read_keys(const char *text, const char *profile, struct spec_s3_keys *ret)
{
	cleanup_free char *why = NULL;
	int err;

	*ret = (struct spec_s3_keys){0};
	err = spec_s3_keys_read(text, "/h/credentials", profile, ret, &why);
	if (!err) {
		assert_null(why);
		return 0;
	}
	assert_non_null(strstr(why, "/h/credentials"));
	assert_non_null(strstr(why, profile));
	assert_null(strstr(why, "SECRET"));
	assert_null(ret->id);
	return err;
}

static void test_profiles(void **state)
{
	static const char text[] = "# of Ada\r\n"
				   "aws_access_key_id = NOBODY\n"
				   "[ default ]\r\n"
				   "aws_access_key_id = AK1\r\n"
				   "  aws_secret_access_key=SECRET=/+1\r\n"
				   "region = eu-central-1\n"
				   "\n"
				   "[two]\n"
				   "; aws_access_key_id = NOT\n"
				   "aws_access_key_id = OLD\n"
				   "aws_access_key_id = AK2\n"
				   "aws_secret_access_key = SECRET2\n"
				   "aws_session_token = TOKEN2";
	keys_scope one, two, none;

	assert_int_equal(read_keys(text, "default", &one), 0);
	assert_string_equal(one.id, "AK1");
	assert_string_equal(one.secret, "SECRET=/+1");
	assert_string_equal(one.token, "");
	assert_int_equal(read_keys(text, "two", &two), 0);
	assert_string_equal(two.id, "AK2");
	assert_string_equal(two.secret, "SECRET2");
	assert_string_equal(two.token, "TOKEN2");
	assert_false(spec_s3_keys_same(&one, &two));
	assert_int_equal(read_keys(text, "three", &none), -ENOENT);
	assert_int_equal(read_keys("", "default", &none), -ENOENT);
}

static void test_wrong(void **state)
{
	static const char *const texts[] = {
		"[p]\n",
		"[p]\naws_access_key_id = A\n",
		"[p]\naws_access_key_id =\naws_secret_access_key = SECRET\n",
		"[p]\naws_access_key_id = A B\naws_secret_access_key = SECRET\n",
		"[p]\naws_access_key_id = A:B\naws_secret_access_key = SECRET\n",
		"[p]\naws_access_key_id = A\naws_secret_access_key = SECRET\x01\n",
		"[p]\naws_access_key_id = A\naws_secret_access_key = SECRET\naws_session_token = \x7f\n",
	};

	for (size_t i = 0; i < array_size(texts); i++) {
		keys_scope k;

		assert_int_equal(read_keys(texts[i], "p", &k), -EINVAL);
	}
}

static void test_long(void **state)
{
	for (size_t n = 16384; n <= 16385; n++) {
		cleanup_free char *token = new0_n(char, n + 1), *why = NULL;
		keys_scope k = {0};

		memset(token, 't', n);
		assert_int_equal(spec_s3_keys_set(&k, "A", "S", token, "x", &why),
				 n == 16384 ? 0 : -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_profiles),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
