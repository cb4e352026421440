/* SPDX-License-Identifier: MIT */
/* Jobs of a cluster, against a server that the test plays: what is shown, launched, ended and kept. */
#include "kube_rig.h"
#include "spool_print.h"

#define SEEDS 400

/* --- what is shown --- */

static void pod_event(const char *type, const char *uid, const char *owner, unsigned index,
		      const char *phase, const char *state)
{
	cleanup_free char *json = rig_pod(uid, owner, index, phase, state);

	rig_pod_event(type, json);
}

static void job_event(const char *type, const char *name, const char *uid, const char *phase)
{
	cleanup_free char *json = rig_job(name, uid, phase, 2);

	rig_job_event(type, json);
}

static void test_join(void **state)
{
	const struct spec_job *job;

	(void)state;
	rig_start("", "");
	/* Pods may come before their job. */
	pod_event("ADDED", "p0", "u0", 0, "Running", RIG_RUNNING);
	pod_event("ADDED", "p1", "u0", 1, "Pending", "{}");
	rig_expect(BACKEND_JOBS, "one", NULL);
	job_event("ADDED", "one", "u0", "Running");
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(job->replicas[0].state, SPEC_RUNNING);
	assert_int_equal(job->replicas[1].state, SPEC_PENDING);
	spec_job_unref(job);
	/* A pod that is gone is remembered as it was last. */
	pod_event("MODIFIED", "p0", "u0", 0, "Failed", RIG_EXIT("3"));
	pod_event("DELETED", "p0", "u0", 0, "Failed", RIG_EXIT("3"));
	pod_event("DELETED", "p1", "u0", 1, "Pending", "{}");
	job_event("MODIFIED", "one", "u0", "Failed");
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(job->state, SPEC_FAILED);
	assert_int_equal(job->replicas[0].exit_code, 3);
	spec_job_unref(job);
	/* Pods of nobody, and what can't be read, are left out. */
	rig_pod_event("ADDED", "{\"metadata\":{\"name\":\"x\",\"uid\":\"x\",\"resourceVersion\":"
			       "\"7\"}}");
	rig_pod_event("ADDED", "{\"metadata\":{\"name\":\"../x\",\"uid\":\"x\",\"resourceVersion\":"
			       "\"7\"}}");
	assert_null(rig.k->pods);
	job_event("DELETED", "one", "u0", "Failed");
	rig_expect(BACKEND_JOBS, "one", NULL);
	rig_expect(BACKEND_HISTORY, "one", NULL);
	assert_null(rig.k->jobs);
}

/* Many events of one turn are one change. */
static void test_once_a_turn(void **state)
{
	cleanup_free char *json = rig_job("one", "u0", "Running", 2);
	size_t before;

	(void)state;
	rig_start(json, "");
	before = rig.n_events;
	for (int i = 0; i < 10; i++) {
		cleanup_free char *pod = rig_pod("p0", "u0", 0, "Running", RIG_RUNNING);

		rig_event("pods?watch", i ? "MODIFIED" : "ADDED", pod);
	}
	fake_run();
	assert_int_equal(rig.n_events - before, 1);
}

/* A new list is compared with what is known. */
static void test_relist(void **state)
{
	cleanup_free char *one = rig_job("one", "u1", "Running", 1);
	cleanup_free char *two = rig_job("two", "u2", "Running", 1);
	cleanup_free char *pod = rig_pod("p1", "u1", 0, "Running", RIG_RUNNING);
	cleanup_free char *both = NULL;

	(void)state;
	assert_true(asprintf(&both, "%s,%s", one, two) > 0);
	rig_start(both, pod);
	rig_expect(BACKEND_JOBS, "one", "RUNNING");
	fake_pass(10000);
	rig_event("jobs?watch", "MODIFIED", two);
	fake_answer(fake_find("jobs?watch"), 410, "{}");
	fake_pass(1000);
	/* Until the new list is whole, all stays. */
	rig_expect(BACKEND_JOBS, "one", "RUNNING");
	rig_list("jobs?limit", two);
	rig_expect(BACKEND_JOBS, "one", NULL);
	rig_expect(BACKEND_JOBS, "two", "RUNNING");
	fake_answer(fake_find("pods?watch"), 410, "{}");
	fake_pass(1000);
	rig_list("pods?limit", "");
	assert_null(rig.k->pods);
	assert_int_equal(HASH_COUNT(rig.k->jobs), 1);
}

/* A job that lost the labels that are shown, and got them back. */
static void test_comes_back(void **state)
{
	(void)state;
	rig_start("", "");
	job_event("ADDED", "one", "u1", "Running");
	pod_event("ADDED", "p1", "u1", 0, "Running", RIG_RUNNING);
	job_event("DELETED", "one", "u1", "Running");
	rig_expect(BACKEND_JOBS, "one", NULL);
	job_event("ADDED", "one", "u1", "Running");
	rig_expect(BACKEND_JOBS, "one", "RUNNING");
}

/* What can't be confirmed is marked, with the reason of the watch that still fails. */
static void test_stale(void **state)
{
	cleanup_free char *info = NULL;
	size_t len;
	FILE *out;

	(void)state;
	rig_start("", "");
	job_event("ADDED", "one", "u1", "Running");
	fake_end(fake_find("jobs?watch"),
		 &(struct http_reply){.err = -EHOSTUNREACH, .text = "no jobs"});
	fake_end(fake_find("pods?watch"),
		 &(struct http_reply){.err = -EHOSTUNREACH, .text = "no pods"});
	fake_run();
	rig_cancel("one", "u1");
	assert_int_equal(rig.err, -EHOSTUNREACH); /* at once */
	assert_non_null(strstr(rig.text, "no jobs"));
	while (!fake_find("jobs?watch"))
		assert_true(fake_wait(1000));
	fake_find("jobs?watch")->call.head(fake_find("jobs?watch")->call.data, 200);
	fake_run();
	out = open_memstream(&info, &len);
	assert_int_equal(backend_info(rig.b, out), 0);
	fclose(out);
	assert_non_null(strstr(info, "connected: false"));
	assert_non_null(strstr(info, "no pods"));
}

/* --- launching --- */

