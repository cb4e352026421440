/* SPDX-License-Identifier: MIT */
/* Submissions to a cluster, against a server that the test plays: each is launched once. */
#include <dirent.h>
#include <sys/syscall.h>

#include "tests/unit/backend/kube/kube_story.h"

#define SEEDS 400

static size_t launches(void)
{
	return rig.n_objects;
}

static unsigned n_syncs;

/* Instead of libc's. */
int fsync(int fd)
{
	n_syncs++;
	return (int)syscall(SYS_fsync, fd);
}

/* Files below STATE/submissions. */
static size_t under_way(void)
{
	cleanup_free char *path = NULL;
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	assert_true(asprintf(&path, "%s/submissions", rig.dir) > 0);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* Whoever submits waits for two syncs of the disk, and no more; all else is synced afterwards. */
static void test_syncs(void **state)
{
	rig_start("", "");
	n_syncs = 0;
	rig_submit(RIG_APP);
	assert_non_null(rig_request());
	assert_int_equal(n_syncs, 2);
	assert_int_equal(under_way(), 1);
	rig_serve();
	assert_int_equal(rig.err, 0);
	/* Who was answered first does not wait for the syncs of his folder, and its submission is kept until then. */
	assert_int_equal(n_syncs, 2);
	assert_int_equal(under_way(), 1);
	while (under_way() > 0)
		assert_true(fake_wait(30000));
	assert_int_equal(under_way(), 0);
	assert_in_range(n_syncs, 3, 10);
	rig_submit(RIG_APP);
	rig_answer(422, RIG_STATUS("422", "Invalid", "no good"));
	assert_int_equal(rig.err, -EINVAL);
	assert_int_equal(under_way(), 0);
}

static void cut_file(const char *id, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/jobs/%s/%s", rig.dir, id, name);
	assert_int_equal(truncate(path, 0), 0);
}

static void expect_ours(const char *id)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, id);
	cleanup_free char *text = NULL;
	size_t len;

	assert_non_null(job);
	assert_true(job->own);
	assert_int_equal(backend_text(rig.b, job, BACKEND_APPDEF, &text, &len), 0);
	assert_string_equal(text, RIG_APP);
}

/* A power cut right after the POST loses what was not synced; the next start knows that the job is ours. */
static void test_power_cut(void **state)
{
	for (int how = 0; how < 3; how++) {
		const char *id;

		rig_start("", "");
		rig_submit(RIG_APP);
		rig_lose(true);
		id = rig.objects[rig.n_objects - 1].name;
		rig_stop();
		assert_int_equal(rig.err, -EINPROGRESS);
		assert_int_equal(under_way(), 1);
		if (how == 1)
			cut_file(id, "submission");
		if (how == 1)
			cut_file(id, "app.yaml");
		if (how == 2) {
			char path[512];

			snprintf(path, sizeof(path), "%s/jobs/%s", rig.dir, id);
			scratch_remove(path);
			assert_false(rig_has_folder(id));
		}
		rig.launched[0] = '\0';
		rig_start(rig.objects[rig.n_objects - 1].json, "");
		assert_int_equal(under_way(), 0);
		assert_string_equal(rig.launched, id);
		expect_ours(id);
		rig_stop();
	}
	/* What was never sent is nobody's. */
	rig_start("", "");
	assert_int_equal(rig_folders(), 0);
}

/* What was with the server when the mount was killed may still take effect: the job is ours whenever it comes. */
static void test_in_flight_over_kill(void **state)
{
	cleanup_free char *id = NULL, *body = NULL;
	size_t n;

	rig_start("", "");
	for (int how = 0; how < 4; how++) {
		cleanup_free char *uid = NULL;
		size_t before = rig_folders();

		rig_submit(RIG_APP);
		free(body);
		body = text_copy(rig_request()->body);
		/* The connection ends, and the request does not. */
		rig_stop();
		assert_int_equal(rig.err, -EINPROGRESS);
		rig.launched[0] = '\0';
		rig_start("", "");
		assert_int_equal(rig_folders(), before + 1);
		assert_string_equal(rig.launched, "?");
		if (how == 1)
			fake_pass(500000);
		if (how == 2) { /* another start in between */
			rig_stop();
			rig_start("", "");
		}
		assert_int_equal(rig_folders(), before + 1);
		if (how == 3)
			break;
		rig_job_event("ADDED", rig_create(body)->json);
		free(id);
		id = text_copy(rig.objects[rig.n_objects - 1].name);
		assert_string_equal(rig.launched, id);
		expect_ours(id);
		fake_pass(1200000);
		expect_ours(id);
		assert_int_equal(rig_folders(), before + 1);
		uid = rig_behind(rig.objects[rig.n_objects - 1].json, "\"uid\":\"");
		story_job("DELETED", id, uid, "Pending");
		assert_int_equal(rig_folders(), before);
	}
	/* After that time it has not been launched; but only a cluster that can be seen says so. */
	n = rig_folders();
	fake_end(fake_find("jobs?watch"), &(struct http_reply){.err = -EIO, .text = "it broke"});
	fake_run();
	fake_pass(700000);
	assert_int_equal(rig_folders(), n);
	/* All watches are asked for again after so long a silence. */
	for (int i = 0; i < 100 && rig_folders() == n; i++) {
		struct http_request *rq;

		rig_confirm();
		DL_FOREACH(fake.requests, rq)
			if (strstr(rq->path, "?watch"))
				rq->call.head(rq->call.data, 200);
		fake_pass(1000);
	}
	assert_int_equal(rig_folders(), n - 1);
	assert_string_equal(rig.launched, "none");
}

