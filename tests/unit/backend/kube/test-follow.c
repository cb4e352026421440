/* SPDX-License-Identifier: MIT */
/*
 * A log that is followed: its beginning, its end, a slow disk, and of which run of its container a stream is. The test
 * answers requests, and lets time pass and the disk work (fake_net.h).
 */
#include <signal.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/scratch.h"

#include "backend/base/diag.h"
#include "backend/kube/follow.h"
#include "backend/output/log.h"

#define T(second) "2026-11-21T09:08:" second ".000000000Z "
#define WHICH_RUN "/pods?fieldSelector=metadata.name%3Dpod"
/* The answer to the question for the pod: its uid, and how often its container has been run again. */
#define POD(uid, restarts)                                                                         \
	"{\"items\":[{\"metadata\":{\"uid\":\"" uid "\"},\"status\":{\"containerStatuses\":["      \
	"{\"name\":\"main\",\"restartCount\":" #restarts ",\"state\":{\"running\":{}}}]}}]}"
#define THIS_POD POD("uid-1", 0)

static struct {
	char dir[64];
	struct output *spool;
	struct output_job *job;
	struct follow_context context;
	struct follow *f;
	unsigned settled;
	unsigned told; /* how often the follow has told of a change */
	/* When the server is asked for the first time which run this is, it says that it is this one. */
	bool trusted;
} rig;

static unsigned n_synced;
static bool sync_fails;

