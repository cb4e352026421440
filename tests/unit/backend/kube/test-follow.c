/* SPDX-License-Identifier: MIT */
/*
 * Following one log: its start, its end, failing disks, and which run of the container a stream
 * belongs to. Each row of `stories` is a test: what happens to a log, step by step, and how the log
 * is then. Time and the disk do only what a step says (fake_net.h).
 *
 * The first step can be "reader": kxfs follows the log only for a reader. Or "reruns=N": the
 * kubelet may restart the container, and has restarted it N times.
 *
 * A request is under way, which must be the only one for the log:
 *
 *	stream		it follows the log
 *	rest		it asks for the existing output
 *	previous	it asks for the log of the previous run
 *	wait		time passes until there is a request
 *	none		kxfs has sent no request, of any kind
 *
 * Its reply, from the server or the kubelet:
 *
 *	open		the reply begins, without output
 *	one, on, ...	output arrives (see `outputs`). If it can't belong to this log, kxfs ends
 *			the request
 *	end		the reply ends normally
 *	still		it has not ended, and kxfs has not ended the request
 *	break		the connection breaks
 *	unreachable	no connection can be opened
 *	500, ...	this HTTP status, without output
 *	no-pod		404: the pod is gone
 *	pod=N, pod=other	kxfs has asked for the pod, too: its container was restarted N
 *			times, or another pod has its name
 *
 * The events of the run and of its job, and the rest:
 *
 *	ended		the run has ended
 *	again		the run has ended, and the container runs again
 *	gone		the pod is gone
 *	leaving		the pod is being deleted
 *	job-over, job-runs	the job has finished; it is running after all
 *	away, back	no request can reach the server; they can again
 *	opened		a reader opens the log
 *	20ms, 3s	time passes
 *	disk=N, disk=ok	the disk refuses to write more than N bytes to any file; it accepts all
 *	sync=fails, sync=ok	the disk can't sync files; it can
 *	log=one,two	the log has exactly this output
 *	arrived=N	N readers were told that the existing output has arrived
 *	waits		readers see that output is missing now
 *	N*{ ... }	these steps, N times
 */
#include <ctype.h>
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
#include "spec/base/mem.h"

#define T(second) "2026-11-21T09:08:" second ".000000000Z "
#define WHICH_RUN "/pods?fieldSelector=metadata.name%3Dpod"
/* The reply to the request for the pod: its uid, and how often its container was restarted. */
#define POD                                                                                        \
	"{\"items\":[{\"metadata\":{\"uid\":\"%s\"},\"status\":{\"containerStatuses\":[{"          \
	"\"name\":\"main\",\"restartCount\":%s,\"state\":{\"running\":{}}}]}}]}"
#define NO_POD                                                                                     \
	"{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"message\":\"pods "            \
	"\\\"pod\\\" not found\",\"details\":{\"name\":\"pod\",\"kind\":\"pods\"}}"

struct story {
	const char *name, *steps;
	const char *end; /* the state and the contents of the log (state_of) */
};

static const struct {
	const char *name, *text;
} outputs[] = {
	{"one", T("01") "one\n"},
	{"on", T("01") "on"},
	{"two", T("02") "two\n"},
	{"three", T("03") "three\n"},
	{"four", T("04") "four\n"},
	{"five", T("05") "five\n"},
	/* Two of the kubelet's messages. */
	{"unreadable", "failed to read log file: input/output error"},
	{"unable", "unable to retrieve container logs for containerd://0123456789abcdef"},
};

static struct {
	char dir[64];
	struct output *spool;
	struct output_job *job;
	struct follow_context context;
	struct follow *f;
	bool opened; /* the reply to the request that the steps are about has begun */
	bool job_over;
	unsigned settled;
	unsigned told; /* number of calls of `changed` */
	/* When kxfs first asks which run the stream belongs to, the server answers: this one. */
	bool trusted;
	const char *at; /* the steps, from the current one on */
} rig;

static unsigned n_synced;
static bool sync_fails;

int fdatasync(int fd)
{
	n_synced++;
	errno = EIO;
	return sync_fails ? -1 : (int)syscall(SYS_fdatasync, fd);
}

