/* SPDX-License-Identifier: MIT */
/* Which logs of a cluster's jobs are followed, in what order, and what is lost. */
#include "tests/unit/backend/kube/kube_story.h"

#include <sys/resource.h>

/* There are descriptors for 1000 logs beside the 256 for all else. */
static void test_turns(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 1010);
	const struct rlimit limit = {256 + 2 * 1000, 256 + 2 * 1000};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start(json, "");
	for (unsigned i = 0; i < 1010; i++) {
		char uid[16];

		snprintf(uid, sizeof(uid), "p%u", i);
		story_pod("ADDED", uid, "u1", i, "Running", RIG_RUNNING);
	}
	assert_int_equal(story_follows(), 1000);
	assert_int_equal(story_waiting(), 10);
	assert_null(rig_stream("p1005.a.0"));
	/* A log that has ended need not wait for those that go on. */
	story_pod("MODIFIED", "p1005", "u1", 1005, "Succeeded", RIG_EXIT("0"));
	assert_non_null(rig_stream("p1005.a.0"));
	assert_int_equal(story_follows(), 1001);
	assert_int_equal(story_waiting(), 10); /* it counts until all of it is there */
	/* The others take the places that become free, in their order. */
	rig_stream_done(rig_stream("p1005.a.0"));
	assert_int_equal(story_follows(), 1000);
	rig_outcome(rig_stream("p3.a.0"), PODLOG_GONE);
	rig_outcome(rig_stream("p4.a.0"), PODLOG_GONE);
	assert_non_null(rig_stream("p1000.a.0"));
	assert_non_null(rig_stream("p1001.a.0"));
	assert_int_equal(story_follows(), 1000);
	assert_int_equal(story_waiting(), 7);
}

/* Does an open of the log of p1 end at once, as all that there is has come? */
static bool opens_at_once(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	struct log *log cleanup_log = NULL;

	assert_int_equal(backend_log(rig.b, job, "p1.a.0", LOG_PLAIN, &log), 0);
	fake_run();
	return log_has_arrived(log);
}

/* Whoever opens a log after its end waits for the rest of it, but not for long. */
static void test_rest(void **state)
{
	story_begin();
	fake_pass(1000);
	assert_true(opens_at_once());
	story_pod("MODIFIED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	assert_false(opens_at_once());
	fake_pass(7000);
	assert_false(opens_at_once());
	fake_pass(1500);
	assert_true(opens_at_once());
	/* Other news of the pod change nothing. */
	story_odd_pod("MODIFIED", "p1", "\"annotations\"",
		      "\"deletionTimestamp\":\"2026-11-21T09:08:50Z\",\"annotations\"");
	assert_true(opens_at_once());
	rig_stream_done(rig.streams);
	assert_true(opens_at_once());
}

/* The news that the job has ended comes before the news of its pod, for which an open of the log waits too. */
static void test_rest_of_job(void **state)
{
	story_begin();
	fake_pass(1000);
	story_job("MODIFIED", "one", "u1", "Completed");
	assert_false(opens_at_once());
	story_pod("MODIFIED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	fake_pass(3000);
	assert_false(opens_at_once());
	rig_stream_done(rig.streams);
	assert_true(opens_at_once());
}

/* The job has ended, and its pod runs on. */
static void test_outlives_job(void **state)
{
	story_begin();
	fake_pass(1000);
	story_job("MODIFIED", "one", "u1", "Completed");
	assert_false(opens_at_once());
	fake_pass(1500);
	assert_true(opens_at_once());
	story_job("MODIFIED", "one", "u1", "Completed");
	assert_true(opens_at_once());
}

/* Logs that could not be fetched to their end, and runs of which nothing was seen, are gaps, also after a restart. */
static void test_gaps(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 1);

	story_begin();
	assert_int_equal(story_gaps(), 0);
	story_pod("DELETED", "p1", "u1", 0, "Running", RIG_RUNNING);
	rig_outcome(rig.streams, PODLOG_GONE);
	assert_int_equal(story_gaps(), 1);
	/* A run that printed nothing is no gap, and neither is one that ended well. */
	story_pod("ADDED", "p2", "u1", 0, "Running", RIG_RUNNING);
	story_pod("MODIFIED", "p2", "u1", 0, "Succeeded", RIG_EXIT("0"));
	for (int i = 0; i < 3; i++) {
		while (!rig.streams)
			assert_true(fake_wait(10000));
		rig_outcome(rig.streams, PODLOG_NEVER_RAN);
	}
	assert_int_equal(rig_logs().streams, 0);
	story_pod("ADDED", "p3", "u1", 0, "Running", RIG_RUNNING);
	story_pod("MODIFIED", "p3", "u1", 0, "Succeeded", RIG_EXIT("0"));
	rig_stream_done(rig.streams);
	assert_int_equal(story_gaps(), 1);
	/* The fourth pod is gone when the next mount begins. */
	story_pod("ADDED", "p4", "u1", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	rig_stop();
	rig_start(json, "");
	assert_int_equal(story_gaps(), 2);
	/* The fifth pod has run again and again before anybody saw it. */
	story_odd_pod("ADDED", "p5", "\"restartCount\":0", "\"restartCount\":4");
	/* Of runs 0 to 4 the last two can be had. */
	assert_int_equal(story_follows(), 2);
	assert_int_equal(story_gaps(), 5);
	while (rig.streams)
		rig_stream_done(rig.streams);
	assert_int_equal(story_gaps(), 5);
	/* The job is gone when the next mount begins, and two of its logs were not over. */
	story_pod("ADDED", "p6", "u1", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	rig_stop();
	rig_start("", "");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	assert_int_equal(story_gaps(), 7);
}

/*
 * A container has been run again twice since the last news: what it printed in the first of these runs can't be asked
 * for any more.
 */
static void test_run_again_twice(void **state)
{
	story_begin();
	story_odd_pod("MODIFIED", "p1", "\"restartCount\":0", "\"restartCount\":2");
	assert_true(rig_stream("p1.a.1")->config.previous);
	assert_true(rig_stream("p1.a.2")->config.follow);
	rig_outcome(rig_stream("p1.a.0"), PODLOG_REFUSED);
	fake_pass(60000);
	assert_null(rig_stream("p1.a.0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_turns, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rest, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rest_of_job, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_outlives_job, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_gaps, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_run_again_twice, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("kube_streams", tests, NULL, NULL);
}