int fdatasync(int fd)
{
	n_synced++;
	errno = EIO;
	return sync_fails ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/* Run all that is posted, and all work of the pool. */
static void run(void)
{
	struct http_request *rq;

	fake_run();
	rq = rig.trusted ? fake_find(WHICH_RUN) : NULL;
	if (!rq)
		return;
	rig.trusted = false;
	fake.n_sent--;
	fake_answer(rq, 200, THIS_POD);
	fake_run();
}

static void on_arrived(void *data)
{
	rig.settled++;
}

static void on_changed(void *data)
{
	rig.told++;
}

/* Is the log over, or refused for now? */
static bool is_done(void)
{
	return follow_state(rig.f).over || follow_state(rig.f).waiting;
}

static int result(void)
{
	if (!follow_state(rig.f).over)
		return -EAGAIN;
	return follow_state(rig.f).complete ? 0 : -ENOENT;
}

/* How many gaps there are, without the one at the end if that was lost. */
static unsigned gaps(void)
{
	return follow_state(rig.f).gaps -
	       (follow_state(rig.f).over && !follow_state(rig.f).complete);
}

/* From now on no file gets longer than N bytes. */
static void disk_takes(rlim_t n)
{
	struct rlimit limit;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = min_of(n, limit.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int setup(void **state)
{
	static const struct output_events events;
	char *text = NULL;

	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	n_synced = 0;
	sync_fails = false;
	fake.now = 1000;
	diag_setup(DIAG_DEBUG, false);
	strcpy(rig.dir, "/tmp/kxfs-follow-XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	assert_int_equal(output_new(NULL, rig.dir, &events, &rig.spool, &text), 0);
	output_start(rig.spool);
	rig.job = output_job_open(rig.spool, "job");
	assert_non_null(rig.job);
	rig.context = (struct follow_context){
		.namespace = "ns",
		.slots.max = 8,
		.changed = on_changed,
	};
	return 0;
}

static int teardown(void **state)
{
	disk_takes(RLIM_INFINITY);
	if (rig.f)
		follow_free(rig.f);
	run();
	assert_null(fake.requests);
	output_job_close(rig.job);
	run();
	output_stop(rig.spool, fake_nothing, NULL);
	run();
	fake_forget_timers();
	output_free(rig.spool);
	return scratch_remove(rig.dir);
}

/* Before turn I of a test all is made anew. */
static void begin_turn(void **state, size_t i)
{
	if (i == 0)
		return;
	assert_int_equal(teardown(state), 0);
	assert_int_equal(setup(state), 0);
}

static void begin(struct follow_run what)
{
	what.output = rig.job;
	what.job = "job";
	what.key = what.key ? what.key : "log";
	what.prefix = "a/0 ";
	what.pod = "pod";
	what.uid = "uid-1";
	what.container = "main";
	rig.trusted = !what.reruns;
	assert_int_equal(output_log_begin(rig.job, what.key, what.prefix, false), 0);
	rig.f = follow_new(&rig.context, &what);
	follow_wait(rig.f, on_arrived, NULL);
	follow_fill(&rig.context);
	run();
}

static void start(bool first)
{
	begin((struct follow_run){.first = first});
}

/* The only request under way, which asks for WHAT. */
static struct http_request *request(const char *what)
{
	const char *path;

	assert_non_null(fake.requests);
	assert_null(fake.requests->next);
	path = fake.requests->path;
	if (!path || !strstr(path, what))
		fail_msg("%s is no %s", path ? path : "nothing", what);
	return fake.requests;
}

static void head(struct http_request *rq)
{
	rq->call.head(rq->call.data, 200);
	run();
}

static void bytes(struct http_request *rq, const char *text)
{
	assert_int_equal(rq->call.bytes(rq->call.data, text, strlen(text)), 0);
	run();
}

static void end(struct http_request *rq)
{
	fake_end(rq, &(struct http_reply){.status = 200});
	run();
}

static void refuse(struct http_request *rq, int status)
{
	fake_answer(rq, status, "{}");
	run();
}

/* The log holds TEXT and nothing else. */
static void holds(const char *text)
{
	char path[128], got[4096] = "";
	FILE *f;

	run();
	snprintf(path, sizeof(path), "%s/output/job/logs/log", rig.dir);
	f = fopen(path, "r");
	assert_non_null(f);
	got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(got, text);
}

/* How many gaps stand on disk, in the table of the log. */
static size_t gaps_on_disk(void)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/output/job/lines/log.gaps", rig.dir);
	return stat(path, &st) == 0 ? (size_t)st.st_size / sizeof(uint64_t) : 0;
}

static uint64_t size_of(const char *key)
{
	struct log_stat st = {0};

	assert_int_equal(output_log_stat(rig.spool, "job", key, LOG_PLAIN, &st), 0);
	return st.size;
}

static void ended(enum run_end how)
{
	follow_ended(rig.f, how);
	if (rig.settled)
		follow_wait(rig.f, on_arrived, NULL);
	run();
}

/* --- the end --- */

/*
 * The run has ended and its pod is going, or gone: as long as output still comes it is waited for, since nothing can be
 * asked for after it.
 */
static void test_still_comes(void **state)
{
	static const enum run_end ends[] = {RUN_LAST, RUN_GONE};
	char all[4096] = "one\n";
	size_t n = strlen(all);

	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	follow_leaving(rig.f);
	for (size_t i = 0; i < array_size(ends); i++) {
		ended(ends[i]);
		for (int k = 0; k < 30; k++) {
			fake_pass(ends[i] == RUN_LAST ? 200 : 15000);
			assert_false(is_done());
			bytes(request("follow=true"), T("02") "more\n");
			n += (size_t)snprintf(all + n, sizeof(all) - n, "more\n");
		}
	}
	assert_int_equal(fake.n_sent, 1);
	end(fake.requests);
	assert_true(is_done());
	assert_int_equal(result(), 0);
	holds(all);
}

/* No more output comes: the stream is ended, and what may be left is asked for. */
static void test_falls_silent(void **state)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	ended(RUN_LAST);
	fake_pass(3000);
	bytes(fake.requests, T("02") "two\n");
	fake_pass(3000);
	request("follow=true");
	fake_pass(6000);
	assert_null(strstr(request("")->path, "follow=true"));
	fake_answer(fake.requests, 200, T("01") "one\n" T("02") "two\n" T("03") "three\n");
	run();
	assert_int_equal(result(), 0);
	assert_true(is_done());
	holds("one\ntwo\nthree\n");
}

/* A stream that never ends is ended in time, also if it brings more and more. */
static void test_never_ends(void **state)
{
	start(false);
	head(request("follow=true"));
	ended(RUN_GONE);
	for (int i = 0; i < 100 && !is_done(); i++) {
		bytes(request("follow=true"), T("02") "more\n");
		fake_pass(10000);
	}
	assert_true(is_done());
	assert_int_equal(result(), -ENOENT);
}

/*
 * The job has ended, and its pod runs on: a minute later its output is the job's no more. Not if the pod is on its way
 * out, or the job goes on after all.
 */
static void test_outlived(void **state)
{
	for (size_t i = 0; i < 3; i++) {
		begin_turn(state, i);
		start(false);
		head(request("follow=true"));
		bytes(fake.requests, T("01") "one\n");
		follow_job_ended(rig.f, true, true);
		if (i == 1)
			follow_leaving(rig.f);
		fake_pass(50000);
		bytes(request("follow=true"), T("02") "two\n");
		if (i == 2)
			follow_job_ended(rig.f, false, true);
		fake_pass(20000);
		run();
		assert_int_equal(is_done(), i == 0);
		assert_int_equal(follow_state(rig.f).outlived, i == 0);
		if (i == 0) {
			assert_null(fake.requests);
			assert_int_equal(result(), 0);
		} else {
			request("follow=true");
		}
		holds("one\ntwo\n");
	}
}

/* The minute is over while the end of the log is read, for another stream. */
static void test_outlived_while_read(void **state)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	follow_job_ended(rig.f, true, true);
	fake_pass(59999);
	fake_end(request("follow=true"), &(struct http_reply){.status = 200});
	fake_pass(1000);
	run();
	fake_pass(1000);
	run();
	assert_true(is_done());
	assert_int_equal(result(), 0);
	holds("one\n");
}

static void wait_for_request(void)
{
	while (!fake.requests)
		assert_true(fake_wait(60000));
}

/*
 * The run has ended, one line of it is known, and what is left is asked for; AGAIN: after the log was refused too
 * often.
 */
static void ended_after_one(bool again)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	fake_break(fake.requests, -EIO, true);
	run();
	ended(RUN_LAST);
	fake_pass(100);
	while (again && !is_done()) {
		wait_for_request();
		refuse(fake.requests, 500);
	}
	wait_for_request();
}

