/* SPDX-License-Identifier: MIT */
/*
 * Following one log: its start, its end, slow disks, and which run of the container a stream
 * belongs to. The test answers requests, lets time pass, and performs the disk work (fake_net.h).
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
/* The reply to the request for the pod: its uid, and how often its container was restarted. */
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
	unsigned told; /* number of calls of `changed` */
	/*
	 * The first time that kxfs asks which run the stream belongs to, the server answers: this
	 * one.
	 */
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

/* Run all posted calls, and all work of the pool. */
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

/* True if the log has ended, or if it waits after too many refusals. */
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

/* Return the number of gaps, without the one at the end of the log if the end was lost. */
static unsigned gaps(void)
{
	return follow_state(rig.f).gaps -
	       (follow_state(rig.f).over && !follow_state(rig.f).complete);
}

/* Limit the size of all files to N bytes from now on. */
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

/* Reset everything before iteration I of a test. */
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

/* Return the only request under way, whose path must contain WHAT. */
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

/* Assert that the log's contents are TEXT. */
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

/* Return the number of gaps that the log's table on disk contains. */
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

/* --- the end of a log --- */

/*
 * The run has ended, and its pod is being deleted or is gone. kxfs waits while output still
 * arrives, because it can't request any output afterwards.
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

/*
 * The run has ended and no more output arrives. kxfs closes the stream and requests what may be
 * missing.
 */
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

/*
 * kxfs closes a stream that never ends after a time limit, even if it delivers more and more data.
 */
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

static void wait_for_request(void)
{
	while (!fake.requests)
		assert_true(fake_wait(60000));
}

/* True if the only request is for the existing output. Answer it with TEXT. */
static bool fetched(const char *text)
{
	bool rest = fake.requests && !strstr(request("timestamps=true")->path, "follow=true");

	if (rest)
		fake_answer(fake.requests, 200, text);
	run();
	return rest;
}

/*
 * The job has finished, but its pod continues to run. A minute later, kxfs fetches what the log has
 * and ends it. Exceptions: the pod is being deleted (1), or the job is running after all (2).
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
		assert_false(is_done());
		assert_int_equal(fetched(T("01") "one\n" T("02") "two\n"), i == 0);
		assert_int_equal(is_done(), i == 0);
		assert_int_equal(follow_state(rig.f).outlived, i == 0);
		if (i == 0)
			assert_int_equal(result(), 0);
		else
			request("follow=true");
		holds("one\ntwo\n");
	}
}

/*
 * A minute after the job, the log is refused (0), its stream has just ended (1), it still delivers
 * old output (2), or it was known to be complete long ago (3). The log ends only when all existing
 * output was fetched, even if the disk then refuses it once (4).
 */
static void test_outlived_unread(void **state)
{
	for (size_t i = 0; i < 5; i++) {
		begin_turn(state, i);
		start(i == 2);
		head(request("timestamps=true"));
		bytes(fake.requests, T("01") "one\n");
		if (i == 3) {
			fake_pass(3000);
			fake_end(request("follow=true"), &(struct http_reply){.status = 200});
			run();
			head(request("follow=true"));
			fake_end(request("follow=true"), &(struct http_reply){.status = 200});
			run();
		}
		follow_job_ended(rig.f, true, true);
		if (i == 0 || i == 3)
			for (int k = 0; k < 4; k++) {
				if (k == 0 && i == 0)
					fake_break(fake.requests, -EIO, true);
				wait_for_request();
				refuse(fake.requests, 500);
			}
		fake_pass(i == 1 ? 59999 : 55000);
		if (i == 1)
			fake_end(request("follow=true"), &(struct http_reply){.status = 200});
		else if (i == 2)
			bytes(request("timestamps=true"), T("02") "two\n");
		fake_pass(8000);
		run();
		assert_false(is_done());
		if (i == 2) {
			assert_false(strstr(request("timestamps=true")->path, "follow=true"));
			fake_end(fake.requests, &(struct http_reply){.status = 200});
			run();
			assert_false(is_done());
		}
		sync_fails = i == 4;
		wait_for_request();
		assert_true(fetched(T("01") "one\n" T("02") "two\n"));
		if (i == 4) {
			assert_false(follow_state(rig.f).over);
			sync_fails = false;
			wait_for_request();
			assert_true(fetched(T("01") "one\n" T("02") "two\n"));
		}
		assert_true(is_done());
		assert_true(follow_state(rig.f).outlived);
		assert_int_equal(result(), 0);
		holds("one\ntwo\n");
	}
}

/* The run ends while kxfs fetches the output of a pod that outlives its job. It prints more then. */
static void test_outlived_ends(void **state)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	follow_job_ended(rig.f, true, true);
	fake_pass(61000);
	head(request("timestamps=true"));
	bytes(fake.requests, T("01") "one\n");
	ended(RUN_LAST);
	fake_end(request("timestamps=true"), &(struct http_reply){.status = 200});
	run();
	assert_false(is_done());
	wait_for_request();
	assert_true(fetched(T("01") "one\n" T("02") "two\n"));
	assert_true(is_done());
	assert_false(follow_state(rig.f).outlived);
	holds("one\ntwo\n");
}

