/* SPDX-License-Identifier: MIT */
/* Which logs of a cluster's jobs are followed, in what order, and what is lost. */
#include "tests/unit/backend/kube/kube_story.h"

#include <sys/resource.h>

/* Only so many first fetches at once; the next begins when one is there. */
static void test_first_fetches(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 12);
	const struct spec_job *job;
	struct log *log;
	struct capture_log *f;
	size_t n;

	(void)state;
	rig.capture = BACKEND_CAPTURE_NONE;
	rig_start(json, "");
	for (unsigned i = 0; i < 12; i++) {
		char uid[16];

		snprintf(uid, sizeof(uid), "p%u", i);
		story_pod("ADDED", uid, "u1", i, "Running", RIG_RUNNING);
	}
	assert_null(rig.follows);
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(backend_log(rig.b, job, NULL, LOG_PLAIN, &log), 0);
	fake_run();
	DL_COUNT(rig.follows, f, n);
	assert_int_equal(n, 8);
	/* They go on following, but the reader has what it waits for. */
	rig.follows->config.arrived(rig.follows->config.data);
	DL_COUNT(rig.follows, f, n);
	assert_int_equal(n, 9);
	log_unref(log);
	spec_job_unref(job);
}

/* With descriptors for 1000 logs beside the 256 of all else. */
static void test_turns(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 1010);
	const struct rlimit limit = {256 + 2 * 1000, 256 + 2 * 1000};

	(void)state;
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
	assert_null(rig_follow("p1005.a.0"));
	/* One that has ended need not wait for those that run on. */
	story_pod("MODIFIED", "p1005", "u1", 1005, "Succeeded", RIG_EXIT("0"));
	assert_non_null(rig_follow("p1005.a.0"));
	assert_true(rig_follow("p1005.a.0")->ended);
	assert_int_equal(story_follows(), 1001);
	assert_int_equal(story_waiting(), 9);
	/* The others take the places that become free, in their order. */
	rig_follow_done(rig_follow("p1005.a.0"));
	assert_int_equal(story_follows(), 1000);
	rig_follow_done(rig_follow("p3.a.0"));
	rig_follow_done(rig_follow("p4.a.0"));
	assert_non_null(rig_follow("p1000.a.0"));
	assert_non_null(rig_follow("p1001.a.0"));
	assert_int_equal(story_follows(), 1000);
	assert_int_equal(story_waiting(), 7);
}

/* A pod on its way out. */
static void test_terminating(void **state)
{
	(void)state;
	story_begin();
	assert_false(rig.follows->hurry);
	story_odd_pod("MODIFIED", "p1", "\"annotations\"",
		      "\"deletionTimestamp\":\"2026-11-21T09:08:50Z\",\"annotations\"");
	assert_true(rig.follows->hurry);
	assert_false(rig.follows->ended);
}

/* Has who opens the log of p1 now waited for all that there is? */
static bool opens_at_once(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	struct log *log cleanup_log = NULL;

	assert_int_equal(backend_log(rig.b, job, "p1.a.0", LOG_PLAIN, &log), 0);
	fake_run();
	return log_has_arrived(log);
}

/* Who opens a log after its end waits for the rest, but not for long. */
static void test_rest(void **state)
{
	(void)state;
	story_begin();
	rig.follows->config.arrived(rig.follows->config.data);
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
	rig_follow_done(rig.follows);
	assert_true(opens_at_once());
}

/* The news that the job has ended come before those of its pod, for which who opens the log waits too. */
static void test_rest_of_job(void **state)
{
	(void)state;
	story_begin();
	rig.follows->config.arrived(rig.follows->config.data);
	story_job("MODIFIED", "one", "u1", "Completed");
	assert_false(opens_at_once());
	story_pod("MODIFIED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	fake_pass(3000);
	assert_false(opens_at_once());
	rig_follow_done(rig.follows);
	assert_true(opens_at_once());
}

/* The job has ended, and its pod runs on. */
static void test_outlives_job(void **state)
{
	(void)state;
	story_begin();
	rig.follows->config.arrived(rig.follows->config.data);
	story_job("MODIFIED", "one", "u1", "Completed");
	assert_false(opens_at_once());
	fake_pass(1500);
	assert_true(opens_at_once());
	story_job("MODIFIED", "one", "u1", "Completed");
	assert_true(opens_at_once());
}

/* What could not be fetched to its end, and runs of which nothing was seen, are gaps, also after a restart. */
static void test_gaps(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 1);

	(void)state;
	story_begin();
	assert_int_equal(story_gaps(), 0);
	story_pod("DELETED", "p1", "u1", 0, "Running", RIG_RUNNING);
	rig_follow_over(rig.follows, -ENOENT);
	assert_int_equal(story_gaps(), 1);
	/* One that had nothing to say is none; one that ended well is none. */
	story_pod("ADDED", "p2", "u1", 0, "Running", RIG_RUNNING);
	rig_follow_over(rig.follows, -ENODATA);
	story_pod("ADDED", "p3", "u1", 0, "Running", RIG_RUNNING);
	rig_follow_done(rig.follows);
	assert_int_equal(story_gaps(), 1);
	/* The fourth is gone when the next mount begins. */
	story_pod("ADDED", "p4", "u1", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	rig_stop();
	rig_start(json, "");
	assert_int_equal(story_gaps(), 2);
	/* The fifth has run again and again before anybody saw it. */
	story_odd_pod("ADDED", "p5", "\"restartCount\":0", "\"restartCount\":4");
	/* Of runs 0 to 4 the last two can be had. */
	assert_int_equal(story_follows(), 2);
	assert_int_equal(story_gaps(), 5);
	while (rig.follows)
		rig_follow_done(rig.follows);
	assert_int_equal(story_gaps(), 5);
	/* The job is gone when the next mount begins. */
	story_pod("ADDED", "p6", "u1", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	rig_stop();
	rig_start("", "");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	assert_int_equal(story_gaps(), 6);
}

/* A container has been run again twice since the last news: what it printed first can't be asked for any more. */
static void test_run_again_twice(void **state)
{
	(void)state;
	story_begin();
	story_odd_pod("MODIFIED", "p1", "\"restartCount\":0", "\"restartCount\":2");
	assert_int_equal(rig_follow("p1.a.0")->end, CAPTURE_GONE);
	assert_int_equal(rig_follow("p1.a.1")->end, CAPTURE_PREVIOUS);
	assert_false(rig_follow("p1.a.2")->ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first_fetches, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_turns, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_terminating, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rest, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rest_of_job, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_outlives_job, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_gaps, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_run_again_twice, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("kube_streams", tests, NULL, NULL);
}