/* The log is refused, in one way or another, so often that it is not asked for any more for now. */
static void test_refused(void **state)
{
	ended_after_one(false);
	for (int i = 0; i < 12; i++) {
		assert_false(is_done());
		if (i % 4 == 3)
			fake_break(request("timestamps=true"), -EHOSTUNREACH, false);
		else
			refuse(request("timestamps=true"), i % 4 == 2 ? 429 : i % 4 ? 500 : 403);
		fake_pass(i < 11 ? 8000 : 1);
	}
	assert_null(fake.requests);
	assert_true(is_done());
	assert_int_equal(result(), -EAGAIN);
	holds("one\n");
}

static bool is_denied(struct output *o, const char *key)
{
	struct log *log cleanup_log = NULL;

	assert_int_equal(output_log(o, "job", key, LOG_PLAIN, &log), 0);
	return log_is_denied(log);
}

/*
 * Readers are told that there is no right to read a log, before their opens are answered: until there is the right,
 * though nothing is printed then, or until its pod is gone, or if something was captured before. So it is with the
 * merged log while there is no right to any of its logs.
 */
static void test_denied(void **state)
{
	for (size_t i = 0; i < 3; i++) {
		begin_turn(state, i);
		start(true);
		assert_int_equal(output_log_begin(rig.job, "container", NULL, false), 0);
		refuse(request("timestamps=true"), i == 2 ? 500 : 403);
		assert_int_equal(rig.settled, 1);
		assert_int_equal(is_denied(rig.spool, "log"), i < 2);
		assert_int_equal(is_denied(rig.spool, NULL), i < 2);
		assert_int_equal(output_log_begin(rig.job, "other", "a/1 ", false), 0);
		output_log_deny(rig.job, "other", true);
		assert_int_equal(is_denied(rig.spool, NULL), i < 2);
		output_log_deny(rig.job, "other", false);
		assert_false(is_denied(rig.spool, NULL));
		wait_for_request();
		assert_int_equal(is_denied(rig.spool, "log"), i < 2);
		if (i == 1) {
			refuse(fake.requests, 403);
			ended(RUN_GONE);
			fake_pass(60000);
			assert_true(is_done());
			assert_int_equal(result(), -ENOENT);
		} else {
			head(fake.requests);
		}
		assert_false(is_denied(rig.spool, "log"));
	}
	begin_turn(state, 3);
	ended_after_one(false);
	refuse(fake.requests, 403);
	holds("one\n");
	assert_false(is_denied(rig.spool, "log"));
}

/* The log was refused too often before: then one refusal is enough. But not while something comes each time. */
static void test_refused_again(void **state)
{
	static const char *const lines[] = {T("02") "two\n", T("03") "three\n"};

	ended_after_one(true);
	for (size_t i = 0; i < array_size(lines); i++) {
		head(request("timestamps=true"));
		bytes(fake.requests, T("01") "one\n");
		if (i > 0)
			bytes(fake.requests, lines[0]);
		bytes(fake.requests, lines[i]);
		fake_break(fake.requests, -EIO, true);
		fake_pass(8000);
		assert_false(follow_state(rig.f).over);
	}
	refuse(request("timestamps=true"), 500);
	assert_true(is_done());
	assert_int_equal(result(), -EAGAIN);
	holds("one\ntwo\nthree\n");
}

/*
 * The node says that it has nothing: of the run before the present one that is final. Of another run the node should
 * know better.
 */
static void test_refused_for_good(void **state)
{
	static const enum run_end ends[] = {RUN_PREVIOUS, RUN_LAST};

	for (size_t i = 0; i < array_size(ends); i++) {
		begin_turn(state, i);
		ended_after_one(false);
		if (ends[i] == RUN_PREVIOUS)
			ended(RUN_PREVIOUS);
		while (!is_done()) {
			while (!fake.requests)
				assert_true(fake_wait(10000));
			refuse(fake.requests, 400);
		}
		assert_int_equal(result(), ends[i] == RUN_LAST ? -EAGAIN : -ENOENT);
	}
}

/* --- was that all? --- */

/* The pod is gone: some of its output may be lost, but not when its stream had just ended by itself. */
static void gone_after(bool hurry, int err)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	if (hurry)
		follow_leaving(rig.f);
	end(fake.requests);
	ended(RUN_GONE);
	fake_pass(100);
	assert_true(is_done());
	assert_int_equal(result(), err);
	holds("one\n");
}

static void test_gone_while_going(void **state)
{
	gone_after(true, 0);
}

/* Streams end for many reasons: while nothing says that the run is at its end, the end of a stream does not either. */
static void test_gone_while_running(void **state)
{
	gone_after(false, -ENOENT);
}

/* A stream that has been open for LIVED ms ends properly, before there is any news that the run has ended. */
static void ends_early(uint64_t lived)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	fake_pass(lived);
	end(fake.requests);
}

/* The next stream, which is asked for at once, has nothing new, and ends properly after MS. */
static void ends_again(uint64_t ms)
{
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	fake_pass(ms);
	end(fake.requests);
}