static size_t launches(void)
{
	return rig.n_objects;
}

static void test_submit(void **state)
{
	const struct spec_job *job;

	(void)state;
	rig_start("", "");
	rig_submit(RIG_APP);
	assert_int_equal(rig.n_answers, 0);
	assert_non_null(strstr(rig_request()->path, "fieldValidation=Strict"));
	rig_serve();
	assert_int_equal(rig.n_answers, 1);
	assert_int_equal(rig.err, 0);
	rig_expect(BACKEND_JOBS, rig.id, "SUBMITTED"); /* before any watch told of it */
	job = backend_job(rig.b, BACKEND_JOBS, rig.id);
	assert_true(job->own);
	spec_job_unref(job);
	assert_true(rig_has_folder(rig.id));
	/* Refused: nothing is kept. */
	rig_submit(RIG_APP);
	rig_answer(422, RIG_STATUS("422", "Invalid", "no good"));
	assert_int_equal(rig.err, -EINVAL);
	assert_non_null(strstr(rig.text, "app.yaml: "));
	assert_int_equal(rig.text[strlen(rig.text) - 1], '\n');
	assert_int_equal(HASH_COUNT(rig.k->own), 1);
	/* A document that is none is not sent. */
	rig_submit("nonsense");
	assert_int_equal(rig.err, -EINVAL);
	assert_null(rig_request());
}

/* Our own job, whose reply was lost, uses up what the next try is refused for. */
static void test_refused_after_lost(void **state)
{
	static const struct {
		int status;
		const char *body;
	} refusals[] = {
		{403, RIG_STATUS("403", "Forbidden", "exceeded quota: q, requested: 1")},
		{400, RIG_STATUS("400", "BadRequest", "queue is closed")},
		{401, RIG_STATUS("401", "Unauthorized", "no")},
	};

	(void)state;
	rig_start("", "");
	for (size_t i = 0; i < array_size(refusals); i++) {
		for (int acted = 0; acted < 2; acted++) {
			size_t before = launches();

			rig_submit(RIG_APP);
			rig_lose(acted);
			rig_until_request();
			rig_answer(refusals[i].status, refusals[i].body);
			assert_int_equal(rig_request()->call.method, HTTP_GET);
			rig_serve();
			assert_int_equal(rig.n_answers, 1);
			assert_int_equal(rig.err == 0, acted);
			assert_int_equal(launches() - before, acted);
			if (acted)
				rig_expect(BACKEND_JOBS, rig.id, "SUBMITTED");
		}
	}
	/* Whoever may not read the holder can't know; then the folder stays. */
	rig_submit(RIG_APP);
	rig_lose(true);
	rig_until_request();
	rig_answer(403, refusals[0].body);
	rig_answer(403, RIG_STATUS("403", "Forbidden", "no get"));
	assert_int_equal(rig.err, -EDQUOT);
	assert_non_null(strstr(rig.text, "could not be found out"));
	assert_true(rig_has_folder(rig.objects[rig.n_objects - 1].name));
}

/* A 409 that is no "exists already" has launched nothing. */
static void test_conflict(void **state)
{
	(void)state;
	rig_start("", "");
	rig_submit(RIG_APP);
	rig_answer(409, RIG_STATUS("409", "Conflict", "quota was modified, try again"));
	if (rig.n_answers == 0)
		rig_serve();
	assert_int_equal(rig.err == 0, launches() == 1);
}

static void test_named(void **state)
{
	size_t before;

	(void)state;
	rig_start("", "");
	rig_submit(RIG_READY(""));
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_string_equal(rig.id, "mine");
	/* The name is ours already: another one, without asking. */
	rig_submit(RIG_READY(""));
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_string_not_equal(rig.id, "mine");
	/* Somebody else has it: another one, after asking. */
	rig.objects[0].there = false;
	job_event("DELETED", "mine", "u-0", "Running");
	assert_false(rig_has_folder("mine"));
	rig_create("{\"metadata\":{\"name\":\"mine\"}}");
	rig_submit(RIG_READY(""));
	rig_serve(); /* 409 */
	rig_serve(); /* GET */
	before = launches();
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_int_equal(launches() - before, 1);
	assert_string_not_equal(rig.id, "mine");
	assert_false(rig_has_folder("mine"));
	/* A reply was lost, and the name was taken and given back meanwhile: never launched twice. */
	rig.objects[2].there = false;
	rig_submit(RIG_READY(""));
	before = launches();
	rig_lose(true);
	rig_until_request();
	rig_answer(409, RIG_STATUS("409", "AlreadyExists", "x"));
	rig_answer(404, RIG_STATUS("404", "NotFound", "x"));
	assert_int_equal(rig.n_answers, 1);
	assert_true(rig.err < 0);
	assert_non_null(strstr(rig.text, "could not be found out"));
	assert_int_equal(launches() - before, 1);
}

/* --- any server --- */

static unsigned long seed;

static unsigned roll(unsigned n)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 33) % n;
}

/* One reply of a server and a network in any trouble. Returns false if it acted in order. */
static void reply_at_random(void)
{
	static const int errors[] = {500, 502, 504, 429, 503};
	struct http_request *rq = rig_request();
	const char *body;
	int status;

	switch (roll(8)) {
	case 0:
		fake_break(rq, -EHOSTUNREACH, false);
		break;
	case 1:
		fake_break(rq, -ETIMEDOUT, true);
		break;
	case 2:
		rig_act(rq, &body);
		fake_break(rq, -EIO, true);
		break;
	case 3:
		status = errors[roll(5)];
		/* 429 and 503: nothing was done. */
		if (status != 429 && status != 503 && roll(2))
			rig_act(rq, &body);
		fake_answer(rq, status, "{}");
		break;
	case 4:
		fake_answer(rq, 403,
			    RIG_STATUS("403", "Forbidden", "exceeded quota: q, requested: 1"));
		break;
	default:
		status = rig_act(rq, &body);
		fake_answer(rq, status, body);
	}
	fake_run();
}

static size_t launched_as(const char *submission, size_t from)
{
	size_t n = 0;

	for (size_t i = from; i < rig.n_objects; i++)
		n += strcmp(rig.objects[i].submission, submission) == 0;
	return n;
}

