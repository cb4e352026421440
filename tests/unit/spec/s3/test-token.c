/* SPDX-License-Identifier: MIT */
/* spec/s3/reply.h: keys of the token service. */
#include <errno.h>

#include "spec/s3/reply.h"
#include "tests/unit/unit.h"

#define ANSWER(keys)                                                                               \
	"<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"  \
	"<AssumeRoleWithWebIdentityResult><SubjectFromWebIdentityToken>s</"                        \
	"SubjectFromWebIdentityToken><Credentials>" keys                                           \
	"</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
#define ID     "<AccessKeyId>ASIA1</AccessKeyId>"
#define SECRET "<SecretAccessKey>s/+=</SecretAccessKey>"
#define TOKEN  "<SessionToken>t0ken==</SessionToken>"
#define END    "<Expiration>2026-11-25T12:00:00Z</Expiration>"

static void test_keys(void **state)
{
	static const char text[] = ANSWER(TOKEN ID END SECRET);
	struct spec_s3_keys k cleanup(spec_s3_keys_clear);
	int64_t end;

	assert_int_equal(spec_s3_token_parse(text, strlen(text), &k, &end), 0);
	assert_string_equal(k.id, "ASIA1");
	assert_string_equal(k.secret, "s/+=");
	assert_string_equal(k.token, "t0ken==");
	assert_int_equal(end, INT64_C(1795608000) * 1000000000);
}

static void test_wrong(void **state)
{
	static const char *const texts[] = {
		"",
		"<html/>",
		ANSWER(ID SECRET TOKEN),
		ANSWER(ID SECRET END),
		ANSWER(ID TOKEN END),
		ANSWER(SECRET TOKEN END),
		ANSWER(ID SECRET TOKEN "<Expiration>soon</Expiration>"),
		ANSWER(ID SECRET "<SessionToken>a\nb</SessionToken>" END),
		"<Credentials>" ID SECRET TOKEN END "</Credentials>",
	};

	for (size_t i = 0; i < array_size(texts); i++) {
		struct spec_s3_keys k cleanup(spec_s3_keys_clear);
		int64_t end;

		assert_int_equal(spec_s3_token_parse(texts[i], strlen(texts[i]), &k, &end),
				 -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
