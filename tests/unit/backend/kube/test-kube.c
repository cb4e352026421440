/* SPDX-License-Identifier: MIT */
/* The jobs of a cluster as readers see them, and what remains of them after their deletion. */
#include "tests/unit/backend/kube/kube_rig.h"
#include "tests/unit/backend/output/output_print.h"

static void test_join(void **state)
{
	const struct spec_job *job;

	rig_start("", "");
	/* Pods may arrive before their job. */
	story_pod("ADDED", "p0", "u0", 0, "Running", RIG_RUNNING);
	story_pod("ADDED", "p1", "u0", 1, "Pending", "{}");
	rig_expect(BACKEND_JOBS, "one", NULL);
	story_job("ADDED", "one", "u0", "Running");
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(job->replicas[0].state, SPEC_RUNNING);
	assert_int_equal(job->replicas[1].state, SPEC_PENDING);
	spec_job_unref(job);
	/* kxfs keeps the last state of a deleted pod. */
	story_pod("MODIFIED", "p0", "u0", 0, "Failed", RIG_EXIT("3"));
	story_pod("DELETED", "p0", "u0", 0, "Failed", RIG_EXIT("3"));
	story_pod("DELETED", "p1", "u0", 1, "Pending", "{}");
	story_job("MODIFIED", "one", "u0", "Failed");
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(job->state, SPEC_FAILED);
	assert_int_equal(job->replicas[0].exit_code, 3);
	spec_job_unref(job);
	/* kxfs ignores pods without an owner, and objects that it can't parse. */
	rig_pod_event("ADDED", "{\"metadata\":{\"name\":\"x\",\"uid\":\"x\",\"resourceVersion\":"
			       "\"7\"}}");
	rig_pod_event("ADDED", "{\"metadata\":{\"name\":\"../x\",\"uid\":\"x\",\"resourceVersion\":"
			       "\"7\"}}");
	assert_int_equal(world_n_pods(rig.k->world), 0);
	story_job("DELETED", "one", "u0", "Failed");
	rig_expect(BACKEND_JOBS, "one", NULL);
	rig_expect(BACKEND_HISTORY, "one", NULL);
	assert_int_equal(rig_known_jobs(), 0);
}

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