static void one_submission(unsigned long begin)
{
	size_t from = rig.n_objects, n;
	cleanup_free char *submission = NULL;

	seed = begin;
	rig_submit(roll(3) ? RIG_APP : RIG_READY(""));
	submission = rig_behind(rig_request()->body, "\"kxfs/submission\":\"");
	while (rig.n_answers == 0) {
		if (rig_request())
			reply_at_random();
		else
			assert_true(fake_wait(100000));
		if (rig.n_objects > from && roll(10) == 0)
			rig_job_event("ADDED", rig.objects[rig.n_objects - 1].json);
	}
	assert_int_equal(rig.n_answers, 1);
	n = launched_as(submission, from);
	if (n > 1)
		fail_msg("seed %lu: launched %zu times", begin, n);
	if (rig.err == 0 && n != 1)
		fail_msg("seed %lu: said to be launched, and is not", begin);
	if (rig.err != 0 && n == 1 && !strstr(rig.text, "could not be found out"))
		fail_msg("seed %lu: launched, but %s", begin, rig.text);
	if (rig.err == 0)
		assert_true(rig_has_folder(rig.id));
	/* The next may have the name. */
	for (size_t i = from; i < rig.n_objects; i++)
		rig.objects[i].there = roll(2);
}

static void test_exactly_once(void **state)
{
	size_t good = 0;

	(void)state;
	rig_start("", "");
	for (unsigned long i = 1; i <= SEEDS; i++) {
		one_submission(i);
		good += rig.err == 0;
	}
	assert_true(good > SEEDS / 3);
}

/* The watch may be faster than the reply. */
static void test_older_reply(void **state)
{
	struct rig_object *o;
	cleanup_free char *newer = NULL;

	(void)state;
	rig_start("", "");
	rig_submit(RIG_APP);
	o = rig_create(rig_request()->body);
	newer = rig_job(o->name, "u-0", "Running", 1);
	rig_job_event("ADDED", o->json);
	rig_job_event("MODIFIED", newer);
	rig_answer(201, o->json);
	assert_int_equal(rig.err, 0);
	rig_expect(BACKEND_JOBS, rig.id, "RUNNING");
	/* It may even be gone before. */
	rig_submit(RIG_APP);
	o = rig_create(rig_request()->body);
	rig_job_event("ADDED", o->json);
	cleanup_free char *last = rig_job(o->name, "u-1", "Running", 1);
	rig_job_event("DELETED", last);
	rig_answer(201, o->json);
	assert_int_equal(rig.err, 0);
	rig_expect(BACKEND_JOBS, rig.id, NULL);
}

static void expect_phase(const char *id, const char *phase)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, id);

	assert_non_null(job);
	assert_string_equal(job->phase, phase);
}

/* And slower: what a reply has brought is not taken back by it. */
static void test_newer_reply(void **state)
{
	cleanup_free char *first = rig_job("one", "u1", "Pending", 1);
	cleanup_free char *between = rig_job("one", "u1", "Running", 1);
	cleanup_free char *reply = rig_job("one", "u1", "Aborting", 1);
	cleanup_free char *last = rig_job("one", "u1", "Completed", 1);
	cleanup_free char *again = rig_job("one", "u1", "Running", 1);

	(void)state;
	rig_start(first, "");
	assert_non_null(kube_job_told(rig.k, reply, strlen(reply)));
	fake_run();
	expect_phase("one", "Aborting");
	rig_job_event("MODIFIED", between);
	expect_phase("one", "Aborting");
	rig_job_event("MODIFIED", last);
	expect_phase("one", "Completed");
	/* A server that was set back begins its versions anew: a list is how it is. */
	fake_pass(10000);
	fake_answer(fake_find("jobs?watch"), 410, "{}");
	fake_pass(1000);
	rig_list("jobs?limit", between);
	expect_phase("one", "Running");
	/* The end is the end, of whatever version. */
	assert_non_null(kube_job_told(rig.k, again, strlen(again)));
	rig_job_event("DELETED", first);
	rig_expect(BACKEND_JOBS, "one", NULL);
}

/* --- ending --- */

