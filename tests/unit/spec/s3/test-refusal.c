/* SPDX-License-Identifier: MIT */
/* spec/s3/reply.h: what an answer means that is no success. */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/s3/reply.h"
#include "tests/unit/unit.h"

#define ERROR(code, more) "<?xml version=\"1.0\"?><Error><Code>" code "</Code>" more "</Error>"

/* STATUS with BODY is ERR, with PART in its text; OTHER: other keys may do. */
static void expect(int status, const char *body, int64_t ahead, int err, bool other,
		   const char *part)
{
	const struct spec_s3_asked asked = {"read", "/p/a", "logs", ahead};
	cleanup_free char *text = NULL;
	bool keys;

	assert_int_equal(spec_s3_refusal(status, body, strlen(body), &asked, &keys, &text), err);
	assert_string_equal(strstr(text, part) ? part : text, part);
	assert_true(!strncmp(text, "read s3://logs/p/a: ", 20));
	assert_null(strpbrk(text, "\n\t\033"));
	assert_int_equal(keys, other);
}

static void test_codes(void **state)
{
	expect(403, ERROR("AccessDenied", "<Message>Access Denied</Message>"), 0, -EACCES, true,
	       "403 AccessDenied, these keys have no right to that");
	expect(403, ERROR("SignatureDoesNotMatch", ""), 0, -EACCES, true, "is the secret that of");
	expect(403, ERROR("InvalidAccessKeyId", "<AWSAccessKeyId>AK</AWSAccessKeyId>"), 0, -EACCES,
	       true, "does not know this access key");
	expect(400, ERROR("ExpiredToken", "<Token-0>TOKEN</Token-0>"), 0, -EACCES, true,
	       "the session token has ended");
	expect(404, ERROR("NoSuchKey", ""), 0, -ENOENT, false, "404 NoSuchKey");
	expect(404, ERROR("NoSuchBucket", ""), 0, -EIO, false, "there is no such bucket");
	expect(503, ERROR("SlowDown", ""), 0, -EAGAIN, false, "asks for fewer requests");
	expect(500, ERROR("InternalError", ""), 0, -EAGAIN, false, "500 InternalError");
	expect(507, ERROR("XMinioStorageFull", ""), 0, -ENOSPC, false, "disks are full");
	expect(403, ERROR("QuotaExceeded", ""), 0, -ENOSPC, false, "quota");
	expect(400, ERROR("AuthorizationHeaderMalformed", ""), 0, -EIO, false, "see region=");
	expect(301, ERROR("PermanentRedirect", ""), 0, -EIO, false, "see region=");
}

static void test_clocks(void **state)
{
	static const char skewed[] =
		ERROR("RequestTimeTooSkewed", "<Message>The difference</Message>");

	expect(403, skewed, 3600, -EACCES, false,
	       "the clock of this machine is 1h ahead of the server's");
	expect(403, skewed, -900, -EACCES, false,
	       "the clock of this machine is 15m behind the server's");
	expect(403, skewed, 0, -EACCES, false, "is the time of this machine right?");
	/* Servers have other words for it too. */
	expect(403, ERROR("AccessDenied", ""), 7200, -EACCES, true, "2h ahead");
	expect(404, ERROR("NoSuchKey", ""), 7200, -ENOENT, false, "there is no such object");
}

/* By no code that is known, or by none at all. */
static void test_others(void **state)
{
	expect(418, ERROR("Teapot", "<Message>short&#10;and\tstout</Message>"), 0, -EIO, false,
	       "418 Teapot, short\\nand\\tstout");
	expect(403, "", 0, -EACCES, true, ": 403");
	expect(404, "", 0, -ENOENT, false, ": 404");
	expect(429, "slow", 0, -EAGAIN, false, ": 429");
	expect(502, "<html><hr></html>", 0, -EAGAIN, false, ": 502");
	expect(302, "<a/>", 0, -EIO, false, ": 302");
	expect(400, "<Error><Code>Half</Code>", 0, -EIO, false, ": 400");
	/* Of the token service. */
	expect(400,
	       "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type>"
	       "<Code>InvalidIdentityToken</Code><Message>m</Message></Error></ErrorResponse>",
	       0, -EACCES, true, "web identity token is not accepted");
}

static void test_long_words(void **state)
{
	const struct spec_s3_asked asked = {"write", "/a", "logs", 0};
	cleanup_free char *message = new0_n(char, 10001), *body = NULL, *text = NULL;
	bool keys;

	for (size_t i = 0; i < 10000; i += 2)
		memcpy(message + i, "\xc3\xa4", 2);
	body = text_print("<Error><Code>%.*s</Code><Message>x%s</Message></Error>", 200, message,
			  message);
	assert_int_equal(spec_s3_refusal(400, body, strlen(body), &asked, &keys, &text), -EIO);
	assert_true(strlen(text) < 500);
	assert_non_null(strstr(text, "\xc3\xa4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
