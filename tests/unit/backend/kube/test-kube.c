/* SPDX-License-Identifier: MIT */
/* The jobs of a cluster as readers see them, and what remains of them after their deletion. */
#include "tests/unit/backend/kube/kube_rig.h"
#include "tests/unit/backend/output/output_print.h"

/* That a job has `events` is known without making the text. */
static void test_has_events(void **state)
{
	const struct spec_job *job;

	rig_start("", "");
	story_job("ADDED", "one", "u1", "Running");
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(backend_events(rig.b, job, NULL, NULL, NULL), -ENOENT);
	rig_list("podgroups?limit", "");
	rig_list("events?limit", "");
	assert_int_equal(backend_events(rig.b, job, NULL, NULL, NULL), 0);
	spec_job_unref(job);
}

/* Jobs that can't be confirmed are marked stale, with the error of a watch that still fails. */
static void test_stale(void **state)
{
	cleanup_free char *info = NULL;
	size_t len;
	FILE *out;

	rig_start("", "");
	story_job("ADDED", "one", "u1", "Running");
	fake_end(fake_find("jobs?watch"),
		 &(struct http_reply){.err = -EHOSTUNREACH, .text = "no jobs"});
	fake_end(fake_find("pods?watch"),
		 &(struct http_reply){.err = -EHOSTUNREACH, .text = "no pods"});
	fake_run();
	rig_cancel("one", "u1");
	assert_int_equal(rig.err, -EHOSTUNREACH); /* kxfs answers immediately */
	assert_non_null(strstr(rig.text, "no jobs"));
	while (!fake_find("jobs?limit=1"))
		assert_true(fake_wait(1000));
	rig_confirm();
	fake_find("jobs?watch")->call.head(fake_find("jobs?watch")->call.data, 200);
	fake_run();
	out = open_memstream(&info, &len);
	backend_info(rig.b, out);
	fclose(out);
	assert_non_null(strstr(info, "connected: false"));
	assert_non_null(strstr(info, "no pods"));
}

/*
 * The server deleted the job, but its reply was lost, or a proxy answered. By now another job has
 * the name, so the server refuses the retry. That counts as success.
 */
static void test_cancelled_already(void **state)
{
	rig_start("", "");
	for (int by_proxy = 0; by_proxy < 2; by_proxy++) {
		story_job("ADDED", "one", by_proxy ? "u2" : "u1", "Running");
		rig_cancel("one", by_proxy ? "u2" : "u1");
		if (by_proxy)
			rig_answer(503, "upstream connect error");
		else
			rig_lose(false);
		assert_int_equal(rig.n_answers, 0);
		rig_until_request();
		rig_answer(409, RIG_STATUS("409", "Conflict", "the UID does not match"));
		assert_int_equal(rig.n_answers, 1);
		assert_int_equal(rig.err, 0);
		rig_expect(BACKEND_JOBS, "one", NULL);
		/* Late events of the job do not bring it back. */
		story_job("MODIFIED", "one", by_proxy ? "u2" : "u1", "Terminating");
		rig_expect(BACKEND_JOBS, "one", NULL);
	}
}

static void test_stop(void **state)
{
	for (int moment = 0; moment < 9; moment++) {
		rig.capture = BACKEND_CAPTURE_ALL;
		if (moment == 0)
			rig_new();
		else
			rig_start("", "");
		rig.n_answers = 0;
		rig.err = 0;
		if (moment == 2)
			story_run("one", "u1", "p1");
		if (moment == 3) {
			const struct backend_submission s = {.file = "a.yaml",
							     .text = RIG_APP,
							     .len = strlen(RIG_APP),
							     .submitter = "a"};

			/* Submit, and continue while the pool works on it. */
			backend_submit(rig.b, &s, rig_reply, NULL);
			fake_step(&fake.posted);
		}
		if (moment >= 4)
			rig_submit(RIG_APP);
		if (moment == 5)
			rig_lose(true);
		if (moment == 6)
			rig_answer(409, RIG_STATUS("409", "AlreadyExists", "x"));
		if (moment == 7)
			/* kxfs removes the job's record */
			fake_break(rig_request(), -EHOSTUNREACH, false);
		if (moment == 8) {
			story_job("ADDED", "one", "u1", "Running");
			rig_cancel("one", "u1");
			/* the submission was answered; skip the wait for the cancel */
			rig.n_answers = 1;
		}
		rig_stop();
		if (moment >= 3)
			assert_true(rig.n_answers >= 1 && rig.err < 0);
	}
}

/*
 * If there are more objects than kxfs reads, the message names the options that reduce their
 * number.
 */