static void gone_with(int err)
{
	ended(RUN_GONE);
	fake_pass(100);
	assert_true(is_done());
	assert_int_equal(result(), err);
	holds("one\n");
}

/*
 * A node ends the stream of a container that has ended, and the next stream too, at once; it keeps that of a container
 * that runs. So all had come, though no news said that the run had ended before the pod was gone.
 */
static void test_deleted_before_any_event(void **state)
{
	ends_early(3000);
	ends_again(20);
	gone_with(0);
}

/* The same, when the server's answer about the pod comes before the news of the watch. */
static void test_gone_before_watch(void **state)
{
	ends_early(3000);
	ends_again(20);
	ended(RUN_LAST);
	fake_pass(10);
	fake_answer(request("timestamps=true"), 404,
		    "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"message\":\"pods "
		    "\\\"pod\\\" not found\",\"details\":{\"name\":\"pod\",\"kind\":\"pods\"}}");
	run();
	assert_true(is_done());
	assert_int_equal(result(), 0);
}

/* Cases that look like that, and are not: in these the gap is counted. */
static void test_gone_unproven(void **state)
{
	for (int i = 0; i < 7; i++) {
		begin_turn(state, i);
		ends_early(i == 0 ? 100 : 3000); /* 0: the node keeps no stream open */
		if (i == 1)
			ends_again(3000); /* all streams end */
		if (i == 2)
			fake_break(request("follow=true"), -EIO, true);
		if (i == 3)
			refuse(request("follow=true"), 404); /* the node has just been started */
		if (i == 4) {
			head(request("follow=true")); /* the run has gone on */
			fake_pass(3000);
			fake_break(fake.requests, -EIO, true);
			run();
		}
		if (i == 5) {
			ends_again(20);
			fake_pass(2000);
			head(request("follow=true")); /* the run has gone on, later */
			fake_pass(2000);
			fake_break(fake.requests, -EIO, true);
			run();
		}
		if (i == 6) {
			ends_again(20); /* the last stream lies long back */
			for (int k = 0; k < 5; k++) {
				while (!fake.requests)
					assert_true(fake_wait(60000));
				refuse(fake.requests, 500);
			}
		}
		gone_with(-ENOENT);
	}
}

/* Where containers are run again, the next stream may be that of the next run. */
static void test_gone_of_reruns(void **state)
{
	begin((struct follow_run){.reruns = true});
	head(fake_find("follow=true"));
	bytes(fake_find("follow=true"), T("01") "one\n");
	fake_answer(fake_find(WHICH_RUN), 200, THIS_POD);
	run();
	fake_pass(3000);
	end(request("follow=true"));
	assert_null(fake.requests);
	gone_with(-ENOENT);
}

/* What was fetched for a reader is what there was at that time, and says nothing about the rest. */
static void test_gone_after_first(void **state)
{
	start(true);
	follow_leaving(rig.f);
	assert_null(strstr(request("")->path, "follow=true"));
	fake_answer(fake.requests, 200, T("01") "one\n");
	run();
	assert_int_equal(rig.settled, 1);
	head(request("follow=true"));
	fake_break(fake.requests, -EIO, true);
	run();
	ended(RUN_GONE);
	fake_pass(100);
	assert_true(is_done());
	assert_int_equal(result(), -ENOENT);
}

/* --- what is said --- */

static size_t said_before;

/* What the daemon's messages have said since the last call, malloc'ed. */
static char *said(void)
{
	size_t len;
	cleanup_free char *all = diag_text(&len);
	char *ret = strdup(all + min_of(said_before, len));

	said_before = len;
	return ret;
}

static void says(const char *what)
{
	cleanup_free char *text = said();

	assert_null(strstr(text, " warning "));
	if (!strstr(text, what))
		fail_msg("\"%s\" was not said: %s", what, text);
}

/*
 * A log that is refused while its pod goes away, and then turns out to be complete: nobody is warned, and all is well
 * at the end.
 */
static void test_refused_and_complete(void **state)
{
	free(said());
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	follow_leaving(rig.f);
	ended(RUN_LAST);
	end(fake.requests);
	refuse(request("timestamps=true"), 500);
	says("; kxfs retries\n");
	ended(RUN_GONE);
	fake_pass(100);
	assert_true(is_done());
	assert_int_equal(result(), 0);
	says("output of pod, container main: is complete\n");
}

/* What was said to be wrong is said to be well again as soon as it is, each time. */
static void test_refused_and_mended(void **state)
{
	free(said());
	start(false);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 3; k++) {
			refuse(request("follow=true"), 500);
			fake_pass(60000);
		}
		says("; kxfs retries\n");
		head(request("follow=true"));
		bytes(fake.requests, i ? T("01") "one\n" T("02") "two\n" : T("01") "one\n");
		run();
		says("output of pod, container main: continues\n");
		fake_break(fake.requests, -EIO, true);
		fake_pass(60000);
	}
}

/* --- who waits for what there is --- */

/*
 * The bytes that there are now have arrived when a request of their own has brought them and they are written, whatever
 * becomes of the stream.
 */
