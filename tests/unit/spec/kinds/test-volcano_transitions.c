/* SPDX-License-Identifier: MIT */
/* When the phases of Volcano's jobs began: in recorded jobs, in jobs that are seen late, and between two events. */
#include "tests/unit/spec/job/transitions.h"
#include "tests/unit/spec/kinds/cluster-world.h"

/* The times are those of the events, though the times of the conditions move on within a phase. */
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

/* A job ran before it was seen: its condition Running last changed at 50, and the job began to run at 30. */
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

/* A phase that began in the second in which the job was made, and was over before the job was seen. */
static void test_same_second(void **state)
{
	struct world w = {0};

	world_job(&w, JOB(CONDITION("Pending", "10") "," CONDITION("Running", "50")), false);
	assert_transitions(
		&w.last->transitions,
		"00:00:10 SUBMITTED \n00:00:10 PENDING Pending\n00:00:50 RUNNING Running\n");
	world_clear(&w);
}

/* A phase that nobody saw lies between the one that was seen before and the present one. */
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
		cmocka_unit_test(test_seen),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_between),
		cmocka_unit_test(test_same_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
