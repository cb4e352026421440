/* SPDX-License-Identifier: MIT */
/*
 * Which logs of a cluster's jobs are followed and in what order, and which output is lost. Also:
 * logs that the server refuses.
 */
#include "tests/unit/backend/kube/kube_rig.h"

#include <sys/resource.h>

/* The limit allows 256 descriptors for everything else, plus 1000 logs. */
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
	/* A log whose run has ended does not wait behind those of running containers. */
	story_pod("MODIFIED", "p1005", "u1", 1005, "Succeeded", RIG_EXIT("0"));
	assert_non_null(rig_stream("p1005.a.0"));
	assert_int_equal(story_follows(), 1001);
	/* p1005 counts as waiting until its log is complete */
	assert_int_equal(story_waiting(), 10);
	/* The other logs get the slots that become free, in order. */
	rig_stream_done(rig_stream("p1005.a.0"));
	assert_int_equal(story_follows(), 1000);
	rig_outcome(rig_stream("p3.a.0"), PODLOG_GONE);
	rig_outcome(rig_stream("p4.a.0"), PODLOG_GONE);
	assert_non_null(rig_stream("p1000.a.0"));
	assert_non_null(rig_stream("p1001.a.0"));
	assert_int_equal(story_follows(), 1000);
	assert_int_equal(story_waiting(), 7);
}

/*
 * If a job is not captured, kxfs follows logs that begin later only while a reader has the merged
 * log open.
 */
static void test_later_runs(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 2);
	const struct spec_job *job cleanup_job = NULL;
	struct log *log;

	rig.capture = BACKEND_CAPTURE_NONE;
	rig_start(json, "");
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(backend_log(rig.b, job, NULL, LOG_PLAIN, &log), 0);
	story_pod("ADDED", "p0", "u1", 0, "Running", RIG_RUNNING);
	assert_non_null(rig_stream("p0.a.0"));
	log_unref(log);
	story_pod("ADDED", "p1", "u1", 1, "Running", RIG_RUNNING);
	assert_null(rig_stream("p1.a.0"));
}

/*
 * kxfs counts a gap for a log that it could not read to its end, and for a run that it never saw.
 * The gaps remain after a restart.
 */