static void test_first(void **state)
{
	start(true);
	assert_null(strstr(request("")->path, "follow=true"));
	fake_pass(20000);
	assert_int_equal(rig.settled, 0);
	head(fake.requests);
	bytes(fake.requests, T("01") "one\n");
	fake_pass(20000);
	assert_int_equal(rig.settled, 0);
	end(fake.requests);
	assert_int_equal(rig.settled, 1);
	holds("one\n");
	request("follow=true");
	fake_pass(5000);
	assert_int_equal(rig.settled, 1);
}

/* These bytes can't be had: whoever waits for them is not kept waiting. */
static void test_first_refused(void **state)
{
	start(true);
	refuse(request(""), 500);
	assert_int_equal(rig.settled, 1);
	assert_false(is_done());
	fake_pass(2000);
	request("follow=true");
}

/* Without such a request, a pause in the stream is taken for the end of what there was. */
static void test_pause(void **state)
{
	start(false);
	fake_pass(1000);
	assert_int_equal(rig.settled, 0);
	head(request("follow=true"));
	for (int i = 0; i < 5; i++) {
		bytes(fake.requests, T("01") "more\n");
		fake_pass(100);
		assert_int_equal(rig.settled, 0);
	}
	fake_pass(300);
	assert_int_equal(rig.settled, 1);
}

/* A stream that ends without a pause ends the waiting too. */
static void test_no_pause(void **state)
{
	start(false);
	head(request("follow=true"));
	for (int i = 0; i < 30; i++) {
		bytes(fake.requests, T("01") "more\n");
		fake_pass(100);
	}
	assert_int_equal(rig.settled, 1);
}

/* When the run has ended, its log arrives anew when all of it is there, not when the stream pauses. */
static void test_rest(void **state)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	fake_pass(300);
	assert_int_equal(rig.settled, 1);
	ended(RUN_LAST);
	fake_pass(1000);
	bytes(request("follow=true"), T("02") "two\n");
	fake_pass(1000);
	end(request("follow=true"));
	assert_int_equal(rig.settled, 1);
	fake_answer(request(""), 200, T("01") "one\n" T("02") "two\n");
	run();
	assert_int_equal(rig.settled, 2);
	assert_true(is_done());
	holds("one\ntwo\n");
}

/* A log is complete when it is synced, so that the next machine has it, and is not if the sync fails. */
static void test_synced(void **state)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	fake_pass(300);
	assert_int_equal(n_synced, 0);
	ended(RUN_LAST);
	end(request("follow=true"));
	sync_fails = true;
	fake_answer(request(""), 200, T("01") "one\n");
	run();
	assert_true(n_synced > 0);
	assert_false(follow_state(rig.f).over);
	assert_int_equal(follow_state(rig.f).disk, -EIO);
	sync_fails = false;
	n_synced = 0;
	fake_pass(2500);
	fake_answer(request(""), 200, T("01") "one\n");
	run();
	assert_int_equal(result(), 0);
	assert_true(n_synced > 0);
}

/* The run has ended before the stream has paused: then the pause says nothing. */
static void test_ended_at_once(void **state)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	ended(RUN_LAST);
	fake_pass(3000);
	assert_int_equal(rig.settled, 0);
	end(request("follow=true"));
	refuse(request(""), 500);
	assert_int_equal(rig.settled, 1);
	assert_false(is_done());
}

/* --- a slow disk --- */

#define LINE (1u << 20)

/* Give the stream RQ the bytes TEXT, of which nothing is written yet. 0, or how the stream ends. */
static int bytes_unwritten(struct http_request *rq, const char *text)
{
	int err = rq->call.bytes(rq->call.data, text, strlen(text));

	while (fake_step(&fake.posted))
		;
	return err;
}

/* A line of LINE bytes, malloc'ed. */
static char *long_line(void)
{
	char *line = malloc(LINE + 1);

	assert_non_null(line);
	memset(line, 'x', LINE);
	memcpy(line, T("01"), strlen(T("01")));
	line[LINE - 1] = '\n';
	line[LINE] = '\0';
	return line;
}

/*
 * A log that prints much and another one are followed. *RET_OTHER is the stream of the second, the result that of the
 * first.
 */
static struct http_request *follow_two(struct follow *ret[2], struct http_request **ret_other)
{
	struct http_request *rq;

	start(false);
	ret[0] = rig.f;
	head(fake_find("follow"));
	rq = fake.requests;
	begin((struct follow_run){.key = "other"});
	ret[1] = rig.f;
	*ret_other = rq->next;
	head(*ret_other);
	return rq;
}

static void end_two(struct follow *const logs[2], size_t size, const char *other)
{
	assert_int_equal(gaps(), 0);
	follow_free(logs[0]);
	follow_free(logs[1]);
	rig.f = NULL;
	run();
	assert_int_equal(size_of("log"), size);
	assert_int_equal(size_of("other"), strlen(other));
}