static void test_cancel(void **state)
{
	(void)state;
	rig_start("", "");
	for (int i = 0; i < 6; i++) {
		char name[16], uid[16];

		snprintf(name, sizeof(name), "job-%d", i);
		snprintf(uid, sizeof(uid), "u%d", i);
		job_event("ADDED", name, uid, "Running");
		rig_cancel(name, uid);
		assert_int_equal(rig_request()->call.method, HTTP_DELETE);
		assert_non_null(strstr(rig_request()->body, uid));
		assert_non_null(strstr(rig_request()->body, "Background"));
		switch (i) {
		case 0:
			rig_answer(200, "{}");
			break;
		case 1:
			rig_answer(404, RIG_STATUS("404", "NotFound", "gone"));
			break;
		case 2: /* done, but the reply was lost, and the name is another job's by now */
			rig_lose(false);
			rig_until_request();
			rig_answer(409, RIG_STATUS("409", "Conflict", "the UID does not match"));
			break;
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
		/* What the server still tells of it does not bring it back. */
		job_event("MODIFIED", name, uid, "Terminating");
		rig_expect(BACKEND_JOBS, name, NULL);
	}
}

/* --- output --- */

/* A captured job of somebody else, which prints. */
static void run_job(const char *name, const char *uid, const char *pod)
{
	job_event("ADDED", name, uid, "Running");
	pod_event("ADDED", pod, uid, 0, "Running", RIG_RUNNING);
}

static void end_job(const char *name, const char *uid, const char *pod)
{
	job_event("DELETED", name, uid, "Running");
	pod_event("DELETED", pod, uid, 0, "Running", RIG_RUNNING);
	while (rig.follows)
		rig_follow_done(rig.follows);
	fake_pass(5000);
}

static void test_history(void **state)
{
	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	assert_non_null(rig.follows);
	job_event("DELETED", "one", "u1", "Running");
	rig_expect(BACKEND_JOBS, "one", NULL);
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	/* Its last output still comes, and ends with the pod. */
	assert_non_null(rig.follows);
	assert_false(rig.follows->ended);
	pod_event("DELETED", "p1", "u1", 0, "Running", RIG_RUNNING);
	assert_true(rig.follows->ended);
	assert_int_equal(rig.follows->end, FOLLOW_GONE);
	rig_follow_done(rig.follows);
	assert_null(rig.k->jobs);
	fake_pass(5000);
	/* It is there after a remount, and can be removed for good. */
	rig_stop();
	rig_start("", "");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	backend_forget(rig.b, "one", "u1", rig_reply, NULL);
	fake_run();
	assert_int_equal(rig.err, 0);
	rig_expect(BACKEND_HISTORY, "one", NULL);
	assert_false(rig_has_folder("one"));
}

/* Output that an earlier mount captured is history too, though nothing of it is followed now. */
static void test_earlier_output(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Completed", 2);

	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	fake_pass(5000);
	rig_stop();
	rig.capture = BACKEND_CAPTURE_NONE;
	rig_start(json, "");
	rig_expect(BACKEND_JOBS, "one", "SUCCEEDED");
	job_event("DELETED", "one", "u1", "Completed");
	rig_expect(BACKEND_HISTORY, "one", "SUCCEEDED");
	assert_true(rig_has_folder("one"));
}

/* The manifest of a dry run is written down on the pool, also when the mount ends meanwhile. */
static void test_dry_run(void **state)
{
	const struct backend_submission s = {"app.yaml", RIG_APP, strlen(RIG_APP), "ada@login1"};

	(void)state;
	rig_start("", "");
	for (int ends = 0; ends < 2; ends++) {
		rig.n_answers = 0;
		backend_dry_run(rig.b, &s, rig_reply, NULL);
		fake_run();
		assert_non_null(strstr(rig_request()->path, "dryRun=All"));
		fake_answer(rig_request(), 201, "{}");
		assert_int_equal(rig.n_answers, 0);
		assert_non_null(fake.pool);
		if (ends)
			rig_stop();
		else
			fake_run();
		assert_int_equal(rig.n_answers, 1);
		assert_int_equal(rig.err, 0);
	}
	rig_start("", "");
}

static bool has_file(const char *id, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/jobs/%s/%s", rig.dir, id, name);
	return access(path, F_OK) == 0;
}

static void expect_own(const char *id)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, id);

	assert_non_null(job);
	assert_true(job->own);
}

/* The output of a finished job gives way to the spool's limit; the job stays its submitter's. */
static void test_spool_limit(void **state)
{
	cleanup_free char *pod = rig_pod("p1", "u-0", 0, "Succeeded", RIG_EXIT("0"));
	cleanup_free char *json = NULL;
	cleanup_free char *id = NULL;

	(void)state;
	rig.capture = BACKEND_CAPTURE_OWN;
	rig.spool_limit = 10;
	rig_start("", "");
	rig_submit(RIG_APP);
	rig_serve();
	assert_int_equal(rig.err, 0);
	id = strdup(rig.id);
	run_job(id, "u-0", "p1");
	assert_non_null(rig.follows);
	spool_print(spool_job_open(rig.b->spool, id), "p1.a.0", "more than ten bytes\n");
	rig_pod_event("MODIFIED", pod);
	rig_follow_done(rig.follows);
	json = rig_job(id, "u-0", "Completed", 1);
	rig_job_event("MODIFIED", json);
	fake_pass(120000);
	assert_false(has_file(id, "logs"));
	assert_false(has_file(id, "job.json"));
	assert_true(has_file(id, "app.yaml"));
	expect_own(id);
	rig_stop();
	rig_start(json, pod);
	expect_own(id);
	assert_null(rig.follows); /* else it would be fetched and dropped again at each start */
	rig_job_event("DELETED", json);
	rig_expect(BACKEND_JOBS, id, NULL);
	rig_expect(BACKEND_HISTORY, id, NULL);
	fake_pass(5000);
	assert_false(rig_has_folder(id));
}

static void expect_said(const char *part)
{
	size_t len;
	cleanup_free char *said = diag_text(&len);

	if (!strstr(said, part))
		fail_msg("\"%s\" was not said", part);
}

/* The job NAME, with uid and pod of its own, has run and ended so: PHASE, or (NULL) it was deleted. */
static void kept_job(const char *name, const char *phase)
{
	char uid[32], pod[32];

	snprintf(uid, sizeof(uid), "u-%s", name);
	snprintf(pod, sizeof(pod), "p-%s", name);
	run_job(name, uid, pod);
	if (phase) {
		pod_event("MODIFIED", pod, uid, 0, "Succeeded", RIG_EXIT("0"));
		job_event("MODIFIED", name, uid, phase);
		while (rig.follows)
			rig_follow_done(rig.follows);
	} else {
		end_job(name, uid, pod);
	}
	fake_pass(5000);
	assert_true(has_file(name, "logs"));
	assert_true(has_file(name, "job.json"));
}

/* Jobs as they were, and their pods, as lists. malloc'ed. */
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

/* Room is made by the oldest of the history, then by finished jobs; never by one that runs, or may again. */
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

	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	for (size_t i = 0; i < 3; i++)
		kept_job(names[i], phases[i]);
	kept_job("gone-1", NULL);
	kept_job("gone-2", NULL);
	run_job("live", "u-live", "p-live");
	fake_pass(5000);
	rig_stop();
	rig.spool_limit = 10;
	rig_start(jobs, pods);
	fake_pass(120000);
	said = diag_text(&len);
	at = said;
	for (size_t i = 0; i < array_size(order); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s: removed with its output", order[i]);
		at = at ? strstr(at, text) : NULL;
		if (!at)
			fail_msg("%s did not go in its turn:\n%s", order[i], said);
		assert_false(has_file(order[i], "logs"));
	}
	rig_expect(BACKEND_HISTORY, "gone-1", NULL);
	rig_expect(BACKEND_HISTORY, "gone-2", NULL);
	rig_expect(BACKEND_JOBS, "done-1", "SUCCEEDED");
	assert_true(has_file("aborted", "logs/p-aborted.a.0"));
	assert_true(has_file("live", "logs/p-live.a.0"));
	/* That is said, once. */
	expect_said("more than its limit of 10, and all of it is of jobs that may still print");
	free(take_ptr(said));
	said = diag_text(&len);
	at = strstr(said, "may still print");
	assert_null(at ? strstr(at + 1, "may still print") : "not said");
}