static void test_gaps(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 1);

	story_begin();
	assert_int_equal(story_gaps(), 0);
	story_pod("DELETED", "p1", "u1", 0, "Running", RIG_RUNNING);
	rig_outcome(rig.streams, PODLOG_GONE);
	assert_int_equal(story_gaps(), 1);
	/* The second pod is gone when the next mount starts. */
	story_pod("ADDED", "p2", "u1", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	rig_stop();
	rig_start(json, "");
	assert_int_equal(story_gaps(), 2);
	/* The third pod was restarted several times before kxfs saw it. */
	story_restarted_pod("ADDED", "p3", '4');
	/* Of the runs 0 to 4, only the last two have a readable log. */
	assert_int_equal(story_follows(), 2);
	assert_int_equal(story_gaps(), 5);
	while (rig.streams)
		rig_stream_done(rig.streams);
	assert_int_equal(story_gaps(), 5);
	/* The job is gone when the next mount starts, and two of its logs were incomplete. */
	story_pod("ADDED", "p4", "u1", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	rig_stop();
	rig_start("", "");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	assert_int_equal(story_gaps(), 7);
}

/*
 * End the pod of the only followed log of "one". kxfs then knows that the other replica never had a
 * pod.
 */
static void end_pod(void)
{
	story_begin();
	story_pod("MODIFIED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	story_job("MODIFIED", "one", "u1", "Completed");
	fake_pass(7000);
}

/* End the pod, then refuse its log. */
static void refuse_log(void)
{
	end_pod();
	rig_stream_refused(rig.streams);
}

/* Assert that kxfs does not follow the log now, has not abandoned it, and reports that. */
static void assert_rests(void)
{
	assert_null(rig.streams);
	assert_int_equal(rig_logs().streams, 0);
	assert_int_equal(story_waiting(), 1);
	assert_int_equal(story_gaps(), 0);
}

static void assert_tried(void)
{
	assert_non_null(rig.streams);
	assert_int_equal(story_waiting(), 1);
}

static bool is_merged_over(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	struct log *log cleanup_log = NULL;
	struct log_stat st = {0};

	assert_int_equal(backend_log(rig.b, job, NULL, LOG_PLAIN, &log), 0);
	assert_int_equal(log_stat(log, &st), 0);
	return st.ended;
}

/*
 * kxfs requests the log again after pauses that grow up to a bound, until the server returns it.
 * Readers do not wait for that.
 */
static void test_refused_rests(void **state)
{
	uint64_t pause = 0, begun;

	refuse_log();
	for (int i = 0; i < 20; i++) {
		assert_rests();
		begun = fake.now;
		while (!rig.streams)
			assert_true(fake_wait(120000));
		pause = fake.now - begun;
		if (i == 0)
			assert_in_range(pause, 1, 5000);
		assert_tried();
		rig_stream_refused(rig.streams);
	}
	assert_in_range(pause, 30000, 120000);
	assert_true(is_merged_over());
	while (!rig.streams)
		assert_true(fake_wait(120000));
	rig_stream_done(rig.streams);
	fake_pass(200000);
	assert_null(rig.streams);
	assert_int_equal(story_waiting(), 0);
	assert_int_equal(story_gaps(), 0);
}

/* If the job and its pod are gone, kxfs counts a gap, and forgets the job like any other. */
static void test_refused_and_gone(void **state)
{
	refuse_log();
	story_job("DELETED", "one", "u1", "Completed");
	story_pod("DELETED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	fake_pass(10);
	assert_int_equal(rig_known_jobs(), 0);
	assert_int_equal(story_gaps(), 1);
}

/*
 * While the server is unreachable, all logs wait for it. So do readers of output that could not be
 * fetched yet.
 */
static void test_refused_while_away(void **state)
{
	end_pod();
	fake_end(fake_find("jobs?watch"), &(struct http_reply){.err = -EIO, .text = "it broke"});
	for (int i = 0; i < 5; i++) {
		rig_stream_refused(rig.streams);
		assert_rests();
		assert_false(is_merged_over());
		fake_pass(10);
		while (!rig.streams)
			assert_true(fake_wait(120000));
	}
	rig_stream_refused(rig.streams);
	while (!fake_find("jobs?limit=1"))
		assert_true(fake_wait(20000));
	rig_confirm();
	while (rig.streams)
		rig_stream_refused(rig.streams);
	fake_find("jobs?watch")->call.head(fake_find("jobs?watch")->call.data, 200);
	fake_run();
	assert_non_null(rig.streams);
	rig_stream_done(rig.streams);
	assert_true(is_merged_over());
}

/*
 * Refused logs take no slots from other logs. kxfs retries only a few of them at the same time, and
 * not too often.
 */
static void test_refused_many(void **state)
{
	size_t tried = 0;
	char job[16], uid[16];

	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	for (unsigned i = 0; i < 1000; i++) {
		cleanup_free char *json = NULL;

		snprintf(job, sizeof(job), "j%u", i / 10);
		snprintf(uid, sizeof(uid), "p%u", i);
		json = i % 10 ? NULL : rig_job(job, job, "Running", 10);
		if (json)
			rig_job_event("ADDED", json);
		story_pod("ADDED", uid, job, i % 10, "Failed", RIG_EXIT("1"));
	}
	for (int i = 0; i < 12; i++) {
		while (rig.streams)
			rig_outcome(rig.streams, PODLOG_REFUSED);
		if (rig_logs().streams || rig_logs().waiting)
			fake_pass(8000);
	}
	assert_int_equal(rig_logs().streams, 0);
	assert_int_equal(rig_logs().waiting, 0);
	story_run("one", "u1", "r1");
	assert_int_equal(story_follows(), 1);
	/* At first the server answers no request, then all of them. */
	fake_pass(200000);
	assert_int_equal(story_follows(), 1 + 8);
	for (uint64_t until = fake.now + 100000; fake.now < until; fake_wait(120000)) {
		while (story_follows() > 1) {
			rig_outcome(rig.streams->next, PODLOG_REFUSED);
			tried++;
		}
	}
	assert_in_range(tried, 1000 + 500, 1000 + 1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_turns, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_later_runs, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_gaps, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_rests, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_and_gone, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_while_away, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_many, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("kube_streams", tests, NULL, NULL);
}