/* A disk that stands still slows the stream of a log that prints much, as long as it does so, and no other stream. */
static void test_slow_disk(void **state)
{
	cleanup_free char *line = long_line();
	struct http_request *rq, *other;
	struct follow *logs[2];
	size_t lines = 0;

	rq = follow_two(logs, &other);
	for (int i = 0; i < 3; i++) {
		size_t before = lines;

		while (!rq->paused) {
			assert_int_equal(bytes_unwritten(rq, line), 0);
			assert_true(++lines < before + 1000);
		}
		assert_in_range(lines - before, 16, 64);
		assert_int_equal(bytes_unwritten(other, T("02") "one\n"), 0);
		assert_false(other->paused);
		assert_true(rq->paused);
		run();
		fake_pass(100);
		assert_false(rq->paused);
	}
	assert_int_equal(fake.n_sent, 2);
	end_two(logs, lines * (LINE - strlen(T("01"))), "one\none\none\n");
}

/* The same where no more streams can be slowed: the stream is ended, and asked for again on a connection of its own. */
static void test_slow_disk_for_many(void **state)
{
	cleanup_free char *line = long_line();
	struct http_request *rq, *other;
	struct follow *logs[2];
	size_t len, lines = 0;
	cleanup_free char *said = NULL;

	fake.never_pauses = true;
	rq = follow_two(logs, &other);
	while (bytes_unwritten(rq, line) == 0)
		assert_true(++lines < 1000);
	assert_in_range(lines, 16, 64);
	fake_end(rq, &(struct http_reply){.err = -ENOBUFS});
	said = diag_text(&len);
	assert_non_null(strstr(said, "output of pod, container main: the disk is too slow"));
	assert_int_equal(bytes_unwritten(other, T("02") "one\n"), 0);
	assert_int_equal(fake.n_sent, 2); /* what can't be taken is not asked for */
	run();
	assert_int_equal(fake.n_sent, 3);
	rq = other->next;
	assert_true(rq->call.alone);
	head(rq);
	for (size_t i = 0; i < lines; i++)
		bytes(rq, line);
	bytes(rq, T("04") "end\n");
	end_two(logs, lines * (LINE - strlen(T("01"))) + strlen("end\n"), "one\n");
}

/*
 * A disk that takes nothing: writing is tried again, more and more seldom; what has come meanwhile is asked for again;
 * and all of that is said once.
 */
static void test_bad_disk(void **state)
{
	static const unsigned pauses[] = {1000, 2000, 4000, 8000, 10000, 10000};
	size_t len;
	cleanup_free char *said = NULL;

	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	disk_takes(4);
	for (size_t i = 0; i < array_size(pauses); i++) {
		bytes(request("follow=true"), T("02") "two\n");
		assert_null(fake.requests);
		assert_true(follow_state(rig.f).waiting);
		fake_pass(pauses[i] / 2);
		assert_null(fake.requests);
		fake_pass(pauses[i]);
		head(request("follow=true"));
		bytes(fake.requests, T("01") "one\n");
		assert_true(follow_state(rig.f).waiting);
	}
	disk_takes(RLIM_INFINITY);
	bytes(request("follow=true"), T("02") "two\n");
	holds("one\ntwo\n");
	assert_false(follow_state(rig.f).waiting);
	said = diag_text(&len);
	assert_non_null(strstr(said, "File too large; kxfs retries"));
	assert_null(strstr(strstr(said, "main: File too large") + 1, "main: File too large"));
	assert_int_equal(gaps(), 0);
}

/* The run ends meanwhile: writing is tried again at once, and whoever opens the log waits, but not for long. */
static void test_bad_disk_at_the_end(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		begin_turn(state, i);
		start(false);
		head(request("follow=true"));
		bytes(fake.requests, T("01") "one\n");
		fake_pass(1000);
		assert_int_equal(rig.settled, 1);
		disk_takes(4);
		bytes(request("follow=true"), T("02") "two\n");
		assert_null(fake.requests);
		ended(RUN_LAST);
		for (size_t k = 0; k < (i ? 5 : 1); k++) {
			fake_pass(k ? 6300 : 0);
			head(request("/log?"));
			bytes(fake.requests, T("01") "one\n" T("02") "two\n");
			assert_null(fake.requests);
			assert_int_equal(rig.settled, k < 2 ? 1 : 2);
		}
		disk_takes(RLIM_INFINITY);
		fake_pass(i ? 6300 : 2500);
		assert_int_equal(rig.settled, i ? 2 : 1);
		assert_true(follow_state(rig.f).waiting);
		head(request("/log?"));
		bytes(fake.requests, T("01") "one\n" T("02") "two\n");
		end(fake.requests);
		assert_false(follow_state(rig.f).waiting);
		assert_int_equal(result(), 0);
		holds("one\ntwo\n");
		assert_int_equal(rig.settled, 2);
	}
}

/* The pod is on its way out, so what is not on disk is soon gone: writing is tried again each second. */
static void test_bad_disk_as_it_leaves(void **state)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	follow_leaving(rig.f);
	disk_takes(4);
	for (int i = 0; i < 6; i++) {
		bytes(request("follow=true"), T("02") "two\n");
		assert_null(fake.requests);
		fake_pass(1300);
		head(request("follow=true"));
		bytes(fake.requests, T("01") "one\n");
	}
	disk_takes(RLIM_INFINITY);
	bytes(request("follow=true"), T("02") "two\n");
	holds("one\ntwo\n");
}