static void answer_which_run(const char *uid, const char *restarts)
{
	cleanup_free char *body = text_print(POD, uid, restarts);

	assert_non_null(fake_find(WHICH_RUN));
	fake_answer(fake_find(WHICH_RUN), 200, body);
	fake_run();
}

/* Run all posted calls, and all work of the pool. */
static void run(void)
{
	fake_run();
	if (!rig.trusted || !fake_find(WHICH_RUN))
		return;
	rig.trusted = false;
	answer_which_run("uid-1", "0");
}

static void on_arrived(void *data)
{
	rig.settled++;
}

static void on_changed(void *data)
{
	rig.told++;
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

/* Follow a log. A reader waits for its existing output. */
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

/* --- what is seen of the log --- */

/* Return its contents, with a comma after each line. malloc'ed. */
static char *contents(void)
{
	cleanup_free char *path = text_print("%s/output/job/logs/log", rig.dir);
	cleanup_file FILE *f = fopen(path, "r");
	char got[4096];
	size_t n;

	run();
	assert_non_null(f);
	n = fread(got, 1, sizeof(got) - 1, f);
	got[n] = '\0';
	for (char *p = got; *p; p++)
		*p = *p == '\n' ? ',' : *p;
	if (n > 0 && got[n - 1] == ',')
		got[n - 1] = '\0';
	return strdup(got);
}

static bool is_denied(void)
{
	struct log *log cleanup_log = NULL;

	assert_int_equal(output_log(rig.spool, "job", "log", LOG_PLAIN, &log), 0);
	return log_is_denied(log);
}

/* Return its state, the number of gaps in its output, and its contents. malloc'ed. */
static char *state_of(void)
{
	const struct follow_state s = follow_state(rig.f);
	cleanup_free char *text = contents();
	cleanup_free char *gaps = text_print(s.gaps == 1 ? ", %u gap" : ", %u gaps", s.gaps);

	return text_print("%s%s%s%s: %s",
			  !s.over      ? s.waiting ? "waits" : "goes on"
			  : s.complete ? "complete"
				       : "lost",
			  rig.job_over && s.outlived ? ", outlived" : "", s.gaps ? gaps : "",
			  is_denied() ? ", denied" : "", text);
}

/* Assert that the log is as WANT says, which may lack the contents. */
static void expect(const char *want)
{
	cleanup_free char *state = state_of();

	if (!strchr(want, ':'))
		*strchr(state, ':') = '\0';
	assert_string_equal(state, want);
}

/* --- steps --- */

static void failed_at(const char *what)
{
	fail_msg("%s, at \"%s\"", what, rig.at);
}

/*
 * Return the request that find_request has found. It must still be under way. OPENS: its reply
 * begins, unless it has begun.
 */
static struct http_request *reply(bool opens)
{
	struct http_request *rq = fake_find("/log?");

	if (!rq || rq->call.deadline_ms)
		failed_at("kxfs has ended the request");
	if (opens && !rig.opened)
		rq->call.head(rq->call.data, 200);
	rig.opened = rig.opened || opens;
	return rq;
}

static void find_request(const char *kind)
{
	struct http_request *rq = fake_find("/log?");
	const char *is = !rq				     ? "none"
			 : strstr(rq->path, "follow=true")   ? "stream"
			 : strstr(rq->path, "previous=true") ? "previous"
							     : "rest";

	if (!streq(is, kind))
		failed_at(is);
	rq->call.deadline_ms = 0; /* a mark; each new request has a deadline */
	rig.opened = false;
}

/* Deliver TEXT. If kxfs doesn't want it, the request ends. */
static void deliver(const char *text)
{
	struct http_request *rq = reply(true);
	int err = rq->call.bytes(rq->call.data, text, strlen(text));

	if (err < 0)
		fake_end(rq, &(struct http_reply){.status = 200, .err = err});
}

static bool deliver_output(const char *name)
{
	for (size_t i = 0; i < array_size(outputs); i++) {
		if (streq(outputs[i].name, name)) {
			deliver(outputs[i].text);
			return true;
		}
	}
	return false;
}

/* A number: of an HTTP status, or of the time that passes. */
static void take_number(const char *step)
{
	char *unit;
	unsigned long n = strtoul(step, &unit, 10);

	if (streq(unit, "ms"))
		fake_pass(n);
	else if (streq(unit, "s"))
		fake_pass(n * 1000);
	else if (!*unit)
		fake_answer(reply(false), (int)n, "{}");
	else
		failed_at("no such step");
}

/* One more reader waits, if the others wait no longer. */
static void wait_again(void)
{
	if (rig.settled)
		follow_wait(rig.f, on_arrived, NULL);
}

static void run_ends(enum run_end how)
{
	follow_ended(rig.f, how);
	wait_again();
}

static void job_ends(bool over)
{
	rig.job_over = over;
	follow_job_ended(rig.f, over, true);
	wait_again();
}

/* A step NAME=VALUE. */
static void set(const char *name, const char *value)
{
	cleanup_free char *text = NULL;

	if (streq(name, "pod"))
		answer_which_run(streq(value, "other") ? "uid-2" : "uid-1",
				 streq(value, "other") ? "0" : value);
	else if (streq(name, "disk"))
		disk_takes(streq(value, "ok") ? RLIM_INFINITY : strtoul(value, NULL, 10));
	else if (streq(name, "sync"))
		sync_fails = streq(value, "fails");
	else if (streq(name, "arrived"))
		assert_int_equal(rig.settled, strtoul(value, NULL, 10));
	else if (streq(name, "log"))
		assert_string_equal(text = contents(), value);
	else
		failed_at("no such step");
}

static void wait_for_request(void)
{
	while (!fake.requests)
		assert_true(fake_wait(60000));
}

static void take_step(const char *step)
{
	char name[16] = "";
	int n = 0;

	if (sscanf(step, "%15[a-z]=%n", name, &n) == 1 && n > 0)
		set(name, step + n);
	else if (isdigit((unsigned char)*step))
		take_number(step);
	else if (streq(step, "stream") || streq(step, "rest") || streq(step, "previous"))
		find_request(step);
	else if (streq(step, "wait"))
		wait_for_request();
	else if (streq(step, "none"))
		assert_null(fake.requests);
	else if (streq(step, "open") || streq(step, "still"))
		(void)reply(streq(step, "open"));
	else if (streq(step, "end"))
		fake_end(reply(true), &(struct http_reply){.status = 200});
	else if (streq(step, "break"))
		fake_break(reply(false), -EIO, true);
	else if (streq(step, "unreachable"))
		fake_break(reply(false), -EHOSTUNREACH, false);
	else if (streq(step, "no-pod"))
		fake_answer(reply(false), 404, NO_POD);
	else if (streq(step, "ended"))
		run_ends(RUN_LAST);
	else if (streq(step, "again"))
		run_ends(RUN_PREVIOUS);
	else if (streq(step, "gone"))
		run_ends(RUN_GONE);
	else if (streq(step, "leaving"))
		follow_leaving(rig.f);
	else if (streq(step, "job-over") || streq(step, "job-runs"))
		job_ends(streq(step, "job-over"));
	else if (streq(step, "away") || streq(step, "back"))
		rig.context.away = streq(step, "away");
	else if (streq(step, "opened"))
		follow_resume(rig.f, true);
	else if (streq(step, "waits"))
		assert_true(follow_state(rig.f).waiting);
	else if (!deliver_output(step))
		failed_at("no such step");
	run();
}

/* Take STEPS, up to the closing brace if there is one. Return where they end. */
static const char *play(const char *steps)
{
	for (;;) {
		char step[32];
		unsigned times;
		int n = 0;
		const char *from = steps += strspn(steps, " ");

		rig.at = steps;
		if (!*steps || *steps == '}')
			return steps + (*steps == '}');
		assert_int_equal(sscanf(steps, "%31s%n", step, &n), 1);
		steps += n;
		n = 0;
		if (sscanf(step, "%u*{%n", &times, &n) == 1 && n > 0)
			for (from = steps; times-- > 0;)
				steps = play(from);
		else
			take_step(step);
	}
}

/* --- the stories --- */

static struct story stories[] = {
	/* The run has ended, and its pod is being deleted or is gone. kxfs can't ask later. */
	{"output that still arrives after the end is awaited",
	 "stream one leaving ended 4*{ 200ms two } gone 4*{ 15s three } end",
	 "complete: one,two,two,two,two,three,three,three,three"},
	{"a stream that is silent after the end is closed, and what may be missing is fetched",
	 "stream one ended 3s two 3s still 6s rest one two three end", "complete: one,two,three"},
	{"a stream that never ends is closed after ten minutes, even if it delivers more and more",
	 "stream open gone 60*{ two 10s } none", "lost, 1 gap"},

	/* The job has finished, but its pod continues to run. */
	{"a minute after its job, a log ends with its existing output",
	 "stream one job-over 50s two 20s rest one two end", "complete, outlived: one,two"},
	{"the job of such a log runs again, and ends again",
	 "stream one job-over 50s two 20s rest one two end job-runs job-over",
	 "complete, outlived: one,two"},
	{"a log does not end a minute after its job if the pod is being deleted",
	 "stream one job-over leaving 50s two 20s still", "goes on: one,two"},
	{"a log does not end a minute after its job if the job is running after all",
	 "stream one job-over 50s two job-runs 20s still", "goes on: one,two"},
	{"a minute after its job, a log is refused, but does not end before it was fetched",
	 "stream one job-over break 4*{ wait stream 500 } 63s wait rest one two end",
	 "complete, outlived: one,two"},
	{"the stream ends just before the minute is over",
	 "stream one job-over 59999ms end 8s rest one two end", "complete, outlived: one,two"},
	{"after a minute, the existing output still arrives",
	 "reader rest one job-over 55s two 8s rest one two end", "complete, outlived: one,two"},
	{"a log that was once known to be complete is fetched again after the minute",
	 "stream one 3s end stream one end job-over 4*{ wait stream 500 } 63s "
	 "wait rest one two end",
	 "complete, outlived: one,two"},
	{"after a minute, the disk refuses the output once",
	 "stream one job-over 63s rest sync=fails one two end waits sync=ok wait rest one two end",
	 "complete, outlived: one,two"},
	/* It prints more before it ends. */
	{"the run ends while its output is fetched after a minute",
	 "stream one job-over 61s rest one ended end wait rest one two end", "complete: one,two"},

	/* Refusals. */
	{"after twelve refusals, kxfs stops for now",
	 "stream one break ended "
	 "3*{ wait rest 403 wait rest 500 wait rest 429 wait rest unreachable } none",
	 "waits: one"},
	/* But refusals do not count while each request delivers something new. */
	{"after that, one more refusal is enough",
	 "stream one break ended 12*{ wait rest 500 } wait rest one two break "
	 "wait rest one two three break wait rest 500 none",
	 "waits: one,two,three"},
	{"kxfs asks again when a reader opens the log, and when the pod is being deleted",
	 "stream one break ended 12*{ wait rest 500 } none opened rest 500 none "
	 "leaving rest one two end",
	 "complete: one,two"},
	{"a pod is gone after too many refusals",
	 "stream one break ended 12*{ wait rest 500 } none gone 10ms none", "lost, 1 gap: one"},
	{"a pod is gone while kxfs asks again",
	 "stream one break ended 12*{ wait rest 500 } wait rest gone 500", "lost, 1 gap: one"},
	{"after too many refusals, a container runs again, and then once more",
	 "stream one break ended 12*{ wait rest 500 } again previous 500 gone 10ms none",
	 "lost, 1 gap: one"},
	{"a pod is gone while the server is away",
	 "stream one break ended away 12*{ wait rest unreachable } none gone 10ms none",
	 "lost, 1 gap: one"},
	{"a run that printed nothing has a complete log", "stream 400 ended 3*{ wait rest 400 }",
	 "complete: "},
	{"a rest that the node can't read now is asked for again",
	 "stream one break ended wait rest one two unreadable end log=one,two 8s "
	 "rest one two three end",
	 "complete: one,two,three"},
	{"the kubelet need not have the log of the run before the current one",
	 "stream one break again 3*{ wait previous 400 }", "lost, 1 gap: one"},
	{"the kubelet should have the log of the last run",
	 "stream one break ended 12*{ wait rest 400 }", "waits: one"},
	{"the open of a log that the user may not read fails", "reader rest 403 arrived=1",
	 "goes on, denied: "},
	{"this ends when the user gets the right, even if nothing is printed",
	 "reader rest 403 wait stream open", "goes on: "},
	{"this ends when the pod is gone", "reader rest 403 wait stream 403 gone 60s",
	 "lost, 1 gap: "},
	{"an error of the server is no denial", "reader rest 500 arrived=1", "goes on: "},
	{"what was captured before can be opened", "stream one break ended wait rest 403",
	 "goes on: one"},

	/*
	 * Is the output complete? The end of a container closes its stream. But streams end for
	 * many reasons.
	 */
	{"a pod is gone after its stream ended while it was being deleted",
	 "stream one leaving end gone 100ms", "complete: one"},
	{"a pod is gone after its stream ended for whatever reason", "stream one end gone 100ms",
	 "lost, 1 gap: one"},
	/* The kubelet would keep the second stream of a running container open. */
	{"a pod is gone after the kubelet closed two streams",
	 "stream one 3s end stream one 20ms end gone 100ms", "complete: one"},
	{"the reply that the pod is gone arrives before the watch event",
	 "stream one 3s end stream one 20ms end ended 10ms rest no-pod", "complete: one"},
	{"a kubelet that closes all streams early proves nothing",
	 "stream one 100ms end gone 100ms", "lost, 1 gap: one"},
	{"the kubelet kept the second stream open",
	 "stream one 3s end stream one 3s end gone 100ms", "lost, 1 gap: one"},
	{"the second stream broke", "stream one 3s end stream break gone 100ms",
	 "lost, 1 gap: one"},
	{"the kubelet was just restarted", "stream one 3s end stream 404 gone 100ms",
	 "lost, 1 gap: one"},
	{"the container continued to run, and the second stream broke",
	 "stream one 3s end stream open 3s break gone 100ms", "lost, 1 gap: one"},
	{"the container continued to run, as the third stream shows",
	 "stream one 3s end stream one 20ms end 2s stream open 2s break gone 100ms",
	 "lost, 1 gap: one"},
	{"the last stream was long ago",
	 "stream one 3s end stream one 20ms end 5*{ wait stream 500 } gone 100ms",
	 "lost, 1 gap: one"},
	{"the next stream may belong to the next run",
	 "reruns=0 stream one pod=0 3s end none gone 100ms", "lost, 1 gap: one"},
	/* A request for a reader returned only the output that existed at that time. */
	{"the pod is gone after a request for a reader",
	 "reader leaving rest one end arrived=1 stream open break gone 100ms", "lost, 1 gap: one"},
	{"the pod is gone during a request for a reader", "reader rest one gone end 100ms",
	 "lost, 1 gap: one"},

	/* Readers wait for the existing output. */
	{"the existing output has arrived when it is on disk, whatever happens to the stream",
	 "reader rest 20s arrived=0 one 20s arrived=0 end arrived=1 log=one stream 5s arrived=1",
	 "goes on: one"},
	{"readers of existing output that can't be read are answered",
	 "reader rest 500 arrived=1 2s stream", "goes on: "},
	{"without a separate request, the first pause of the stream is the end of existing output",
	 "1s stream open 3*{ one 100ms arrived=0 } 300ms arrived=1", "goes on: one,one,one"},
	{"a stream without a pause ends the wait, too",
	 "stream open 15*{ one 100ms } arrived=0 15*{ 50ms one 50ms } arrived=1", "goes on"},
	{"after the end of the run, readers wait for the whole log",
	 "stream one 300ms arrived=1 ended 1s two 1s end arrived=1 rest one two end arrived=2",
	 "complete: one,two"},
	{"but only for eight seconds, and whatever happens to the pod",
	 "stream one 300ms arrived=1 ended 4s two 3900ms arrived=1 leaving 100ms arrived=2",
	 "goes on: one,two"},
	{"after the end of the job, readers wait a second for the end of the run",
	 "stream one 300ms arrived=1 job-over 900ms arrived=1 200ms arrived=2", "goes on: one"},
	{"if the run ends in that second, they wait for the whole log",
	 "stream one 300ms arrived=1 job-over 900ms ended 3s arrived=1 end rest one end arrived=3",
	 "complete: one"},
	{"a run that ends before its stream has paused makes readers wait, but not for refusals",
	 "stream one ended 3s arrived=0 end rest 500 arrived=1", "goes on: one"},

	/* The disk refuses writes. kxfs asks again for what it could not write. */
	{"a run ends while the disk fails",
	 "stream one 1s arrived=1 disk=4 two none ended 0ms rest one two none arrived=1 "
	 "disk=ok 2500ms arrived=1 waits rest one two end arrived=2",
	 "complete: one,two"},
	{"readers do not wait forever for a disk that fails",
	 "stream one 1s arrived=1 disk=4 two none ended 0ms rest one two none arrived=1 "
	 "6300ms rest one two none arrived=1 3*{ 6300ms rest one two none arrived=2 } "
	 "disk=ok 6300ms rest one two end",
	 "complete: one,two"},
	{"while a pod is being deleted, a failed write is retried each second",
	 "stream one leaving disk=4 6*{ two none 1300ms stream one } disk=ok two",
	 "goes on: one,two"},
	/* By its timestamp, kxfs later recognizes a line without the ones before it. */
	{"a line whose timestamp the disk refused counts as unwritten",
	 "stream one disk=26 two none disk=ok 10s stream one two break 10s "
	 "stream ended two three end rest two three end",
	 "complete: one,two,three"},
	{"the kubelet reports no run, but the disk has refused its output",
	 "stream disk=0 one ended disk=ok 12*{ wait rest 400 }", "waits: "},

	/* The container was restarted: the stream may be of the next run. */
	{"the previous log is this run's, and complete",
	 "reruns=1 stream four 1s log= arrived=0 pod=2 previous one two end log= pod=2",
	 "complete: one,two"},
	{"the previous log is no longer this run's when kxfs has read it",
	 "reruns=1 stream four 1s pod=2 previous one two end pod=3", "lost, 1 gap: "},
	{"the event of the next run arrives before the reply",
	 "reruns=0 stream four 1s again 100ms previous one end pod=1", "complete: one"},
	/*
	 * No event has shown it. Unless the kubelet says that there is no previous log, a previous
	 * log that can't be read or is too short does not prove that the stream is this run's.
	 */
	{"the previous log can't be read at first",
	 "stream one two break 3*{ wait stream four previous unable end log=one,two } "
	 "wait stream four previous one two three end",
	 "complete: one,two,three"},
	{"the job ends after the previous log has shown the end of the run",
	 "stream one two break wait stream four previous one two three end job-over",
	 "complete: one,two,three"},
	{"the previous log is too short at first",
	 "stream one two break 3*{ wait stream four previous one end log=one,two } "
	 "wait stream four previous one two three end",
	 "complete: one,two,three"},
	{"the previous log ends within a line at first",
	 "stream one two break 3*{ wait stream four previous on end log=one,two } "
	 "wait stream four previous one two three end",
	 "complete: one,two,three"},
	{"the pod's status shows that the run has ended, but is outdated",
	 "reruns=0 stream one two pod=0 break wait stream ended four previous one two three end",
	 "complete: one,two,three"},
	/* The previous log lacks the known lines. The restart count decides. */
	{"the container was restarted once, and the known lines were rotated away",
	 "stream one two break wait stream five previous four stream five end pod=1 previous three "
	 "log=one,two previous three end pod=1",
	 "complete, 1 gap: one,two,three"},
	{"the container was restarted twice",
	 "stream one two break wait stream five previous four stream five end pod=2",
	 "lost, 1 gap: one,two"},
	/*
	 * There is no previous log, so the known lines were rotated away. But after a refusal the
	 * container may have been restarted.
	 */
	{"another pod has the name",
	 "stream one two break wait stream four previous 400 stream 500 "
	 "wait stream four previous 400 stream four log=one,two pod=other",
	 "lost, 1 gap: one,two"},
};

static void test_story(void **state)
{
	const struct story *story = *state;
	struct follow_run run = {.first = strncmp(story->steps, "reader ", 7) == 0};

	run.reruns = sscanf(story->steps, "reruns=%u ", &run.restart) == 1;
	begin(run);
	play(run.first || run.reruns ? strchr(story->steps, ' ') : story->steps);
	expect(story->end);
}

/* The merged log is denied only while no part of it can be read. */
static void test_denied_merged(void **state)
{
	struct log *merged cleanup_log = NULL;

	begin((struct follow_run){.first = true});
	assert_int_equal(output_log_begin(rig.job, "other", "a/1 ", false), 0);
	assert_int_equal(output_log(rig.spool, "job", NULL, LOG_PLAIN, &merged), 0);
	output_log_deny(rig.job, "other", true);
	assert_false(log_is_denied(merged));
	play("rest 403");
	assert_true(log_is_denied(merged));
	output_log_deny(rig.job, "other", false);
	assert_false(log_is_denied(merged));
}

/* --- kxfs's own messages --- */

/* Assert that kxfs has logged WHAT, and no warning, since the last call. */
static void says(const char *what)
{
	static size_t before;
	size_t len;
	cleanup_free char *all = diag_text(&len);
	const char *text = all + min_of(before, len);

	before = len;
	assert_null(strstr(text, " warning "));
	if (!strstr(text, what))
		fail_msg("\"%s\" was not said: %s", what, text);
}

/* A refusal while the pod is being deleted is no reason to warn if the log turns out complete. */
static void test_refused_and_complete(void **state)
{
	begin((struct follow_run){0});
	says("");
	play("stream one leaving ended end rest 500");
	says("; kxfs retries\n");
	play("gone 100ms");
	expect("complete: one");
	says("output of pod, container main: is complete\n");
}

/* The end of each refusal is reported. */
static void test_refused_and_mended(void **state)
{
	begin((struct follow_run){0});
	says("");
	for (int i = 0; i < 2; i++) {
		play("3*{ stream 500 60s }");
		says("; kxfs retries\n");
		play(i ? "stream one two" : "stream one");
		says("output of pod, container main: continues\n");
		play("break 60s");
	}
}

/* --- the disk --- */

/* A log is complete only after its files were synced, so that a crash can't lose it. */
static void test_synced(void **state)
{
	begin((struct follow_run){0});
	play("stream one 300ms");
	assert_int_equal(n_synced, 0);
	play("ended end sync=fails rest one end");
	assert_true(n_synced > 0);
	assert_int_equal(follow_state(rig.f).disk, -EIO);
	n_synced = 0;
	play("sync=ok 2500ms rest one end");
	expect("complete: one");
	assert_true(n_synced > 0);
}

/*
 * While the disk refuses all writes, kxfs retries after growing pauses. It requests again the
 * output that it could not write, and reports the problem once.
 */
static void test_bad_disk(void **state)
{
	static const unsigned pauses[] = {1000, 2000, 4000, 8000, 10000, 10000};
	cleanup_free char *said = NULL;
	size_t len;

	begin((struct follow_run){0});
	play("stream one disk=4");
	for (size_t i = 0; i < array_size(pauses); i++) {
		play("two none waits");
		fake_pass(pauses[i] / 2);
		play("none");
		fake_pass(pauses[i]);
		play("stream one waits");
	}
	play("disk=ok two");
	expect("goes on: one,two");
	said = diag_text(&len);
	assert_non_null(strstr(said, "File too large; kxfs retries"));
	assert_null(strstr(strstr(said, "main: File too large") + 1, "main: File too large"));
}

/* Deliver TEXT to RQ without writing it to disk. Return 0, or the error that ends the stream. */
static int deliver_unwritten(struct http_request *rq, const char *text)
{
	int err = rq->call.bytes(rq->call.data, text, strlen(text));

	while (fake_step(&fake.posted))
		;
	return err;
}

/* All lines were received, but the disk refused them, and now the pod is gone. */
static void test_bad_disk_and_gone(void **state)
{
	begin((struct follow_run){0});
	play("stream open ended disk=0");
	assert_int_equal(deliver_unwritten(reply(true), T("01") "one\n"), 0);
	play("end gone 100ms disk=ok 10s");
	expect("lost, 1 gap: ");
}

/*
 * The disk hangs, and kxfs can't pause streams. It closes the stream of a log that prints a lot,
 * but no other, and later opens it again on a connection of its own.
 */
static void test_slow_disk_for_many(void **state)
{
	cleanup_free char *line = mem_zero((1u << 20) + 1);
	cleanup_free char *said = NULL;
	struct http_request *rq, *other;
	struct follow *first;
	struct log_stat st = {0};
	size_t len, lines = 0;

	memset(line, 'x', 1u << 20);
	memcpy(line, T("01"), strlen(T("01")));
	line[(1u << 20) - 1] = '\n';
	fake.never_pauses = true;
	begin((struct follow_run){0});
	first = rig.f;
	play("stream open");
	rq = reply(true);
	begin((struct follow_run){.key = "other"});
	other = rq->next;
	other->call.head(other->call.data, 200);
	run();
	while (deliver_unwritten(rq, line) == 0)
		assert_true(++lines < 1000);
	assert_in_range(lines, 16, 64);
	fake_end(rq, &(struct http_reply){.err = -ENOBUFS});
	said = diag_text(&len);
	assert_non_null(strstr(said, "output of pod, container main: the disk is too slow"));
	assert_int_equal(deliver_unwritten(other, T("02") "two\n"), 0);
	assert_null(other->next); /* kxfs does not request data that it can't write */
	run();
	rq = other->next;
	assert_true(rq->call.alone);
	rq->call.head(rq->call.data, 200);
	for (size_t i = 0; i < lines; i++)
		assert_int_equal(rq->call.bytes(rq->call.data, line, 1u << 20), 0);
	assert_int_equal(rq->call.bytes(rq->call.data, T("04") "end\n", strlen(T("04") "end\n")),
			 0);
	run();
	assert_int_equal(output_log_stat(rig.spool, "job", "log", LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, lines * ((1u << 20) - strlen(T("01"))) + strlen("end\n"));
	assert_int_equal(follow_state(first).gaps, 0);
	follow_free(first);
}

/* --- rotated logs --- */

/* The owner is notified of a gap, and the next kxfs process reads it from disk. */
static void test_rotated(void **state)
{
	cleanup_free char *path = text_print("%s/output/job/lines/log.gaps", rig.dir);
	struct stat st;

	begin((struct follow_run){0});
	play("stream one two break wait stream four previous 400 stream four log=one,two");
	rig.told = 0;
	play("pod=0");
	assert_int_equal(rig.told, 1);
	expect("goes on, 1 gap: one,two,four");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, sizeof(uint64_t));
}

/*
 * The run has ended, and the kubelet has none of the known lines and nothing newer. Some lines may
 * be lost. kxfs counts that gap once, even if an earlier kxfs process already counted it along with
 * others.
 */
static void test_rotated_away(void **state)
{
	static const struct {
		struct follow_run before;
		const char *end;
	} rows[] = {
		{{0}, "lost, 1 gap: one"},
		{{.gaps = 1, .lost_end = true}, "lost, 1 gap: one"},
		{{.gaps = 3, .missed = 2, .lost_end = true}, "lost, 3 gaps: one"},
		{{.gaps = 2, .missed = 2}, "lost, 3 gaps: one"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		if (i > 0) {
			teardown(state);
			setup(state);
		}
		begin(rows[i].before);
		play("stream one break ended");
		while (!follow_state(rig.f).over) {
			wait_for_request();
			if (fake_find(WHICH_RUN))
				answer_which_run("uid-1", "0");
			else
				fake_answer(fake_find("/log?"), 200, "");
			run();
		}
		expect(rows[i].end);
		assert_true(follow_state(rig.f).lost_end);
	}
}

int main(void)
{
#define FOLLOW_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	static const struct CMUnitTest tests[] = {
		FOLLOW_TEST(test_denied_merged),      FOLLOW_TEST(test_refused_and_complete),
		FOLLOW_TEST(test_refused_and_mended), FOLLOW_TEST(test_synced),
		FOLLOW_TEST(test_bad_disk),	      FOLLOW_TEST(test_bad_disk_and_gone),
		FOLLOW_TEST(test_slow_disk_for_many), FOLLOW_TEST(test_rotated),
		FOLLOW_TEST(test_rotated_away),
	};
	struct CMUnitTest told[array_size(stories)];
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	for (size_t i = 0; i < array_size(stories); i++)
		told[i] = (struct CMUnitTest){stories[i].name, test_story, setup, teardown,
					      &stories[i]};
	return failed + cmocka_run_group_tests(told, NULL, NULL);
}