static void test_too_many(void **state)
{
	static const struct {
		const char *list;
		bool mine;
		const char *end;
	} table[] = {
		{"jobs?limit", false, "; to list fewer objects, use -o mine or -o selector="},
		{"jobs?limit", true, "; to list fewer objects, use -o selector="},
		{"pods?limit", false, "; to list fewer objects, use -o mine"},
		{"pods?limit", true, " MiB"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const struct http_reply large = {.err = -EFBIG, .status = 200};
		const char *text;

		rig.mine = table[i].mine;
		rig_new();
		fake_end(fake_find(table[i].list), &large);
		fake_run();
		assert_int_equal(rig.b->started.err, -EFBIG);
		text = rig.b->started.text;
		if (strlen(text) < strlen(table[i].end) ||
		    !streq(text + strlen(text) - strlen(table[i].end), table[i].end))
			fail_msg("%s", text);
		rig_stop();
	}
}

/* Cancel the job "one", whose log then ends. Return the DELETE. */
static struct http_request *delete_one(void)
{
	rig_cancel("one", "u1");
	rig_outcome(rig.streams, PODLOG_ALL);
	while (!fake_find(RIG_JOBS "/one"))
		assert_true(fake_wait(30000));
	return fake_find(RIG_JOBS "/one");
}

/*
 * A job is deleted before kxfs sees its end. The state that kxfs showed then remains, whatever late
 * events arrive.
 */
static void test_end_stays(void **state)
{
	story_begin();
	fake_answer(delete_one(), 200, RIG_DELETED);
	fake_run();
	assert_int_equal(rig.n_answers, 1);
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	story_job("MODIFIED", "one", "u1", "Failed");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	story_job("DELETED", "one", "u1", "Failed");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
}

/*
 * A failed job is deleted. Its controller then reports only that the job is terminating, no longer
 * that it failed.
 */
static void test_told_end_stays(void **state)
{
	struct http_request *delete;

	story_begin();
	story_job("MODIFIED", "one", "u1", "Failed");
	rig_expect(BACKEND_JOBS, "one", "FAILED");
	delete = delete_one();
	story_job("MODIFIED", "one", "u1", "Terminating");
	fake_answer(delete, 200, RIG_DELETED);
	fake_run();
	rig_expect(BACKEND_HISTORY, "one", "FAILED");
	story_job("DELETED", "one", "u1", "Terminating");
	rig_expect(BACKEND_HISTORY, "one", "FAILED");
}

/*
 * Output that an earlier mount captured is in the history too, although kxfs follows no log of the
 * job now.
 */
static void test_earlier_output(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Completed", 2);

	story_begin();
	fake_pass(5000);
	rig_stop();
	rig.capture = BACKEND_CAPTURE_NONE;
	rig_start(json, "");
	rig_expect(BACKEND_JOBS, "one", "SUCCEEDED");
	story_job("DELETED", "one", "u1", "Completed");
	rig_expect(BACKEND_HISTORY, "one", "SUCCEEDED");
	assert_true(rig_has_record("one"));
}

/*
 * A mount that had nothing left to capture has shown how the job ended. That result remains even if
 * the job is gone when the next mount starts.
 */
static void test_end_without_output(void **state)
{
	cleanup_free char *runs = rig_job("one", "u1", "Running", 1);
	cleanup_free char *failed = rig_job("one", "u1", "Failed", 2);

	story_begin();
	story_pod("MODIFIED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	rig_stream_done(rig.streams);
	fake_pass(5000);
	rig_stop();
	rig.capture = BACKEND_CAPTURE_NONE;
	/* This mount completes the merged log. */
	rig_start(runs, "");
	fake_pass(5000);
	rig_stop();
	rig_start(failed, "");
	rig_expect(BACKEND_JOBS, "one", "FAILED");
	fake_pass(5000);
	rig_stop();
	rig_start("", "");
	rig_expect(BACKEND_HISTORY, "one", "FAILED");
}

static bool has_file(const char *id, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/output/%s/%s", rig.dir, rig_record_key(id), name);
	return access(path, F_OK) == 0;
}

static void expect_own(const char *id)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, id);

	assert_non_null(job);
	assert_true(job->own);
}

/*
 * When the spool exceeds its limit, kxfs removes the output of a finished job. It still knows that
 * the user submitted the job.
 */
static void test_spool_limit(void **state)
{
	cleanup_free char *pod = rig_pod("p1", "u-0", 0, "Succeeded", RIG_EXIT("0"));
	cleanup_free char *json = NULL;
	cleanup_free char *id = NULL;

	rig.capture = BACKEND_CAPTURE_OWN;
	rig.spool_limit = 10;
	rig_start("", "");
	rig_submit(RIG_APP);
	rig_serve();
	assert_int_equal(rig.err, 0);
	id = strdup(rig.id);
	story_run(id, "u-0", "p1");
	assert_non_null(rig.streams);
	output_print(output_job_open(rig.b->output, rig_record_key(id)), "p1.a.0",
		     "more than ten bytes\n");
	rig_pod_event("MODIFIED", pod);
	rig_stream_done(rig.streams);
	json = rig_job(id, "u-0", "Completed", 1);
	rig_job_event("MODIFIED", json);
	fake_pass(120000);
	assert_false(has_file(id, "logs"));
	assert_true(rig_has_record(id));
	expect_own(id);
	rig_stop();
	rig_start(json, pod);
	expect_own(id);
	/* otherwise each start would fetch the output again and drop it */
	assert_null(rig.streams);
	rig_job_event("DELETED", json);
	rig_expect(BACKEND_JOBS, id, NULL);
	rig_expect(BACKEND_HISTORY, id, "SUCCEEDED");
	fake_pass(5000);
	rig_stop();
	rig_start("", "");
	rig_expect(BACKEND_HISTORY, id, "SUCCEEDED");
}