/*
 * A disk that takes a line, but not its time: neither counts as written. When lines come again without those before
 * them, it is their times by which they are known.
 */
static void test_bad_disk_of_times(void **state)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	disk_takes(26);
	bytes(request("follow=true"), T("02") "two\n");
	disk_takes(RLIM_INFINITY);
	if (fake.requests)
		fake_break(fake.requests, -EIO, true);
	fake_pass(10000);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n" T("02") "two\n");
	fake_break(fake.requests, -EIO, true);
	fake_pass(10000);
	/* The first lines were rotated away. */
	ended(RUN_LAST);
	while (!is_done()) {
		wait_for_request();
		fake_answer(fake.requests, 200, T("02") "two\n" T("03") "three\n");
		run();
	}
	holds("one\ntwo\nthree\n");
	assert_int_equal(result(), 0);
	assert_int_equal(gaps(), 0);
}

/* All lines had come, but the disk refused them, and then the pod is gone: that was not all. */
static void test_bad_disk_and_gone(void **state)
{
	start(false);
	head(request("follow=true"));
	ended(RUN_LAST);
	disk_takes(0);
	assert_int_equal(bytes_unwritten(fake.requests, T("01") "one\n"), 0);
	fake_end(fake.requests, &(struct http_reply){.status = 200});
	run();
	ended(RUN_GONE);
	fake_pass(100);
	disk_takes(RLIM_INFINITY);
	fake_pass(10000);
	assert_true(is_done());
	assert_int_equal(result(), -ENOENT);
}

/*
 * The disk refuses all that was printed, and the node says later that it has no such run: the log is not taken for an
 * empty one.
 */
static void test_bad_disk_and_no_run(void **state)
{
	start(false);
	head(request("follow=true"));
	disk_takes(0);
	bytes(fake.requests, T("01") "one\n");
	ended(RUN_LAST);
	for (int i = 0; i < 12 && !follow_state(rig.f).over; i++) {
		wait_for_request();
		disk_takes(RLIM_INFINITY);
		refuse(fake.requests, 400);
	}
	assert_int_equal(result(), -EAGAIN);
}

/* --- which run it is --- */

/* Follow a log whose container may be run again, and has been RESTART times; its stream has begun with BYTES. */
static struct http_request *start_unsure(unsigned restart, const char *text)
{
	begin((struct follow_run){.reruns = true, .restart = restart});
	assert_null(fake_find(WHICH_RUN));
	head(request("follow=true"));
	bytes(fake.requests, text);
	fake_pass(1000);
	holds("");
	assert_int_equal(rig.settled, 0);
	assert_non_null(fake_find(WHICH_RUN));
	return fake_find(WHICH_RUN);
}

static void answer(struct http_request *rq, int status, const char *body)
{
	fake_answer(rq, status, body);
	run();
}

/*
 * The stream is that of the next run: the lines of this run are in the previous log, which is complete, if it is still
 * the log of this run.
 */
static void test_next_run(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		begin_turn(state, i);
		answer(start_unsure(1, T("42") "next\n"), 200, POD("uid-1", 2));
		answer(request("previous=true"), 200, T("40") "one\n" T("41") "failed\n");
		holds("");
		answer(request(WHICH_RUN), 200, i ? POD("uid-1", 3) : POD("uid-1", 2));
		assert_true(is_done());
		assert_int_equal(result(), i ? -ENOENT : 0);
		holds(i ? "" : "one\nfailed\n");
	}
}

/* The news of the next run comes before the answer. */
static void test_news_of_run(void **state)
{
	start_unsure(0, T("42") "next\n");
	ended(RUN_PREVIOUS);
	fake_pass(100);
	answer(request("previous=true"), 200, T("40") "one\n");
	answer(request(WHICH_RUN), 200, POD("uid-1", 1));
	assert_int_equal(result(), 0);
	holds("one\n");
}

/* --- whether the container runs again --- */

/* Two lines of a run are known, and its stream has broken. */
static void broken_after_two(struct follow_run config)
{
	begin(config);
	head(fake_find("follow=true"));
	bytes(fake_find("follow=true"), T("01") "one\n" T("02") "two\n");
	if (config.reruns)
		answer(fake_find(WHICH_RUN), 200, THIS_POD);
	fake_break(request("follow=true"), -EIO, true);
	wait_for_request();
}

/*
 * The container runs again, and no news says so. The previous log is asked for. Whatever the answer, unless it is that
 * there is none, it does not prove that the newest stream is that of this run: a wrong guess would lose later lines, or
 * mix others into this log.
 */
static void test_run_before(void **state)
{
	static const char *const texts[] = {
		"unable to retrieve container logs for containerd://0123456789abcdef",
		T("01") "one\n", /* this end comes too early */
		T("01") "on",
	};

	for (size_t i = 0; i < array_size(texts); i++) {
		begin_turn(state, i);
		broken_after_two((struct follow_run){});
		for (int k = 0; k < 3; k++) {
			answer(request("follow=true"), 200, T("04") "next\n");
			answer(request("previous=true"), 200, texts[i]);
			holds("one\ntwo\n");
			wait_for_request();
		}
		answer(request("follow=true"), 200, T("04") "next\n");
		answer(request("previous=true"), 200,
		       T("01") "one\n" T("02") "two\n" T("03") "three\n");
		assert_true(is_done());
		assert_int_equal(result(), 0);
		assert_int_equal(gaps(), 0);
		holds("one\ntwo\nthree\n");
	}
}

