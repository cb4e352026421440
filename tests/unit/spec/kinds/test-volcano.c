/* SPDX-License-Identifier: MIT */
/*
 * What users see of jobs while a real cluster runs them: recorded events are played one by one, and every change of a
 * state, an exit code or a reason that they make is compared.
 */
#include "tests/unit/spec/kinds/cluster-world.h"

static const struct scenario {
	const char *name;
	const char *told;
	const char *reason, *message;
} scenarios[] = {
	{"success",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=SUCCEEDED/0/Completed\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n",
	 "Completed", ""},
	{"fail",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=PENDING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=FAILED/3/Error trainer-1=RUNNING\n"
	 "RUNNING trainer-0=FAILED/3/Error trainer-1=FAILED/3/Error\n"
	 "FAILED trainer-0=FAILED/3/Error trainer-1=FAILED/3/Error\n",
	 "Error", "trainer-0: exit code 3"},
	{"retry_replica",
	 "SUBMITTED trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING\n"
	 "RUNNING trainer-0=RUNNING\n"
	 "RUNNING trainer-0=FAILED/3/Error\n"
	 "FAILED trainer-0=FAILED/3/Error\n",
	 "Error", "trainer-0: exit code 3"},
	{"retry_application",
	 "SUBMITTED trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING\n"
	 "RUNNING trainer-0=RUNNING\n"
	 "RUNNING trainer-0=FAILED/3/Error\n"
	 "PENDING trainer-0=PENDING/3/Error\n"
	 "PENDING trainer-0=PENDING/attempt 1\n"
	 "RUNNING trainer-0=RUNNING/attempt 1\n"
	 "RUNNING trainer-0=FAILED/3/Error/attempt 1\n"
	 "FAILED trainer-0=FAILED/3/Error/attempt 1\n",
	 "Error", "trainer-0: exit code 3"},
	{"suspend_resume",
	 "SUBMITTED trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING\n"
	 "RUNNING trainer-0=RUNNING\n"
	 "PENDING trainer-0=PENDING/0/Restarting\n"
	 "PENDING trainer-0=PENDING/attempt 1\n"
	 "RUNNING trainer-0=RUNNING/attempt 1\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed/attempt 1\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed/attempt 1\n",
	 "Completed", ""},
	{"delete_running",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "CANCELLED trainer-0=RUNNING trainer-1=RUNNING\n"
	 "CANCELLED trainer-0=RUNNING trainer-1=CANCELLED/0/Deleted\n"
	 "CANCELLED trainer-0=CANCELLED/0/Deleted trainer-1=CANCELLED/0/Deleted\n",
	 "Deleted", "it was removed from the cluster"},
	{"gang_too_big",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING trainer-2=PENDING trainer-3=PENDING "
	 "trainer-4=PENDING trainer-5=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING trainer-2=PENDING trainer-3=PENDING "
	 "trainer-4=PENDING trainer-5=PENDING\n"
	 "CANCELLED trainer-0=CANCELLED trainer-1=CANCELLED trainer-2=CANCELLED "
	 "trainer-3=CANCELLED trainer-4=CANCELLED trainer-5=CANCELLED\n",
	 "Deleted", "it was removed from the cluster"},
	{"image_pull_failure",
	 "SUBMITTED trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING\n"
	 "PENDING trainer-0=PENDING/ErrImagePull\n"
	 "PENDING trainer-0=PENDING/ImagePullBackOff\n"
	 "CANCELLED trainer-0=PENDING/ImagePullBackOff\n"
	 "CANCELLED trainer-0=PENDING\n"
	 "CANCELLED trainer-0=CANCELLED/Deleted\n",
	 "Deleted", "it was removed from the cluster"},
	{"pending_unschedulable",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "CANCELLED trainer-0=CANCELLED trainer-1=CANCELLED\n",
	 "Deleted", "it was removed from the cluster"},
};

static const struct scenario mcad_scenarios[] = {
	{"mcad_success",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=PENDING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=SUCCEEDED/0/Completed\n"
	 "RUNNING trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n"
	 "SUCCEEDED trainer-0=SUCCEEDED/0/Completed trainer-1=SUCCEEDED/0/Completed\n",
	 "Completed", ""},
	{"mcad_fail",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=PENDING\n"
	 "RUNNING trainer-0=RUNNING trainer-1=RUNNING\n"
	 "RUNNING trainer-0=FAILED/3/Error trainer-1=RUNNING\n"
	 "RUNNING trainer-0=FAILED/3/Error trainer-1=FAILED/3/Error\n"
	 "FAILED trainer-0=FAILED/3/Error trainer-1=FAILED/3/Error\n",
	 "Error", "trainer-0: exit code 3"},
	{"mcad_pending",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "CANCELLED trainer-0=CANCELLED trainer-1=CANCELLED\n",
	 "Deleted", "it was removed from the cluster"},
	{"mcad_delete_running",
	 "SUBMITTED trainer-0=PENDING trainer-1=PENDING\n"
	 "PENDING trainer-0=PENDING trainer-1=PENDING\n"
	 "CANCELLED trainer-0=CANCELLED trainer-1=CANCELLED\n",
	 "Deleted", "it was removed from the cluster"},
};

static void play_all(const struct spec_kind *kind, const struct scenario *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct world w = {.kind = kind};

		world_play(&w, v[i].name);
		assert_string_equal(w.told, v[i].told);
		assert_string_equal(w.last->reason, v[i].reason);
		assert_string_equal(w.last->message, v[i].message);
		world_clear(&w);
	}
}

static void test_recordings(void **state)
{
	play_all(NULL, scenarios, array_size(scenarios));
}

static void test_mcad_recordings(void **state)
{
	play_all(&spec_mcad, mcad_scenarios, array_size(mcad_scenarios));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recordings),
		cmocka_unit_test(test_mcad_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
