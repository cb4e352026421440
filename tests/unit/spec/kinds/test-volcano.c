/* SPDX-License-Identifier: MIT */
/*
 * What users see of jobs while a real cluster runs them. The test replays recorded events one by
 * one, and compares each change of a state, an exit code or a reason.
 */
#include "tests/unit/spec/job/transitions.h"
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

/* The times are those of the events, although the times of the conditions change within a phase. */
static void test_seen(void **state)
{
	struct world w = {0};

	world_play(&w, "suspend_resume");
	assert_transitions(&w.last->transitions, "09:15:27 SUBMITTED \n"
						 "09:15:27 PENDING Pending\n"
						 "09:15:27 RUNNING Pending\n"
						 "09:15:30 RUNNING Running\n"
						 "09:15:33 RUNNING Aborting\n"
						 "09:15:41 RUNNING Restarting\n"
						 "09:15:41 PENDING Restarting\n"
						 "09:15:43 PENDING Pending\n"
						 "09:15:43 RUNNING Pending\n"
						 "09:15:44 RUNNING Running\n"
						 "09:15:56 SUCCEEDED Running\n"
						 "09:15:58 SUCCEEDED Completed\n");
	world_clear(&w);
}

#define JOB(conditions)                                                                            \
	"{\"metadata\":{\"name\":\"j\",\"uid\":\"u-1\",\"creationTimestamp\":"                     \
	"\"1970-01-01T00:00:10Z\"},\"spec\":{\"tasks\":[{\"name\":\"a\"}]},\"status\":{\"state\":" \
	"{\"phase\":\"Running\",\"lastTransitionTime\":\"1970-01-01T00:00:50Z\"},"                 \
	"\"conditions\":[" conditions "]}}"
#define CONDITION(phase, second)                                                                   \
	"{\"status\":\"" phase "\",\"lastTransitionTime\":\"1970-01-01T00:00:" second "Z\"}"
#define RUNNING_POD                                                                                \
	"{\"metadata\":{\"name\":\"j-a-0\",\"uid\":\"p-1\",\"annotations\":{"                      \
	"\"volcano.sh/task-spec\":\"a\",\"volcano.sh/task-index\":\"0\"}},\"spec\":{"              \
	"\"containers\":[{\"name\":\"a\"}]},\"status\":{\"phase\":\"Running\","                    \
	"\"containerStatuses\":[{\"name\":\"a\",\"state\":{\"running\":{\"startedAt\":"            \
	"\"1970-01-01T00:00:30Z\"}}}]}}"

/*
 * A job was running before kxfs saw it. Its condition Running last changed at 50, but the job
 * started to run at 30.
 */
static void test_late(void **state)
{
	struct world w = {0};
	struct spec_job *job;
	struct spec_view_context ctx = {.reader = &spec_volcano_reader, .namespace = "ns"};

	world_job(&w, JOB(CONDITION("Pending", "20") "," CONDITION("Running", "50")), false);
	assert_transitions(
		&w.last->transitions,
		"00:00:10 SUBMITTED \n00:00:20 PENDING Pending\n00:00:50 RUNNING Running\n");
	world_pod(&w, RUNNING_POD, false);
	ctx.now = 60 * SECOND;
	job = spec_view_job(w.job, (const struct spec_pod_view *const *)w.pods, w.n_pods, &ctx);
	assert_transitions(
		&job->transitions,
		"00:00:10 SUBMITTED \n00:00:20 PENDING Pending\n00:00:30 RUNNING Running\n");
	spec_job_unref(job);
	world_clear(&w);
}

/* A phase started in the second of the job's creation, and ended before kxfs saw the job. */
static void test_same_second(void **state)
{
	struct world w = {0};

	world_job(&w, JOB(CONDITION("Pending", "10") "," CONDITION("Running", "50")), false);
	assert_transitions(
		&w.last->transitions,
		"00:00:10 SUBMITTED \n00:00:10 PENDING Pending\n00:00:50 RUNNING Running\n");
	world_clear(&w);
}

/* kxfs did not see a phase between the previous one and the current one. */
static void test_between(void **state)
{
	struct world w = {0};

	world_job(&w, JOB(CONDITION("Pending", "20") "," CONDITION("Running", "30")), false);
	world_job(&w,
		  JOB(CONDITION("Restarting", "45") "," CONDITION("Pending",
								  "45") "," CONDITION("Running",
										      "50")),
		  false);
	assert_transitions(&w.last->transitions, "00:00:10 SUBMITTED \n"
						 "00:00:20 PENDING Pending\n"
						 "00:00:30 RUNNING Running\n"
						 "00:00:45 RUNNING Restarting\n"
						 "00:00:45 PENDING Pending\n"
						 "00:00:50 RUNNING Running\n");
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recordings), cmocka_unit_test(test_mcad_recordings),
		cmocka_unit_test(test_seen),	   cmocka_unit_test(test_late),
		cmocka_unit_test(test_between),	   cmocka_unit_test(test_same_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