/* The pod's status, which is late, says that the run has ended: the container runs again by now. */
static void test_run_before_ended(void **state)
{
	broken_after_two((struct follow_run){.reruns = true});
	ended(RUN_LAST);
	answer(request("timestamps=true"), 200, T("04") "next\n");
	answer(request("previous=true"), 200, T("01") "one\n" T("02") "two\n" T("03") "three\n");
	assert_true(is_done());
	assert_int_equal(result(), 0);
	assert_int_equal(gaps(), 0);
	holds("one\ntwo\nthree\n");
}

/*
 * There is a run before the newest one, and it does not show what is known: maybe two have begun since, or the known
 * end was rotated away. How often the container has been run again tells which, and nothing is taken from another run.
 */
static void test_runs_after_first(void **state)
{
	for (int i = 0; i < 2; i++) {
		begin_turn(state, i);
		broken_after_two((struct follow_run){});
		answer(request("follow=true"), 200, T("05") "third\n");
		answer(request("previous=true"), 200, T("04") "second\n");
		answer(request("follow=true"), 200, T("05") "third\n");
		answer(request(WHICH_RUN), 200, i ? POD("uid-1", 2) : POD("uid-1", 1));
		if (i == 0) {
			answer(request("previous=true"), 200, T("03") "three\n");
			holds("one\ntwo\n");
			answer(request("previous=true"), 200, T("03") "three\n");
			answer(request(WHICH_RUN), 200, POD("uid-1", 1));
		}
		assert_true(follow_state(rig.f).over);
		assert_int_equal(result(), i ? -ENOENT : 0);
		assert_int_equal(gaps(), i ? 0 : 1);
		holds(i ? "one\ntwo\n" : "one\ntwo\nthree\n");
	}
}

/*
 * There is no run before the newest one: so the end that is known was rotated away, and newer lines are taken. After a
 * refusal the server is asked again, since the container may have been run again meanwhile.
 */
static void test_rotated(void **state)
{
	static const char *const pods[] = {THIS_POD, POD("uid-2", 0)};

	for (size_t i = 0; i < array_size(pods); i++) {
		begin_turn(state, i);
		broken_after_two((struct follow_run){});
		answer(request("follow=true"), 200, T("04") "four\n");
		refuse(request("previous=true"), 400);
		refuse(request("follow=true"), 500);
		wait_for_request();
		answer(request("follow=true"), 200, T("04") "four\n");
		refuse(request("previous=true"), 400);
		head(request("follow=true"));
		bytes(fake_find("follow=true"), T("04") "four\n");
		holds("one\ntwo\n");
		rig.told = 0;
		answer(fake_find(WHICH_RUN), 200, pods[i]);
		if (i == 0) {
			/* The owner hears of the gap, and the next kxfs finds it. */
			assert_int_equal(rig.told, 1);
			holds("one\ntwo\nfour\n");
			assert_int_equal(gaps(), 1);
			assert_int_equal(gaps_on_disk(), 1);
		} else {
			/* Another pod has the name of this one, which is gone. */
			assert_true(is_done());
			assert_int_equal(result(), -ENOENT);
			holds("one\ntwo\n");
		}
	}
}

/*
 * The run has ended, and its node no longer has any of the known lines, nor anything newer: some may be lost. That gap
 * is counted once, also where an earlier kxfs has done so, beside its other gaps.
 */
static void test_rotated_away(void **state)
{
	static const struct follow_run before[] = {{0},
						   {.gaps = 1, .lost_end = true},
						   {.gaps = 3, .missed = 2, .lost_end = true},
						   {.gaps = 2, .missed = 2}};
	static const unsigned told[] = {1, 1, 3, 3};

	for (size_t i = 0; i < array_size(before); i++) {
		begin_turn(state, i);
		begin(before[i]);
		head(request("follow=true"));
		bytes(fake.requests, T("01") "one\n");
		fake_break(fake.requests, -EIO, true);
		ended(RUN_LAST);
		while (!is_done()) {
			wait_for_request();
			if (strstr(fake.requests->path, WHICH_RUN))
				answer(fake.requests, 200, THIS_POD);
			else
				answer(fake.requests, 200, "");
		}
		assert_int_equal(result(), -ENOENT);
		assert_int_equal(follow_state(rig.f).gaps, told[i]);
		assert_true(follow_state(rig.f).lost_end);
		holds("one\n");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_still_comes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_falls_silent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outlived, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outlived_while_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_denied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_for_good, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_going, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_running, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deleted_before_any_event, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_before_watch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_unproven, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_of_reruns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_after_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_and_complete, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_and_mended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_synced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_disk_for_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_disk_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_disk_as_it_leaves, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_disk_of_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_disk_and_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_disk_and_no_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_next_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_news_of_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_run_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_run_before_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs_after_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rotated, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rotated_away, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
