/* SPDX-License-Identifier: MIT */
/* spec/api/review.h: questions about rights, and their answers. */
#include <errno.h>

#include "spec/api/review.h"
#include "spec/base/mem.h"
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

/* May jobs of the group batch be listed by RULES? 2: nobody can tell. */
static int rules(const char *rules)
{
	cleanup_free char *text = text_print("{\"status\":{%s}}", rules);
	bool allowed = false;
	int err = spec_rules_reply(text, strlen(text), "batch", "jobs", "list", &allowed);

	return err ? err : allowed;
}

#define RULE(verb, group, resource)                                                                \
	"{\"verbs\":[\"get\",\"" verb "\"],\"apiGroups\":[\"" group                                \
	"\"],\"resources\":[\"pods\",\"" resource "\"]"

static void test_rules(void **state)
{
	cleanup_free char *ask = spec_rules_ask("training");

	assert_string_equal(ask, "{\"apiVersion\":\"authorization.k8s.io/v1\","
				 "\"kind\":\"SelfSubjectRulesReview\","
				 "\"spec\":{\"namespace\":\"training\"}}");
	assert_int_equal(rules("\"resourceRules\":[],\"incomplete\":false"), 0);
	assert_int_equal(rules("\"resourceRules\":[" RULE("list", "batch", "jobs") "}]"), 1);
	assert_int_equal(rules("\"resourceRules\":[" RULE("*", "*", "*") "}]"), 1);
	assert_int_equal(rules("\"resourceRules\":[" RULE("watch", "batch", "jobs") "}]"), 0);
	assert_int_equal(rules("\"resourceRules\":[" RULE("list", "", "jobs") "}]"), 0);
	assert_int_equal(rules("\"resourceRules\":[" RULE("list", "batch", "jobs/status") "}]"), 0);
	assert_int_equal(rules("\"resourceRules\":[" RULE(
				 "list", "batch", "jobs") ",\"resourceNames\":[\"one\"]},3]"),
			 0);
	assert_int_equal(rules("\"resourceRules\":[" RULE("list", "batch",
							  "jobs") "}],\"incomplete\":true"),
			 -ENODATA);
	assert_int_equal(rules("\"allowed\":true"), -EINVAL);
	assert_int_equal(spec_rules_reply("[]", 2, "batch", "jobs", "list", &(bool){false}),
			 -EINVAL);
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
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
