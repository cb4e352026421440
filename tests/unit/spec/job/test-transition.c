/* SPDX-License-Identifier: MIT */
/* Lists of transitions, in memory and on disk. */
#include <errno.h>

#include "spec/base/tree.h"
#include "spec/base/value.h"
#include "tests/unit/spec/job/transitions.h"

#define SECOND INT64_C(1000000000)

static void test_list(void **state)
{
	struct spec_transitions t = {0}, copy = {0};
	char phase[16];

	spec_transitions_add(&t, SPEC_PENDING, "Pending", 5 * SECOND);
	spec_transitions_add(&t, SPEC_PENDING, "Pending", 7 * SECOND);
	spec_transitions_add(&t, SPEC_RUNNING, "Running", 4 * SECOND);
	assert_transitions(&t, "00:00:05 PENDING Pending\n00:00:05 RUNNING Running\n");
	for (unsigned i = 0; i < 2 * SPEC_MAX_TRANSITIONS; i++) {
		snprintf(phase, sizeof(phase), "P%u", i);
		spec_transitions_add(&t, SPEC_RUNNING, phase, i * SECOND);
	}
	assert_int_equal(t.n, SPEC_MAX_TRANSITIONS);
	assert_string_equal(t.v[0].phase, "P64");
	assert_string_equal(t.v[63].phase, "P127");
	spec_transitions_copy(&copy, &t);
	assert_int_equal(copy.n, t.n);
	assert_string_equal(copy.v[63].phase, "P127");
	spec_transitions_clear(&copy);
	spec_transitions_clear(&t);
}

/* Read the transitions of the object TEXT. */
static int read_back(const char *text, struct spec_transitions *ret)
{
	struct spec_value *o cleanup_free = NULL;

	assert_int_equal(spec_value_parse(text, strlen(text), &o), 0);
	return spec_transitions_read(o, ret);
}

static void test_disk(void **state)
{
	struct json_object *o cleanup_json = spec_tree_map();
	char *text cleanup_free = NULL;
	struct spec_transitions t = {0}, back = {0};

	assert_int_equal(read_back("{}", &back), 0);
	spec_transitions_add(&t, SPEC_PENDING, "Pending", 5 * SECOND);
	spec_transitions_add(&t, SPEC_FAILED, "", 6 * SECOND);
	spec_transitions_write(o, &t);
	text = spec_tree_print(o);
	assert_int_equal(read_back(text, &back), 0);
	assert_transitions(&back, "00:00:05 PENDING Pending\n00:00:06 FAILED \n");
	spec_transitions_clear(&back);
	spec_transitions_clear(&t);
	assert_int_equal(read_back("{\"transitions\":[{\"time\":1}]}", &back), -EINVAL);
	assert_int_equal(read_back("{\"transitions\":{}}", &back), -EINVAL);
	spec_transitions_clear(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
