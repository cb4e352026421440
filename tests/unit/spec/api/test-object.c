/* SPDX-License-Identifier: MIT */
/*
 * spec/api/object.h: objects as a server may have them.
 */
#include <errno.h>

#include "spec/api/object.h"
#include "tests/unit/unit.h"

#define OURS                                                                                       \
	"{\"metadata\":{\"name\":\"a\",\"annotations\":{\"kxfs/submission\":\"u-1\","              \
	"\"kxfs/appdef\":\"name: a\\nroles: []\\n\"}}}"

static bool is_u1(const char *json)
{
	return spec_object_is_submission(json, strlen(json), "u-1");
}

static void test_submission(void **state)
{
	assert_true(is_u1(OURS));
	assert_false(spec_object_is_submission(OURS, strlen(OURS), "u-2"));
	assert_false(is_u1("{\"metadata\":{\"annotations\":{\"kxfs/submission\":1}}}"));
	assert_false(is_u1("{\"metadata\":{\"annotations\":[]}}"));
	assert_false(is_u1("{\"metadata\":{\"name\":\"u-1\"}}"));
	assert_false(is_u1("[]"));
	assert_false(is_u1("{\"metadata\":"));
	assert_false(is_u1(""));
}

static void test_appdef(void **state)
{
	cleanup_free char *text = NULL;
	size_t len;

	assert_int_equal(spec_object_appdef(OURS, strlen(OURS), &text, &len), 0);
	assert_string_equal(text, "name: a\nroles: []\n");
	assert_int_equal(len, strlen(text));
	assert_int_equal(spec_object_appdef("{}", 2, &text, &len), -ENOENT);
}

static void test_yaml(void **state)
{
	static const char json[] =
		"{\"kind\":\"Job\",\"metadata\":{\"managedFields\":[{}],\"name\":"
		"\"a\"},\"managedFields\":\"stays\"}";
	cleanup_free char *text = NULL;
	size_t len;

	assert_int_equal(spec_object_yaml(json, strlen(json), &text, &len), 0);
	assert_string_equal(text, "kind: Job\nmetadata:\n  name: a\nmanagedFields: stays\n");
	assert_int_equal(len, strlen(text));
	free(take_ptr(text));
	assert_int_equal(spec_object_yaml("{", 1, &text, &len), -EINVAL);
	assert_int_equal(spec_object_yaml("[]", 2, &text, &len), -EINVAL);
}

/* The restart count of one container, among containers of all sorts. */
static void test_listed_run(void **state)
{
#define LIST(status) "{\"items\":[{\"metadata\":{\"uid\":\"u\"},\"status\":{" status "}}]}"
#define ONE(state)                                                                                 \
	"[{\"name\":\"a\",\"restartCount\":7},{\"name\":\"main\",\"restartCount\":2," state "}]"
	static const struct {
		const char *json, *uid;
		int err, restarts;
		bool between;
	} cases[] = {
		{LIST("\"containerStatuses\":" ONE("\"state\":{\"running\":{}}")), "u", 0, 2,
		 false},
		{LIST("\"initContainerStatuses\":" ONE("\"state\":{\"waiting\":{}}")), "u", 0, 2,
		 false},
		{LIST("\"containerStatuses\":[{}],\"ephemeralContainerStatuses\":" ONE(
			 "\"state\":{\"waiting\":{}},\"lastState\":{\"terminated\":{}}")),
		 "u", 0, 2, true},
		{LIST("\"containerStatuses\":[{\"name\":\"main\",\"restartCount\":-1}]"), "u", 0,
		 -1, false},
		{LIST("\"containerStatuses\":[{\"name\":\"other\",\"restartCount\":1}]"), "u", 0,
		 -1, false},
		{"{\"items\":[]}", "", 0, -1, false},
		{"{\"items\":{}}", NULL, -EINVAL, 0, false},
		{"{\"items\":[", NULL, -EINVAL, 0, false},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct spec_listed_run run;

		assert_int_equal(spec_object_listed_run(cases[i].json, strlen(cases[i].json),
							"main", &run),
				 cases[i].err);
		if (cases[i].err)
			continue;
		assert_string_equal(run.uid, cases[i].uid);
		assert_int_equal(run.restarts, cases[i].restarts);
		assert_int_equal(run.between, cases[i].between);
		free(run.uid);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_submission),
		cmocka_unit_test(test_appdef),
		cmocka_unit_test(test_yaml),
		cmocka_unit_test(test_listed_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