/* What has been in the history for its time goes. */
static void test_history_keep(void **state)
{
	cleanup_free char *json = rig_job("done", "u-done", "Completed", 2);
	cleanup_free char *pod = rig_pod("p-done", "u-done", 0, "Succeeded", RIG_EXIT("0"));

	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig.history_keep = 3600;
	rig_start("", "");
	kept_job("done", "Completed");
	kept_job("gone-1", NULL);
	fake_pass(1800000);
	kept_job("gone-2", NULL);
	fake_pass(1700000);
	rig_expect(BACKEND_HISTORY, "gone-1", "CANCELLED");
	/* Its age is not forgotten by a restart. */
	rig_stop();
	rig_start(json, pod);
	fake_pass(200000);
	rig_expect(BACKEND_HISTORY, "gone-1", NULL);
	assert_false(rig_has_folder("gone-1"));
	rig_expect(BACKEND_HISTORY, "gone-2", "CANCELLED");
	fake_pass(1800000);
	rig_expect(BACKEND_HISTORY, "gone-2", NULL);
	assert_false(rig_has_folder("gone-2"));
	/* Not what is in the cluster. */
	rig_expect(BACKEND_JOBS, "done", "SUCCEEDED");
	assert_true(has_file("done", "logs/p-done.a.0"));
}

/* Names come again: what one job printed is not the next one's to remove. */
static void test_same_name(void **state)
{
	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	end_job("one", "u1", "p1");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	/* The second prints nothing, and goes. */
	job_event("ADDED", "one", "u2", "Pending");
	job_event("DELETED", "one", "u2", "Pending");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	assert_true(rig_has_folder("one"));
	/* The third begins while the second is still there, and goes before the second's pods do. */
	run_job("one", "u3", "p3");
	fake_pass(5000);
	job_event("DELETED", "one", "u3", "Running");
	run_job("one", "u4", "p4");
	pod_event("DELETED", "p3", "u3", 0, "Running", RIG_RUNNING);
	while (rig.follows)
		rig_follow_done(rig.follows);
	pod_event("MODIFIED", "p4", "u4", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	pod_event("MODIFIED", "p4", "u4", 0, "Running", RIG_RUNNING);
	rig_expect(BACKEND_JOBS, "one", "RUNNING");
	assert_non_null(rig.follows);
	assert_true(rig_has_folder("one"));
	end_job("one", "u4", "p4");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
}

/* Output is removed to make room, and meanwhile a new job of that name begins: what that prints stays. */
static void test_dropped_and_displaced(void **state)
{
	cleanup_free char *job = rig_job("one", "u2", "Running", 2);
	cleanup_free char *pod = rig_pod("p2", "u2", 0, "Running", RIG_RUNNING);

	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	end_job("one", "u1", "p1");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	kube_output_drop(rig.k, "one", NULL, NULL);
	rig_event("jobs?watch", "ADDED", job);
	rig_event("pods?watch", "ADDED", pod);
	/* The pool is slow. */
	do {
		while (fake_step(&fake.posted))
			;
	} while (fake_step(&fake.pool));
	assert_non_null(rig_follow("p2.a.0"));
	assert_true(has_file("one", "logs/p2.a.0"));
	assert_false(has_file("one", "dropped"));
	fake_pass(5000);
	assert_true(has_file("one", "job.json"));
}

/* Replace NAME in the folder ID by TEXT; NULL: remove it. */
static void set_file(const char *id, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/jobs/%s/%s", rig.dir, id, name);
	if (!text) {
		assert_int_equal(unlink(path), 0);
		return;
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void expect_text(const char *path, const char *expected)
{
	cleanup_free char *full = NULL, *text = NULL;
	size_t len;

	assert_true(asprintf(&full, "%s/%s", rig.dir, path) > 0);
	assert_int_equal(file_read(full, 1 << 20, &text, &len), 0);
	assert_string_equal(text, expected);
}

/* Output of which nobody can tell the job is kept, and not mixed with that of the next one of its name. */
static void test_unread(void **state)
{
	static const struct {
		const char *record, *place, *said;
	} table[] = {
		{"{\"id\": [", "unread/one", "jobs/one/job.json is damaged"},
		{"{\"version\":1}", "unread/one.1",
		 "jobs/one/job.json was written by another version of kxfs"},
		{NULL, "unread/one.2", "unread/one.2"},
	};
	char old[2] = "a", uid[3] = "u1", pod[64];

	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	end_job("one", "u1", "p1");
	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *job = NULL, *json = NULL;

		rig_stop();
		set_file("one", "job.json", table[i].record);
		set_file("one", "logs/p1.a.0", old);
		/* As long as there is no such job, it stays where it is. */
		rig_start("", "");
		rig_stop();
		assert_true(has_file("one", "logs/p1.a.0"));
		uid[1]++;
		job = rig_job("one", uid, "Running", 2);
		json = rig_pod("p1", uid, 0, "Running", RIG_RUNNING);
		rig_start(job, json);
		fake_pass(5000);
		expect_said(table[i].said);
		snprintf(pod, sizeof(pod), "%s/logs/p1.a.0", table[i].place);
		expect_text(pod, old);
		assert_non_null(rig_follow("p1.a.0"));
		expect_text("jobs/one/logs/p1.a.0", "");
		assert_true(has_file("one", "job.json"));
		old[0]++;
	}
}

/* Of a job that was submitted from here it is known whose it is. */
static void test_unread_own(void **state)
{
	cleanup_free char *pod = rig_pod("p1", "u-0", 0, "Running", RIG_RUNNING);
	cleanup_free char *json = NULL;
	cleanup_free char *id = NULL;
	char path[512];

	(void)state;
	rig.capture = BACKEND_CAPTURE_OWN;
	rig_start("", "");
	rig_submit(RIG_APP);
	rig_serve();
	assert_int_equal(rig.err, 0);
	id = strdup(rig.id);
	json = rig_job(id, "u-0", "Running", 1);
	rig_job_event("ADDED", json);
	rig_pod_event("ADDED", pod);
	fake_pass(5000);
	assert_true(has_file(id, "job.json"));
	for (unsigned i = 0; i < 2; i++) {
		rig_stop();
		set_file(id, "job.json", i ? "newer" : "new");
		set_file(id, "logs/p1.a.0", "a");
		rig_start("", "");
		rig_stop();
		snprintf(path, sizeof(path), "jobs/%s/job.json", id);
		expect_text(path, i ? "newer" : "new");
		rig_start(json, pod);
		fake_pass(5000);
		expect_own(id);
		snprintf(path, sizeof(path), "jobs/%s/job.json.unread%s", id, i ? ".1" : "");
		expect_text(path, i ? "newer" : "new");
		assert_true(has_file(id, "logs/p1.a.0"));
		assert_true(has_file(id, "job.json"));
	}
}

/* A name that is tried for a submission may be that of a job that begins to print just then. */
static void test_name_in_flight(void **state)
{
	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	rig_create("{\"metadata\":{\"name\":\"mine\"}}");
	rig_submit(RIG_READY(""));
	run_job("mine", "u-0", "p1");
	rig_serve();
	rig_serve();
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_string_not_equal(rig.id, "mine");
	pod_event("MODIFIED", "p1", "u-0", 0, "Running", RIG_RUNNING);
	assert_non_null(rig.follows);
}

/* Only so many first fetches at once; the next begins when one is there. */
static void test_first_fetches(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 12);
	const struct spec_job *job;
	struct log *log;
	struct follow *f;
	size_t n;

	(void)state;
	rig.capture = BACKEND_CAPTURE_NONE;
	rig_start(json, "");
	for (unsigned i = 0; i < 12; i++) {
		char uid[16];

		snprintf(uid, sizeof(uid), "p%u", i);
		pod_event("ADDED", uid, "u1", i, "Running", RIG_RUNNING);
	}
	assert_null(rig.follows);
	job = backend_job(rig.b, BACKEND_JOBS, "one");
	assert_int_equal(backend_log(rig.b, job, NULL, &log), 0);
	fake_run();
	DL_COUNT(rig.follows, f, n);
	assert_int_equal(n, 8);
	/* They go on following, but the reader has what it waits for. */
	rig.follows->config.settled(rig.follows->config.data);
	DL_COUNT(rig.follows, f, n);
	assert_int_equal(n, 9);
	log_unref(log);
	spec_job_unref(job);
}

/* --- many streams, and what is lost --- */

static size_t n_follows(void)
{
	struct follow *f;
	size_t n;

	DL_COUNT(rig.follows, f, n);
	return n;
}

/* How many of the logs of "one" wait for their turn, as its status says. */
static size_t n_waiting(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	size_t n = 0;

	for (size_t i = 0; i < job->n_replicas; i++)
		for (size_t j = 0; j < job->replicas[i].n_logs; j++)
			n += job->replicas[i].logs[j].waiting;
	return n;
}

/* The gaps of the first replica of "one", as its status says. */
static uint64_t n_gaps(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	uint64_t n = 0;

	if (!job)
		job = backend_job(rig.b, BACKEND_HISTORY, "one");
	assert_non_null(job);
	for (size_t j = 0; j < job->replicas[0].n_logs; j++)
		n += job->replicas[0].logs[j].gap;
	return n;
}

static void test_turns(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 1010);

	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start(json, "");
	for (unsigned i = 0; i < 1010; i++) {
		char uid[16];

		snprintf(uid, sizeof(uid), "p%u", i);
		pod_event("ADDED", uid, "u1", i, "Running", RIG_RUNNING);
	}
	assert_int_equal(n_follows(), 1000);
	assert_int_equal(n_waiting(), 10);
	assert_null(rig_follow("p1005.a.0"));
	/* One that has ended need not wait for those that run on. */
	pod_event("MODIFIED", "p1005", "u1", 1005, "Succeeded", RIG_EXIT("0"));
	assert_non_null(rig_follow("p1005.a.0"));
	assert_true(rig_follow("p1005.a.0")->ended);
	assert_int_equal(n_follows(), 1001);
	assert_int_equal(n_waiting(), 9);
	/* The others take the places that become free, in their order. */
	rig_follow_done(rig_follow("p1005.a.0"));
	assert_int_equal(n_follows(), 1000);
	rig_follow_done(rig_follow("p3.a.0"));
	rig_follow_done(rig_follow("p4.a.0"));
	assert_non_null(rig_follow("p1000.a.0"));
	assert_non_null(rig_follow("p1001.a.0"));
	assert_int_equal(n_follows(), 1000);
	assert_int_equal(n_waiting(), 7);
}

