/* SPDX-License-Identifier: MIT */
/* spec/api/review.h: questions about rights, and what comes back. */
#include <errno.h>

#include "spec/api/review.h"
#include "tests/unit/unit.h"

static void test_ask(void **state)
{
	cleanup_free char *log = spec_review_ask("", "pods/log", "get", "training");
	cleanup_free char *queues = spec_review_ask("scheduling.volcano.sh", "queues", "list", "");

	assert_string_equal(log, "{\"apiVersion\":\"authorization.k8s.io/v1\","
				 "\"kind\":\"SelfSubjectAccessReview\",\"spec\":{"
				 "\"resourceAttributes\":{\"group\":\"\",\"resource\":\"pods\","
				 "\"subresource\":\"log\",\"verb\":\"get\","
				 "\"namespace\":\"training\"}}}");
	assert_non_null(strstr(queues, "{\"group\":\"scheduling.volcano.sh\","
				       "\"resource\":\"queues\",\"verb\":\"list\"}"));
}

static int reply(const char *text, bool *ret)
{
	return spec_review_reply(text, strlen(text), ret);
}

static void test_reply(void **state)
{
	bool allowed = false;

	assert_int_equal(reply("{\"status\":{\"allowed\":true}}", &allowed), 0);
	assert_true(allowed);
	assert_int_equal(reply("{\"status\":{\"allowed\":false,\"denied\":true}}", &allowed), 0);
	assert_false(allowed);
	assert_int_equal(reply("{\"status\":{}}", &allowed), 0);
	assert_false(allowed);
	assert_int_equal(reply("{\"kind\":\"Status\"}", &allowed), 0 - EINVAL);
	assert_int_equal(reply("[]", &allowed), -EINVAL);
	assert_int_equal(reply("", &allowed), -EINVAL);
}

static void test_version(void **state)
{
	static const char good[] = "{\"major\":\"1\",\"gitVersion\":\"v1.30.2\"}";
	static const char odd[] = "{\"gitVersion\":\"v1\\u001b[31m\\n\"}";
	static const char bad[] = "{\"gitVersion\":3}";
	char *text = NULL;

	assert_int_equal(spec_version_reply(good, strlen(good), &text), 0);
	assert_string_equal(text, "v1.30.2");
	free(text);
	assert_int_equal(spec_version_reply(odd, strlen(odd), &text), 0);
	assert_null(strpbrk(text, "\033\n"));
	free(text);
	assert_int_equal(spec_version_reply(bad, strlen(bad), &text), -EINVAL);
	assert_int_equal(spec_version_reply("", 0, &text), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ask),
		cmocka_unit_test(test_reply),
		cmocka_unit_test(test_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