/* kxfs compares the objects of a new list with the known ones. */
static void test_relist(void **state)
{
	cleanup_free char *one = rig_job("one", "u1", "Running", 1);
	cleanup_free char *two = rig_job("two", "u2", "Running", 1);
	cleanup_free char *pod = rig_pod("p1", "u1", 0, "Running", RIG_RUNNING);
	cleanup_free char *both = NULL;

	assert_true(asprintf(&both, "%s,%s", one, two) > 0);
	rig_start(both, pod);
	rig_expect(BACKEND_JOBS, "one", "RUNNING");
	fake_pass(10000);
	rig_event("jobs?watch", "MODIFIED", two);
	fake_answer(fake_find("jobs?watch"), 410, "{}");
	fake_pass(1000);
	/* All jobs remain until the new list is complete. */
	rig_expect(BACKEND_JOBS, "one", "RUNNING");
	rig_list("jobs?limit", two);
	rig_expect(BACKEND_JOBS, "one", NULL);
	rig_expect(BACKEND_JOBS, "two", "RUNNING");
	fake_answer(fake_find("pods?watch"), 410, "{}");
	fake_pass(1000);
	rig_list("pods?limit", "");
	assert_int_equal(world_n_pods(rig.k->world), 0);
	assert_int_equal(rig_known_jobs(), 1);
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

static void test_cancel(void **state)
{
	rig_start("", "");
	for (int i = 0; i < 8; i++) {
		char name[16], uid[16];

		snprintf(name, sizeof(name), "job-%d", i);
		snprintf(uid, sizeof(uid), "u%d", i);
		story_job("ADDED", name, uid, "Running");
		rig_cancel(name, uid);
		assert_int_equal(rig_request()->call.method, HTTP_DELETE);
		assert_non_null(strstr(rig_request()->body, uid));
		assert_non_null(strstr(rig_request()->body, "Background"));
		switch (i) {
		case 0:
			rig_answer(200, RIG_DELETED);
			break;
		case 1:
			rig_answer(404, RIG_STATUS("404", "NotFound", "gone"));
			break;
		/*
		 * The server deleted the job, but the reply was lost. By now another job has the
		 * name.
		 */
		case 2:
			rig_lose(false);
			rig_until_request();
			rig_answer(409, RIG_STATUS("409", "Conflict", "the UID does not match"));
			break;
		/*
		 * A proxy answered instead of the server. The next reply shows that the server did
		 * delete the job.
		 */
		case 6:
			rig_answer(503, "upstream connect error");
			rig_until_request();
			rig_answer(409, RIG_STATUS("409", "Conflict", "the UID does not match"));
			break;
		case 7: /* a proxy's page does not count as success: the job is still running */
			for (int try = 0; rig.n_answers == 0; try++) {
				assert_true(try < 10);
				rig_until_request();
				rig_answer(200, RIG_PAGE);
			}
			assert_int_equal(rig.err, -EIO);
			assert_non_null(strstr(rig.text, "Please log in"));
			rig_expect(BACKEND_JOBS, name, "RUNNING");
			continue;
		case 3:
			rig_answer(409, RIG_STATUS("409", "Conflict", "the UID does not match"));
			assert_int_equal(rig.err, -ESTALE);
			rig_expect(BACKEND_JOBS, name, "RUNNING");
			continue;
		case 4:
			rig_answer(403, RIG_STATUS("403", "Forbidden", "no"));
			assert_int_equal(rig.err, -EACCES);
			rig_expect(BACKEND_JOBS, name, "RUNNING");
			continue;
		default:
			fake_break(rig_request(), -EHOSTUNREACH, false);
			fake_run();
			assert_int_equal(rig.err, -EHOSTUNREACH);
			rig_expect(BACKEND_JOBS, name, "RUNNING");
			continue;
		}
		assert_int_equal(rig.n_answers, 1);
		assert_int_equal(rig.err, 0);
		rig_expect(BACKEND_JOBS, name, NULL);
		/* Late events of the job do not bring it back. */
		story_job("MODIFIED", name, uid, "Terminating");
		rig_expect(BACKEND_JOBS, name, NULL);
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

static void test_history(void **state)
{
	story_begin();
	assert_non_null(rig.streams);
	story_job("DELETED", "one", "u1", "Running");
	rig_expect(BACKEND_JOBS, "one", NULL);
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	/* The last output still arrives, until the pod is gone. */
	assert_non_null(rig.streams);
	story_pod("DELETED", "p1", "u1", 0, "Running", RIG_RUNNING);
	rig_stream_done(rig.streams);
	assert_int_equal(rig_known_jobs(), 0);
	fake_pass(5000);
	/* After a remount, the output is still there, and can be removed for good. */
	rig_stop();
	rig_start("", "");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	backend_forget(rig.b, "one", "u1", rig_reply, NULL);
	fake_run();
	assert_int_equal(rig.err, 0);
	rig_expect(BACKEND_HISTORY, "one", NULL);
	assert_false(rig_has_record("one"));
}

/*
 * A job is deleted before kxfs sees its end. The state that kxfs showed then remains, whatever late
 * events arrive.
 */
static void test_end_stays(void **state)
{
	story_begin();
	rig_cancel("one", "u1");
	rig_outcome(rig.streams, PODLOG_ALL);
	while (!fake_find(RIG_JOBS "/one"))
		assert_true(fake_wait(30000));
	fake_answer(fake_find(RIG_JOBS "/one"), 200, RIG_DELETED);
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
	story_begin();
	story_job("MODIFIED", "one", "u1", "Failed");
	rig_expect(BACKEND_JOBS, "one", "FAILED");
	rig_cancel("one", "u1");
	rig_outcome(rig.streams, PODLOG_ALL);
	while (!fake_find(RIG_JOBS "/one"))
		assert_true(fake_wait(30000));
	story_job("MODIFIED", "one", "u1", "Terminating");
	fake_answer(fake_find(RIG_JOBS "/one"), 200, RIG_DELETED);
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

static void expect_said(const char *part)
{
	size_t len;
	cleanup_free char *said = diag_text(&len);

	if (!strstr(said, part))
		fail_msg("\"%s\" was not said", part);
}

/*
 * Run the job NAME, with its own uid and pod, to the end PHASE. If PHASE is NULL, delete the job
 * instead.
 */
static void kept_job(const char *name, const char *phase)
{
	char uid[32], pod[32], key[64];

	snprintf(uid, sizeof(uid), "u-%s", name);
	snprintf(pod, sizeof(pod), "p-%s", name);
	snprintf(key, sizeof(key), "%s.a.0", pod);
	story_run(name, uid, pod);
	output_print(output_job_open(rig.b->output, uid), key, "more than ten bytes\n");
	if (phase) {
		story_pod("MODIFIED", pod, uid, 0, "Succeeded", RIG_EXIT("0"));
		story_job("MODIFIED", name, uid, phase);
		while (rig.streams)
			rig_stream_done(rig.streams);
	} else {
		story_end(name, uid, pod);
	}
	fake_pass(5000);
	assert_true(has_file(name, "logs"));
	assert_true(rig_has_record(name));
}

/* Return the list of the N jobs with their PHASES, or of their pods if PODS. malloc'ed. */
static char *list_of(const char *const *names, const char *const *phases, size_t n, bool pods)
{
	char *ret = strdup("");

	for (size_t i = 0; i < n; i++) {
		cleanup_free char *before = ret, *one = NULL;
		char uid[32], pod[32];

		snprintf(uid, sizeof(uid), "u-%s", names[i]);
		snprintf(pod, sizeof(pod), "p-%s", names[i]);
		if (!pods)
			one = rig_job(names[i], uid, phases[i], 2);
		else if (streq(phases[i], "Running"))
			one = rig_pod(pod, uid, 0, "Running", RIG_RUNNING);
		else
			one = rig_pod(pod, uid, 0, "Succeeded", RIG_EXIT("0"));
		assert_true(asprintf(&ret, "%s%s%s", before, i ? "," : "", one) > 0);
	}
	return ret;
}

/*
 * To free space, kxfs first removes the oldest output of the history, then that of finished jobs.
 * It never removes the output of a job that is running or may run again.
 */
static void test_spool_order(void **state)
{
	static const char *const names[] = {"done-1", "done-2", "aborted", "live"};
	static const char *const phases[] = {"Completed", "Failed", "Aborted", "Running"};
	static const char *const order[] = {"gone-1", "gone-2", "done-1", "done-2"};
	cleanup_free char *jobs = list_of(names, phases, array_size(names), false);
	cleanup_free char *pods = list_of(names, phases, array_size(names), true);
	cleanup_free char *said = NULL;
	const char *at;
	size_t len;

	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	for (size_t i = 0; i < 3; i++)
		kept_job(names[i], phases[i]);
	kept_job("gone-1", NULL);
	kept_job("gone-2", NULL);
	story_run("live", "u-live", "p-live");
	fake_pass(5000);
	rig_stop();
	rig.spool_limit = 10;
	rig_start(jobs, pods);
	fake_pass(120000);
	said = diag_text(&len);
	at = said;
	for (size_t i = 0; i < array_size(order); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s: kxfs removed the job's output", order[i]);
		at = at ? strstr(at, text) : NULL;
		if (!at)
			fail_msg("%s did not go in its turn:\n%s", order[i], said);
		assert_false(has_file(order[i], "logs"));
	}
	rig_expect(BACKEND_HISTORY, "gone-1", "CANCELLED");
	rig_expect(BACKEND_HISTORY, "gone-2", "CANCELLED");
	rig_expect(BACKEND_JOBS, "done-1", "SUCCEEDED");
	assert_true(has_file("aborted", "logs/p-aborted.a.0"));
	assert_true(has_file("live", "logs/p-live.a.0"));
	/* The message is reported once. */
	expect_said(
		"more than its limit of 10; kxfs removes nothing, because all output belongs to jobs that may still print");
	free(take_ptr(said));
	said = diag_text(&len);
	at = strstr(said, "may still print");
	assert_null(at ? strstr(at + 1, "may still print") : "not said");
}

/* The output of a job is removed before its record could be created. The record then shows that. */
static void test_spool_without_record(void **state)
{
	const struct spec_job *job cleanup_job = NULL;
	char jobs[256], away[256];

	snprintf(jobs, sizeof(jobs), "%s/jobs", rig.dir);
	snprintf(away, sizeof(away), "%s/away", rig.dir);
	rig.capture = BACKEND_CAPTURE_ALL;
	rig.spool_limit = 10;
	rig_start("", "");
	assert_int_equal(rename(jobs, away), 0);
	story_run("done", "u-done", "p-done");
	output_print(output_job_open(rig.b->output, "u-done"), "p-done.a.0",
		     "more than ten bytes\n");
	story_pod("MODIFIED", "p-done", "u-done", 0, "Succeeded", RIG_EXIT("0"));
	story_job("MODIFIED", "done", "u-done", "Completed");
	while (rig.streams)
		rig_stream_done(rig.streams);
	fake_pass(120000);
	expect_said("done: kxfs removed the job's output");
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

/* Jobs with the same name: removing a later job must not remove what an earlier one printed. */
static void test_same_name(void **state)
{
	story_begin();
	story_end("one", "u1", "p1");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	/* The second job prints nothing and is deleted. */
	story_job("ADDED", "one", "u2", "Pending");
	story_job("DELETED", "one", "u2", "Pending");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	/*
	 * The third job starts while the second one still exists. It is deleted before the pods of
	 * the second one are.
	 */
	story_run("one", "u3", "p3");
	fake_pass(5000);
	story_job("DELETED", "one", "u3", "Running");
	story_run("one", "u4", "p4");
	story_pod("DELETED", "p3", "u3", 0, "Running", RIG_RUNNING);
	while (rig.streams)
		rig_stream_done(rig.streams);
	story_pod("MODIFIED", "p4", "u4", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	story_pod("MODIFIED", "p4", "u4", 0, "Running", RIG_RUNNING);
	rig_expect(BACKEND_JOBS, "one", "RUNNING");
	assert_non_null(rig.streams);
	story_end("one", "u4", "p4");
	/* The newest job has the plain name. */
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	rig_expect(BACKEND_HISTORY, "one~u1", "CANCELLED");
	rig_expect(BACKEND_HISTORY, "one~u3", "CANCELLED");
	rig_stop();
	rig_start("", "");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	rig_expect(BACKEND_HISTORY, "one~u1", "CANCELLED");
	rig_expect(BACKEND_HISTORY, "one~u3", "CANCELLED");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_join, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_has_events, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_relist, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stale, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_cancel, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stop, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_too_many, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_history, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_earlier_output, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_spool_limit, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_spool_order, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_spool_without_record, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_not_settled_while_removed, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_same_name, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_end_stays, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_told_end_stays, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_end_without_output, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("kube", tests, NULL, NULL);
}