/* The uid is on disk as soon as it is known, and from then on decides, whatever the object of somebody else says. */
static void test_copy_of_ours(void **state)
{
	for (int by_watch = 0; by_watch < 2; by_watch++) {
		cleanup_free char *id = NULL, *body = NULL, *path = NULL, *text = NULL;
		const struct spec_job *job cleanup_job = NULL;
		size_t len;

		rig_start("", "");
		rig_submit(RIG_APP);
		body = text_copy(rig_request()->body);
		if (by_watch) {
			rig_lose(true);
			rig_job_event("ADDED", rig.objects[rig.n_objects - 1].json);
			fake_pass(1000);
		} else {
			rig_serve();
		}
		assert_int_equal(rig.err, 0);
		id = text_copy(rig.id);
		/* The folder is complete soon, before any output. */
		fake_pass(2000);
		path = text_print("%s/jobs/%s/submission", rig.dir, id);
		assert_int_equal(file_read(path, 1000, &text, &len), 0);
		assert_non_null(strstr(text, "\napp.yaml\nu-"));
		rig_stop();
		/* Meanwhile our job goes, and somebody makes it again, annotations and all. */
		rig_start(rig_create(body)->json, "");
		job = backend_job(rig.b, BACKEND_JOBS, id);
		assert_non_null(job);
		assert_false(job->own);
		assert_false(rig_has_folder(id));
		rig_stop();
	}
	rig_start("", "");
}