/*
 * End the run after one line was received. kxfs then requests the rest. AGAIN: the log was refused
 * too often before.
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

/* The server refuses the log in various ways, so often that kxfs stops requesting it for now. */
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
 * If the user may not read a log, readers learn that before their opens are answered. This ends
 * when the user gets the right (even if the container prints nothing then), or when the pod is
 * gone. It never starts if output was captured before. The merged log behaves so while the user may
 * not read any of its parts.
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

/*
 * If the log was refused too often before, one further refusal is enough. But refusals do not count
 * while each request delivers something new.
 */
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

/* The node can't read the rest of the log now. kxfs requests that rest again. */
static void test_refused_in_the_middle(void **state)
{
	ended_after_one(false);
	fake_answer(request("timestamps=true"), 200,
		    T("01") "one\n" T("02") "two\nfailed to read log file: input/output error");
	run();
	assert_false(is_done());
	holds("one\ntwo\n");
	fake_pass(8000);
	fake_answer(request("timestamps=true"), 200, T("01") "one\n" T("02") "two\n" T("03") "x\n");
	run();
	assert_true(is_done());
	assert_int_equal(result(), 0);
	holds("one\ntwo\nx\n");
}

/*
 * The kubelet reports that it has no log. kxfs accepts that for the run before the current one. For
 * another run, it asks again, because the kubelet should have that log.
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

/* --- whether the output is complete --- */

/*
 * End the stream, then delete the pod. Some output may be lost, except if the container's end had
 * just closed the stream.
 */
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

/*
 * Streams end for many reasons. Without an event that shows the end of the run, the end of a stream
 * does not prove it.
 */
static void test_gone_while_running(void **state)
{
	gone_after(false, -ENOENT);
}

/*
 * Open a stream for LIVED ms, then let it end normally. No event has shown the end of the run yet.
 */
static void ends_early(uint64_t lived)
{
	start(false);
	head(request("follow=true"));
	bytes(fake.requests, T("01") "one\n");
	fake_pass(lived);
	end(fake.requests);
}

/* The stream that kxfs opens next repeats the known line, and ends normally after MS. */
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
 * The kubelet closes the stream of a container that has ended, and then closes the next stream
 * immediately. It would keep the stream of a running container open. So the log is complete,
 * although no event showed the end of the run before the pod was gone.
 */
static void test_deleted_before_any_event(void **state)
{
	ends_early(3000);
	ends_again(20);
	gone_with(0);
}

/*
 * The log is complete although no event showed the end of the run. The server's reply that the pod
 * is gone arrives before the watch event.
 */
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

/* Similar cases in which the log may be incomplete, so kxfs must count a gap. */
static void test_gone_unproven(void **state)
{
	for (int i = 0; i < 7; i++) {
		begin_turn(state, i);
		ends_early(i == 0 ? 100 : 3000); /* 0: this kubelet closes all streams early */
		if (i == 1)
			/*
			 * the kubelet keeps the second stream open, so the container may be running
			 */
			ends_again(3000);
		if (i == 2)
			fake_break(request("follow=true"), -EIO, true);
		if (i == 3)
			refuse(request("follow=true"), 404); /* the kubelet was just restarted */
		if (i == 4) {
			head(request("follow=true")); /* the container continued to run */
			fake_pass(3000);
			fake_break(fake.requests, -EIO, true);
			run();
		}
		if (i == 5) {
			ends_again(20);
			fake_pass(2000);
			/* the container continued to run, as a later stream shows */
			head(request("follow=true"));
			fake_pass(2000);
			fake_break(fake.requests, -EIO, true);
			run();
		}
		if (i == 6) {
			ends_again(20); /* the last stream was long ago */
			for (int k = 0; k < 5; k++) {
				while (!fake.requests)
					assert_true(fake_wait(60000));
				refuse(fake.requests, 500);
			}
		}
		gone_with(-ENOENT);
	}
}

/* If the kubelet restarts containers, the next stream may belong to the next run. */
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

/*
 * A request for a reader returned the output that existed at that time. That does not prove that
 * the later output is complete.
 */
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

/*
 * The pod is gone before a request for its existing output ends. The program may have printed more
 * after that request had reached the end of the log.
 */
static void test_gone_while_first(void **state)
{
	start(true);
	head(request("timestamps=true"));
	bytes(fake.requests, T("01") "one\n");
	ended(RUN_GONE);
	fake_end(request("timestamps=true"), &(struct http_reply){.status = 200});
	run();
	fake_pass(100);
	assert_true(is_done());
	assert_int_equal(result(), -ENOENT);
	holds("one\n");
}

/* --- kxfs's own messages --- */

static size_t said_before;

/* Return the daemon's messages since the last call. malloc'ed. */
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
 * The server refuses a log while its pod is being deleted, but the log turns out to be complete.
 * kxfs does not warn, and counts no gap.
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

/*
 * Each time that a refusal was reported and then ends, kxfs reports immediately that the log is
 * readable again.
 */
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