/* A pod that runs, with FROM in its JSON replaced by TO. */
static void odd_pod_event(const char *type, const char *uid, const char *from, const char *to)
{
	cleanup_free char *json = rig_pod(uid, "u1", 0, "Running", RIG_RUNNING), *odd = NULL;
	char text[2048];
	const char *at;

	assert_true(strlen(json) < sizeof(text));
	memcpy(text, json, strlen(json) + 1);
	at = strstr(text, from);
	assert_non_null(at);
	assert_true(asprintf(&odd, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	rig_pod_event(type, odd);
}

/* A pod on its way out. */
static void test_terminating(void **state)
{
	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	assert_false(rig.follows->hurry);
	odd_pod_event("MODIFIED", "p1", "\"annotations\"",
		      "\"deletionTimestamp\":\"2026-11-21T09:08:50Z\",\"annotations\"");
	assert_true(rig.follows->hurry);
	assert_false(rig.follows->ended);
}

/* What could not be fetched to its end, and runs of which nothing was seen, are gaps, also after a restart. */
static void test_gaps(void **state)
{
	cleanup_free char *json = rig_job("one", "u1", "Running", 1);

	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	assert_int_equal(n_gaps(), 0);
	pod_event("DELETED", "p1", "u1", 0, "Running", RIG_RUNNING);
	rig_follow_over(rig.follows, -ENOENT);
	assert_int_equal(n_gaps(), 1);
	/* One that had nothing to say is none; one that ended well is none. */
	pod_event("ADDED", "p2", "u1", 0, "Running", RIG_RUNNING);
	rig_follow_over(rig.follows, -ENODATA);
	pod_event("ADDED", "p3", "u1", 0, "Running", RIG_RUNNING);
	rig_follow_done(rig.follows);
	assert_int_equal(n_gaps(), 1);
	/* The fourth is gone when the next mount begins. */
	pod_event("ADDED", "p4", "u1", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	rig_stop();
	rig_start(json, "");
	assert_int_equal(n_gaps(), 2);
	/* The fifth has run again and again before anybody saw it. */
	odd_pod_event("ADDED", "p5", "\"restartCount\":0", "\"restartCount\":4");
	/* Of runs 0 to 4 the last two can be had. */
	assert_int_equal(n_follows(), 2);
	assert_int_equal(n_gaps(), 5);
	while (rig.follows)
		rig_follow_done(rig.follows);
	assert_int_equal(n_gaps(), 5);
	/* The job is gone when the next mount begins. */
	pod_event("ADDED", "p6", "u1", 0, "Running", RIG_RUNNING);
	fake_pass(5000);
	rig_stop();
	rig_start("", "");
	rig_expect(BACKEND_HISTORY, "one", "CANCELLED");
	assert_int_equal(n_gaps(), 6);
}

/* A container has been run again twice since the last news: what it printed first can't be asked for any more. */
static void test_run_again_twice(void **state)
{
	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	odd_pod_event("MODIFIED", "p1", "\"restartCount\":0", "\"restartCount\":2");
	assert_int_equal(rig_follow("p1.a.0")->end, FOLLOW_GONE);
	assert_int_equal(rig_follow("p1.a.1")->end, FOLLOW_PREVIOUS);
	assert_false(rig_follow("p1.a.2")->ended);
}

/* --- what is refused --- */

/* The only log of "one", whose pod has ended, is refused. */
static void refuse_log(void)
{
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	pod_event("MODIFIED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	job_event("MODIFIED", "one", "u1", "Completed");
	assert_true(rig.follows->ended);
	assert_false(rig.follows->config.again);
	rig_follow_over(rig.follows, -EAGAIN);
}

/* Nobody follows it, but it is not given up, and that is said. */
static void assert_rests(void)
{
	assert_null(rig.follows);
	assert_int_equal(rig.k->n_following, 0);
	assert_int_equal(n_waiting(), 1);
	assert_int_equal(n_gaps(), 0);
}

static void assert_tried(void)
{
	assert_non_null(rig.follows);
	assert_true(rig.follows->config.again);
	assert_true(rig.follows->ended);
	assert_int_equal(n_waiting(), 1);
}

static bool is_merged_over(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	struct log *log cleanup_log = NULL;
	struct log_stat st = {0};

	assert_int_equal(backend_log(rig.b, job, NULL, &log), 0);
	assert_int_equal(log_stat(log, &st), 0);
	return st.ended;
}

/* It is asked for again, after pauses that grow up to a bound, until it can be had; readers do not wait for that. */
static void test_refused_rests(void **state)
{
	uint64_t pause = 0, begun;

	(void)state;
	refuse_log();
	for (int i = 0; i < 20; i++) {
		assert_rests();
		begun = fake.now;
		while (!rig.follows)
			assert_true(fake_wait(60000));
		pause = fake.now - begun;
		if (i == 0)
			assert_in_range(pause, 1, 5000);
		assert_tried();
		rig_follow_over(rig.follows, -EAGAIN);
	}
	assert_in_range(pause, 30000, 60000);
	assert_true(is_merged_over());
	while (!rig.follows)
		assert_true(fake_wait(60000));
	rig_follow_done(rig.follows);
	fake_pass(200000);
	assert_null(rig.follows);
	assert_int_equal(n_waiting(), 0);
	assert_int_equal(n_gaps(), 0);
	assert_int_equal(rig.k->n_resting, 0);
	assert_int_equal(rig.k->n_again, 0);
}

/* Its pod is gone: that is a gap, and the job is forgotten as any other. */
static void test_refused_and_gone(void **state)
{
	(void)state;
	refuse_log();
	pod_event("DELETED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	fake_pass(10);
	assert_int_equal(n_waiting(), 0);
	assert_int_equal(n_gaps(), 1);
	fake_pass(200000);
	assert_null(rig.follows);
	job_event("DELETED", "one", "u1", "Completed");
	assert_null(rig.k->jobs);
	assert_int_equal(n_gaps(), 1);
}

/* The pod goes while it is being asked for. */
static void test_refused_while_going(void **state)
{
	(void)state;
	refuse_log();
	fake_pass(5000);
	assert_tried();
	job_event("DELETED", "one", "u1", "Completed");
	pod_event("DELETED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	rig_follow_over(rig.follows, -EAGAIN);
	assert_null(rig.k->jobs);
	assert_int_equal(n_gaps(), 1);
}

/* Only the run before the present one can be had. */
static void test_refused_and_run_again(void **state)
{
	(void)state;
	refuse_log();
	odd_pod_event("MODIFIED", "p1", "\"restartCount\":0", "\"restartCount\":1");
	assert_non_null(rig_follow("p1.a.0"));
	assert_int_equal(rig_follow("p1.a.0")->end, FOLLOW_PREVIOUS);
	rig_follow_over(rig_follow("p1.a.0"), -EAGAIN);
	odd_pod_event("MODIFIED", "p1", "\"restartCount\":0", "\"restartCount\":2");
	fake_pass(10);
	assert_null(rig_follow("p1.a.0"));
	assert_int_equal(n_gaps(), 1);
	while (rig.follows)
		rig_follow_done(rig.follows);
	assert_int_equal(n_gaps(), 1);
}

/* What makes it worth a try at once: its pod is on its way out, the server is back, somebody opens it. */
static void test_refused_no_longer(void **state)
{
	struct log *log;

	(void)state;
	refuse_log();
	while (rig.k->n_resting && fake.now < 300000) {
		fake_pass(60000);
		rig_follow_over(rig.follows, -EAGAIN);
	}
	fake_end(fake_find("jobs?watch"), &(struct http_reply){.err = -EIO, .text = "it broke"});
	fake_run();
	assert_rests();
	while (!fake_find("jobs?watch"))
		assert_true(fake_wait(20000));
	assert_rests();
	fake_find("jobs?watch")->call.head(fake_find("jobs?watch")->call.data, 200);
	fake_run();
	assert_tried();
	rig_follow_over(rig.follows, -EAGAIN);
	assert_rests();
	{
		const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");

		assert_int_equal(backend_log(rig.b, job, "p1.a.0", &log), 0);
	}
	fake_run();
	assert_tried();
	assert_false(log_settled(log));
	rig_follow_over(rig.follows, -EAGAIN);
	assert_true(log_settled(log));
	log_unref(log);
	assert_rests();
	odd_pod_event("MODIFIED", "p1", "\"annotations\"",
		      "\"deletionTimestamp\":\"2026-11-21T09:08:50Z\",\"annotations\"");
	assert_true(rig.follows->hurry);
	assert_false(rig.follows->config.again); /* it is tried as often as at first */
	rig_follow_done(rig.follows);
	assert_int_equal(n_waiting(), 0);
	assert_int_equal(n_gaps(), 0);
}

/* While the server is away, all wait for it: so do readers of what could not be fetched yet. */
static void test_refused_while_away(void **state)
{
	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	pod_event("MODIFIED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	job_event("MODIFIED", "one", "u1", "Completed");
	fake_end(fake_find("jobs?watch"), &(struct http_reply){.err = -EIO, .text = "it broke"});
	for (int i = 0; i < 5; i++) {
		rig_follow_over(rig.follows, -EAGAIN);
		assert_rests();
		assert_false(is_merged_over());
		fake_pass(10);
		while (!rig.follows)
			assert_true(fake_wait(60000));
		assert_false(rig.follows->config.again);
		assert_true(rig.follows->config.said);
	}
	rig_follow_over(rig.follows, -EAGAIN);
	while (!fake_find("jobs?watch"))
		assert_true(fake_wait(20000));
	while (rig.follows)
		rig_follow_over(rig.follows, -EAGAIN);
	fake_find("jobs?watch")->call.head(fake_find("jobs?watch")->call.data, 200);
	fake_run();
	assert_non_null(rig.follows);
	rig_follow_done(rig.follows);
	assert_true(is_merged_over());
	assert_int_equal(rig.k->n_resting, 0);
}

/* The server is away, and when it is back the pod is gone. */
static void test_gone_while_away(void **state)
{
	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	run_job("one", "u1", "p1");
	pod_event("MODIFIED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	job_event("MODIFIED", "one", "u1", "Completed");
	fake_end(fake_find("jobs?watch"), &(struct http_reply){.err = -EIO, .text = "it broke"});
	rig_follow_over(rig.follows, -EAGAIN);
	pod_event("DELETED", "p1", "u1", 0, "Succeeded", RIG_EXIT("0"));
	fake_pass(10);
	assert_null(rig.follows);
	assert_int_equal(n_gaps(), 1);
	assert_true(is_merged_over());
}

/* Those that are refused take no place of others, and are asked for a few at once, and not too often. */
static void test_refused_many(void **state)
{
	size_t tried = 0;
	char job[16], uid[16];

	(void)state;
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	for (unsigned i = 0; i < 1000; i++) {
		cleanup_free char *json = NULL;

		snprintf(job, sizeof(job), "j%u", i / 10);
		snprintf(uid, sizeof(uid), "p%u", i);
		json = i % 10 ? NULL : rig_job(job, job, "Running", 10);
		if (json)
			rig_job_event("ADDED", json);
		pod_event("ADDED", uid, job, i % 10, "Failed", RIG_EXIT("1"));
		rig_follow_over(rig.follows, -EAGAIN);
	}
	run_job("one", "u1", "r1");
	assert_int_equal(n_follows(), 1);
	/* None is answered, then all. */
	fake_pass(200000);
	assert_int_equal(n_follows(), 1 + 8);
	for (uint64_t until = fake.now + 100000; fake.now < until; fake_wait(60000)) {
		while (n_follows() > 1) {
			rig_follow_over(rig.follows->next, -EAGAIN);
			tried++;
		}
	}
	assert_in_range(tried, 1000 + 500, 1000 + 1500);
}

/* --- the end --- */

static void test_stop(void **state)
{
	(void)state;
	for (int moment = 0; moment < 9; moment++) {
		rig.capture = BACKEND_CAPTURE_ALL;
		if (moment == 0)
			rig_new();
		else
			rig_start("", "");
		rig.n_answers = 0;
		rig.err = 0;
		if (moment == 2)
			run_job("one", "u1", "p1");
		if (moment == 3) {
			const struct backend_submission s = {"a.yaml", RIG_APP, strlen(RIG_APP),
							     "a"};

			/* While it is on the pool. */
			backend_submit(rig.b, &s, rig_reply, NULL);
			fake_step(&fake.posted);
		}
		if (moment >= 4)
			rig_submit(RIG_APP);
		if (moment == 5)
			rig_lose(true);
		if (moment == 6)
			rig_answer(409, RIG_STATUS("409", "AlreadyExists", "x"));
		if (moment == 7) {
			fake_break(rig_request(), -EHOSTUNREACH,
				   false); /* its folder is being removed */
			assert_int_equal(rig.n_answers, 0);
		}
		if (moment == 8) {
			job_event("ADDED", "one", "u1", "Running");
			rig_cancel("one", "u1");
			rig.n_answers = 1; /* of the submission and of the cancel */
		}
		rig_stop();
		if (moment >= 3)
			assert_true(rig.n_answers >= 1 && rig.err < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_join, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_once_a_turn, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_relist, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_comes_back, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stale, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_submit, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_after_lost, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_conflict, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_named, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_exactly_once, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_newer_reply, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_older_reply, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_cancel, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_history, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_earlier_output, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_spool_limit, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_spool_order, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_history_keep, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_dry_run, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_same_name, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_dropped_and_displaced, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_name_in_flight, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unread, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unread_own, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_first_fetches, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_turns, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_terminating, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_gaps, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_run_again_twice, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_rests, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_and_gone, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_while_going, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_and_run_again, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_no_longer, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_while_away, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_away, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_many, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_stop, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("kube", tests, NULL, NULL);
}