static void test_submit(void **state)
{
	const struct spec_job *job;

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
	assert_int_equal(rig_folders(), 1);
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

/* The reply was lost, and the job is gone by the next try: the watch has told of it, so it is not launched twice. */
static void test_seen_and_gone(void **state)
{
	rig_start("", "");
	for (int shown = 0; shown < 2; shown++) {
		cleanup_free char *uid = NULL;
		size_t before = launches(), folders = rig_folders();
		const char *name, *json;

		rig_submit(RIG_APP);
		rig_lose(true);
		name = rig.objects[rig.n_objects - 1].name;
		json = rig.objects[rig.n_objects - 1].json;
		rig.objects[rig.n_objects - 1].there = false;
		uid = rig_behind(json, "\"uid\":\"");
		rig_event("jobs?watch", "ADDED", json);
		if (shown)
			fake_run();
		rig_job_event("DELETED", json);
		fake_pass(60000);
		assert_int_equal(rig.n_answers, 1);
		assert_int_equal(rig.err, 0);
		assert_string_equal(rig.id, name);
		assert_int_equal(launches() - before, 1);
		assert_int_equal(rig_folders(), folders);
	}
}

/* What stands before the server answers in place of a reply that it has lost, or in place of the server. */
static void test_word_of_a_proxy(void **state)
{
	static const struct {
		int status;
		const char *body;
	} words[] = {
		{503, "upstream connect error or disconnect/reset before headers"},
		{200, RIG_PAGE},
		{200, ""},
		{201, "{}"},
		{200, RIG_STATUS("200", "", "")},
		{201, "{\"kind\":\"Job\",\"metadata\":{\"name\":\"another\"}}"},
		{403, RIG_PAGE},
		{404, RIG_PAGE},
	};

	rig_start("", "");
	for (size_t i = 0; i < array_size(words); i++) {
		for (int acted = 0; acted < 2; acted++) {
			size_t before = launches();
			const char *body;

			/* The first try is answered so, later ones are refused: our own job may use up the quota. */
			rig_submit(RIG_APP);
			if (acted)
				(void)rig_act(rig_request(), &body);
			rig_answer(words[i].status, words[i].body);
			rig_until_request();
			rig_answer(403, RIG_STATUS("403", "Forbidden", "exceeded quota: q"));
			assert_int_equal(rig_request()->call.method, HTTP_GET);
			rig_serve();
			assert_int_equal(rig.n_answers, 1);
			assert_int_equal(rig.err, acted ? 0 : -EDQUOT);
			assert_int_equal(launches() - before, acted);

			/* All are answered so, and the job is found by its name. */
			rig_submit(RIG_APP);
			if (acted)
				(void)rig_act(rig_request(), &body);
			while (rig.n_answers == 0) {
				rig_until_request();
				if (rig_request()->call.method == HTTP_GET)
					rig_serve();
				else
					rig_answer(words[i].status, words[i].body);
			}
			assert_int_equal(rig.err == 0, acted);
			assert_int_equal(launches() - before, 2 * acted);
		}
	}
	/* Nobody tells who has the name. */
	rig_submit(RIG_APP);
	while (rig.n_answers == 0) {
		rig_until_request();
		rig_answer(200, RIG_PAGE);
	}
	assert_int_equal(rig.err, -EIO);
	assert_non_null(strstr(rig.text, "could not be found out"));
	assert_non_null(strstr(rig.text, "Please log in"));
}

/* A submission that http.c has tried again after a Status, and that is refused then. */
static void refuse_again(bool acted)
{
	static const char refused[] = RIG_STATUS("403", "Forbidden", "exceeded quota: q");
	const char *body;

	rig_submit(RIG_APP);
	if (acted)
		(void)rig_act(rig_request(), &body);
	fake_end(rig_request(), &(struct http_reply){.status = 403,
						     .again = true,
						     .text = "",
						     .body = refused,
						     .len = strlen(refused)});
	fake_run();
	assert_int_equal(rig_request()->call.method, HTTP_GET);
}

/* A server that is away is asked after pauses that grow up to a bound, each a little longer or shorter. */
static void test_pauses(void **state)
{
	static const unsigned pauses[] = {500, 1000, 2000, 4000, 8000, 15000, 15000};
	uint64_t since;

	rig_start("", "");
	rig_submit(RIG_APP);
	for (size_t i = 0; i < array_size(pauses); i++) {
		since = fake.now;
		rig_lose(false);
		rig_until_request();
		assert_in_range(fake.now - since, pauses[i] * 3 / 4, pauses[i] * 5 / 4);
	}
	rig_serve();
	assert_int_equal(rig.err, 0);
}

/* A proxy made for Kubernetes writes a Status too, so it is looked who has the name. */
static void test_refused_again(void **state)
{
	rig_start("", "");
	for (int acted = 0; acted < 2; acted++) {
		refuse_again(acted);
		rig_serve();
		assert_int_equal(rig.err, acted ? 0 : -EDQUOT);
	}
	/* Nobody tells: then the Status counts. */
	refuse_again(false);
	rig_answer(503, "no");
	assert_int_equal(rig.err, -EDQUOT);
}

/* A 409 that is no "exists already" has launched nothing. */
static void test_conflict(void **state)
{
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
	story_job("DELETED", "mine", "u-0", "Running");
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

/* A name that is tried for a submission may be that of a job that begins to print just then. */
static void test_name_in_flight(void **state)
{
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	rig_create("{\"metadata\":{\"name\":\"mine\"}}");
	rig_submit(RIG_READY(""));
	story_run("mine", "u-0", "p1");
	rig_serve();
	rig_serve();
	rig_serve();
	assert_int_equal(rig.err, 0);
	assert_string_not_equal(rig.id, "mine");
	story_pod("MODIFIED", "p1", "u-0", 0, "Running", RIG_RUNNING);
	assert_non_null(rig.streams);
}

/* The manifest of a dry run is written down on the pool, also when the mount ends meanwhile. */
static void test_dry_run(void **state)
{
	const struct backend_submission s = {"app.yaml",   RIG_APP, strlen(RIG_APP),
					     "ada@login1", 0,	    NULL};

	rig_start("", "");
	for (int ends = 0; ends < 2; ends++) {
		cleanup_free char *object = NULL;

		rig.n_answers = 0;
		backend_dry_run(rig.b, &s, rig_reply, NULL);
		fake_run();
		assert_non_null(strstr(rig_request()->path, "dryRun=All"));
		object = text_copy(rig_request()->body);
		fake_answer(rig_request(), 201, object);
		assert_int_equal(rig.n_answers, 0);
		assert_non_null(fake.pool);
		if (ends)
			rig_stop();
		else
			fake_run();
		assert_int_equal(rig.n_answers, 1);
		assert_int_equal(rig.err, 0);
	}
	/* A login page is no opinion of the server. */
	rig_start("", "");
	rig.n_answers = 0;
	backend_dry_run(rig.b, &s, rig_reply, NULL);
	fake_run();
	rig_answer(200, RIG_PAGE);
	assert_int_equal(rig.err, -EIO);
	assert_non_null(strstr(rig.text, "Please log in"));
}

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
		/* 429: nothing was done. */
		if (status != 429 && roll(2))
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

	rig_start(first, "");
	assert_non_null(world_reply(rig.k->world, WORLD_JOBS, reply, strlen(reply),
				    watches_version(rig.k->watches, WORLD_JOBS)));
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
	assert_non_null(world_reply(rig.k->world, WORLD_JOBS, again, strlen(again),
				    watches_version(rig.k->watches, WORLD_JOBS)));
	rig_job_event("DELETED", first);
	rig_expect(BACKEND_JOBS, "one", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_submit, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_syncs, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_power_cut, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_in_flight_over_kill, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_copy_of_ours, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_word_of_a_proxy, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_pauses, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_again, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_after_lost, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_seen_and_gone, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_conflict, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_named, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_name_in_flight, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_dry_run, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_exactly_once, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_older_reply, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_newer_reply, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("kube_launch", tests, NULL, NULL);
}