/* --- readers that wait for the existing output --- */

/*
 * A separate request reads the existing output. That output counts as arrived once it is on disk,
 * no matter what happens to the stream.
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

/* If the existing output can't be read, waiting readers are answered anyway. */
static void test_first_refused(void **state)
{
	start(true);
	refuse(request(""), 500);
	assert_int_equal(rig.settled, 1);
	assert_false(is_done());
	fake_pass(2000);
	request("follow=true");
}

/*
 * Without a separate request, the first pause of the stream counts as the end of the existing
 * output.
 */
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

/* If the stream ends without a pause, readers stop waiting too. */
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

/* After the run has ended, readers wait until its log is complete, not until the stream pauses. */
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

/*
 * A log is complete only after its files were synced, so that a crash of the machine can't lose it.
 * It is incomplete if the sync fails.
 */
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

/* The run ends before the stream pauses. Then a pause of the stream does not end the wait. */
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

/*
 * Deliver TEXT on the stream RQ without writing any of it to disk. Return 0, or the error that ends
 * the stream.
 */
static int bytes_unwritten(struct http_request *rq, const char *text)
{
	int err = rq->call.bytes(rq->call.data, text, strlen(text));

	while (fake_step(&fake.posted))
		;
	return err;
}

/* Return a line of LINE bytes. malloc'ed. */
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
 * Follow two logs. Set *RET_OTHER to the stream of the second log. Return the stream of the first
 * one, which prints a lot.
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

/* While the disk hangs, kxfs pauses the stream of a log that prints a lot, but no other stream. */
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

/*
 * The disk hangs, and kxfs can't pause any more streams. It closes the stream of a log that prints
 * a lot, and later opens it again on a connection of its own.
 */
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
	assert_int_equal(fake.n_sent, 2); /* kxfs does not request data that it can't write */
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
 * The disk refuses all writes. kxfs retries after growing pauses. It requests again the output that
 * it could not write, and reports the problem once.
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

/*
 * The run ends while the disk refuses writes. kxfs retries immediately. A reader that opens the log
 * waits, but only for a limited time.
 */
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

/*
 * The pod is being deleted, so unwritten output will soon be lost. kxfs retries the write each
 * second.
 */
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
 * The disk accepts a line but not its timestamp. Then neither counts as written. When the server
 * later returns this line without the ones before it, kxfs recognizes it by its timestamp.
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
	/* The kubelet has removed the first line by log rotation. */
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

/*
 * All lines were received, but the disk refused them, and now the pod is gone. The log is
 * incomplete.
 */
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
 * The disk refuses all output, and later the kubelet reports that it has no such run. kxfs must not
 * conclude that the log is empty.
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

/* --- which run a stream belongs to --- */

/*
 * Follow a log of a container that the kubelet may restart, and has restarted RESTART times. The
 * stream starts with TEXT.
 */
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
 * The stream belongs to the next run. The lines of this run are in the previous log, which counts
 * as complete. But it counts only if it still is this run's log after kxfs has read it.
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

/* The event of the next run arrives before the reply. */
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

/* --- whether the container was restarted --- */

/* Deliver two lines of a run, then break its stream. */
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
 * The container was restarted, but no event has shown that. kxfs requests the previous log. Unless
 * the reply is that there is none, it does not prove that the newest stream belongs to this run. A
 * wrong guess would lose later lines, or mix lines of another run into this log.
 */
static void test_run_before(void **state)
{
	static const char *const texts[] = {
		"unable to retrieve container logs for containerd://0123456789abcdef",
		T("01") "one\n", /* this log ends too early */
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

/*
 * The pod's status shows that the run has ended. But the status is outdated: the container was
 * already restarted.
 */
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
 * The previous log exists, but lacks the known lines. Either the container was restarted twice, or
 * the kubelet has removed the known lines by log rotation. kxfs decides by the restart count, and
 * takes no lines of another run.
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
 * There is no previous log, so the kubelet must have removed the known lines by log rotation. kxfs
 * accepts newer lines. After a refusal it asks the server again, because the container may have
 * been restarted meanwhile.
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
			/*
			 * The owner is notified of the gap, and the next kxfs process reads it from
			 * disk.
			 */
			assert_int_equal(rig.told, 1);
			holds("one\ntwo\nfour\n");
			assert_int_equal(gaps(), 1);
			assert_int_equal(gaps_on_disk(), 1);
		} else {
			/* This pod is gone, and another pod has its name. */
			assert_true(is_done());
			assert_int_equal(result(), -ENOENT);
			holds("one\ntwo\n");
		}
	}
}

/*
 * The run has ended, and the kubelet has none of the known lines and nothing newer. Some lines may
 * be lost. kxfs counts that gap once, even if an earlier kxfs process already counted it along with
 * others.
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
		cmocka_unit_test_setup_teardown(test_outlived_unread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outlived_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_denied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_in_the_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_for_good, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_going, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_running, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deleted_before_any_event, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_before_watch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_unproven, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_of_reruns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_after_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_first, setup, teardown),
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