/*
 * Run the job NAME, with its own uid and pod, to the end PHASE. If PHASE is NULL, delete the job
 * instead.
 */
static void run_to_end(const char *name, const char *phase)
{
	cleanup_free char *uid = text_print("u-%s", name), *pod = text_print("p-%s", name);
	cleanup_free char *key = text_print("%s.a.0", pod);

	story_run(name, uid, pod);
	output_print(output_job_open(rig.b->output, uid), key, "more than ten bytes\n");
	story_pod("MODIFIED", pod, uid, 0, "Succeeded", RIG_EXIT("0"));
	story_job(phase ? "MODIFIED" : "DELETED", name, uid, phase ? phase : "Running");
	while (rig.streams)
		rig_stream_done(rig.streams);
	fake_pass(5000);
}

/* The same, and its output is kept. */
static void kept_job(const char *name, const char *phase)
{
	run_to_end(name, phase);
	assert_true(has_file(name, "logs"));
	assert_true(rig_has_record(name));
}

/*
 * To free space, kxfs removes the output of the history, then that of finished jobs. It never
 * removes the output of a job that is running or may run again.
 */
static void test_spool_order(void **state)
{
	static const char *const phases[] = {"Completed", "Aborted", "Running"};
	cleanup_free char *jobs = strdup(""), *said = NULL;
	const char *at;
	size_t len;

	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	for (size_t i = 0; i < array_size(phases); i++) {
		cleanup_free char *before = jobs, *uid = text_print("u-%s", phases[i]);
		cleanup_free char *job = rig_job(phases[i], uid, phases[i], 2);

		jobs = text_print("%s%s%s", before, i ? "," : "", job);
		kept_job(phases[i], phases[i]);
	}
	kept_job("gone", NULL);
	rig_stop();
	rig.spool_limit = 10;
	rig_start(jobs, "");
	fake_pass(120000);
	said = diag_text(&len);
	at = strstr(said, "gone: kxfs removed the job's output");
	assert_non_null(at);
	assert_non_null(strstr(at, "Completed: kxfs removed the job's output"));
	assert_false(has_file("gone", "logs"));
	assert_false(has_file("Completed", "logs"));
	assert_true(has_file("Aborted", "logs/p-Aborted.a.0"));
	assert_true(has_file("Running", "logs/p-Running.a.0"));
	rig_expect(BACKEND_HISTORY, "gone", "CANCELLED");
	rig_expect(BACKEND_JOBS, "Completed", "SUCCEEDED");
	/* The message is reported once. */
	at = strstr(said, "more than its limit of 10; kxfs removes nothing, because all output "
			  "belongs to jobs that may still print");
	assert_non_null(at);
	assert_null(strstr(strstr(at, "may still print") + 1, "may still print"));
}

/* The output of a job is removed before its record could be created. The record then shows that. */
static void test_spool_without_record(void **state)
{
	const struct spec_job *job cleanup_job = NULL;
	cleanup_free char *said = NULL;
	char jobs[256], away[256];
	size_t len;

	snprintf(jobs, sizeof(jobs), "%s/jobs", rig.dir);
	snprintf(away, sizeof(away), "%s/away", rig.dir);
	rig.capture = BACKEND_CAPTURE_ALL;
	rig.spool_limit = 10;
	rig_start("", "");
	assert_int_equal(rename(jobs, away), 0);
	run_to_end("done", "Completed");
	fake_pass(120000);
	said = diag_text(&len);
	assert_non_null(strstr(said, "done: kxfs removed the job's output"));
	assert_int_equal(rename(away, jobs), 0);
	fake_pass(5000);
	job = backend_job(rig.b, BACKEND_JOBS, "done");
	assert_non_null(job);
	assert_false(job->replicas[0].logs[0].complete);
	assert_true(record_head(records_by_uid(rig.b->records, "u-done"))->dropped);
}

/* While kxfs removes the output of a job, the job is not archived. */
static void test_not_settled_while_removed(void **state)
{
	const struct spec_job *job cleanup_job = NULL;

	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	kept_job("done", "Completed");
	job = backend_job(rig.b, BACKEND_JOBS, "done");
	assert_true(rig.b->ops->is_settled(rig.b, job));
	capture_forget(rig.k->capture, "u-done");
	folders_drop_output(rig.k->folders, "u-done", NULL, NULL);
	assert_false(rig.b->ops->is_settled(rig.b, job));
	fake_run();
	assert_false(has_file("done", "logs"));
	assert_true(rig.b->ops->is_settled(rig.b, job));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_has_events, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stale, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_cancelled_already, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stop, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_too_many, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_earlier_output, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_spool_limit, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_spool_order, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_spool_without_record, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_not_settled_while_removed, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_end_stays, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_told_end_stays, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_end_without_output, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("kube", tests, NULL, NULL);
}
