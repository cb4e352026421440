/* SPDX-License-Identifier: MIT */
/*
 * podlog, which reads one log once: what it requests, what it passes to its owner, and how it
 * interprets each reply. The test answers the requests (fake_net.h).
 */
#include <stdio.h>

#include "tests/unit/backend/client/fake_net.h"

#include "backend/client/podlog.h"

#define T(second) "2026-11-21T09:08:" second ".000000000Z "
#define ONE	  T("40") "one\n"
#define TWO	  T("41") "two\n"
#define STARTED	  INT64_C(1795252120000000000) /* 2026-11-21T09:08:40Z */
#define WHICH_POD "/api/v1/namespaces/ns/pods?fieldSelector=metadata.name%3Dpod"
#define RUNNING	  "{\"running\":{}}"
/* A pod with the uid UID, whose container was restarted RESTARTS times and is in STATE. */
#define POD(uid, restarts, state)                                                                  \
	"{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"pod\",\"uid\":\"" uid          \
	"\"},\"status\":{\"containerStatuses\":[{\"name\":\"other\",\"restartCount\":9},"          \
	"{\"name\":\"main\",\"restartCount\":" restarts ",\"state\":" state                        \
	",\"lastState\":{\"terminated\":{}}}]}}]}"
#define THIS_POD  POD("uid-1", "0", RUNNING)
#define OTHER_POD POD("uid-2", "0", RUNNING)
#define LAST_LINE "&timestamps=true&tailLines=1&limitBytes=64"

static struct {
	struct podlog *p;
	struct spec_logline_past past;
	char got[4096];
	size_t n;
	int64_t ns;
	unsigned begun, pauses, gaps, done;
	int refuse;    /* what the callback for output returns */
	bool dropping; /* output is discarded */
	struct podlog_result result;
	char text[256];
} rig;

static void on_begun(void *data)
{
	assert_int_equal(rig.n, 0);
	rig.begun++;
}

static int on_bytes(void *data, int64_t ns, const char *bytes, size_t n)
{
	if (rig.dropping)
		return 0;
	assert_true(rig.n + n < sizeof(rig.got));
	if (rig.refuse)
		return rig.refuse;
	memcpy(rig.got + rig.n, bytes, n);
	rig.n += n;
	rig.ns = ns;
	return 0;
}

static void on_paused(void *data)
{
	rig.pauses++;
}

static void on_gap(void *data)
{
	rig.gaps++;
}

static void on_done(void *data, const struct podlog_result *result)
{
	rig.p = NULL;
	rig.done++;
	rig.result = *result;
	snprintf(rig.text, sizeof(rig.text), "%s", result->text);
}

static int teardown(void **state)
{
	podlog_stop(take_ptr(rig.p));
	assert_null(fake.requests);
	assert_null(fake.timers);
	return 0;
}

/* Start a request in place of the previous one. */
static void begin(struct podlog_config config)
{
	teardown(NULL);
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	config.namespace = "ns";
	config.pod = config.pod ? config.pod : "pod";
	config.container = "main";
	config.past = &rig.past;
	config.uid = "uid-1";
	config.begun = on_begun;
	config.bytes = on_bytes;
	config.paused = on_paused;
	config.gap = on_gap;
	config.done = on_done;
	rig.p = podlog_start(&config);
	assert_non_null(rig.p);
	assert_int_equal(rig.done, 0);
}

/* Return what kxfs knows of a log that ends with TEXT. NS is the time of its first line. */
static struct spec_logline_known known(const char *text, int64_t ns, uint64_t from)
{
	struct spec_logline_known k = {
		.from = from,
		.size = from + strlen(text),
		.bytes = strdup(text),
		.lines = calloc(1, sizeof(*k.lines)),
		.n_lines = 1,
	};

	k.lines[0] = (struct spec_line){from, ns};
	return k;
}

/* The server accepts the request. */
static struct http_request *accept_stream(void)
{
	struct http_request *stream = fake.requests;

	stream->call.head(stream->call.data, 200);
	return stream;
}

static void comes(struct http_request *stream, const char *text)
{
	assert_int_equal(stream->call.bytes(stream->call.data, text, strlen(text)), 0);
}

static void holds(const char *text)
{
	rig.got[rig.n] = '\0';
	assert_string_equal(rig.got, text);
}

static void is_over(enum podlog_outcome outcome)
{
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.result.outcome, outcome);
	assert_int_equal(rig.result.more, rig.n > 0);
	assert_null(fake.requests);
}

static void test_path(void **state)
{
#define LOG(pod) "/api/v1/namespaces/ns/pods/" pod "/log?container=main&timestamps=true"
	begin((struct podlog_config){.follow = true});
	assert_string_equal(fake.requests->path, LOG("pod") "&follow=true");
	begin((struct podlog_config){.previous = true, .known = known("one\n", STARTED + 1, 100)});
	assert_string_equal(fake.requests->path,
			    LOG("pod") "&previous=true&sinceTime=2026-11-21T09:08:40Z");
	/* A pod name that contains "../" does not lead to another path. */
	begin((struct podlog_config){.pod = "../x?y"});
	assert_string_equal(fake.requests->path, LOG("..%2Fx%3Fy"));
}

/* Until podlog knows which run the stream belongs to, it buffers a limited number of bytes. */
static void test_held(void **state)
{
	struct http_request *stream;
	char bytes[4097] = "";

	for (size_t i = 0; i < sizeof(bytes) - 1; i++)
		bytes[i] = i % 64 == 63 ? '\n' : 'x';
	begin((struct podlog_config){.follow = true});
	stream = accept_stream();
	for (int i = 0; i < (256 << 10) / 4096; i++)
		comes(stream, bytes);
	assert_int_equal(stream->call.bytes(stream->call.data, bytes, 1), -EAGAIN);
}

static void test_all(void **state)
{
	struct http_request *stream;

	begin((struct podlog_config){.follow = true});
	assert_false(podlog_has_begun(rig.p));
	assert_true(podlog_is_unsure(rig.p));
	assert_false(podlog_is_asking(rig.p));
	assert_int_equal(rig.begun, 0);
	stream = accept_stream();
	assert_true(podlog_has_begun(rig.p));
	assert_true(podlog_is_asking(rig.p));
	assert_int_equal(rig.begun, 1);
	comes(stream, ONE);
	holds("");
	fake_answer(fake_find(WHICH_POD), 200, THIS_POD);
	assert_false(podlog_is_unsure(rig.p));
	holds("one\n");
	assert_int_equal(rig.ns, STARTED);
	assert_int_equal(rig.pauses, 1);
	comes(stream, TWO);
	holds("one\ntwo\n");
	assert_int_equal(podlog_came(rig.p), strlen(ONE TWO));
	fake.now += 3000;
	fake_end(stream, &(struct http_reply){.status = 200});
	is_over(PODLOG_ALL);
	assert_true(rig.result.begun);
	assert_int_equal(rig.result.open_ms, 3000);
}

/* --- outcomes --- */

static const char *const outcomes[] = {
#define NAME(outcome) [PODLOG_##outcome] = #outcome
	NAME(ALL),     NAME(LESS),    NAME(OTHER),     NAME(AGAIN),    NAME(MESSAGE),
	NAME(BROKEN),  NAME(NO_RUN),  NAME(NEVER_RAN), NAME(GONE),     NAME(CUT),
	NAME(REFUSED), NAME(NOT_YET), NAME(NEXT_RUN),  NAME(WHICH_RUN)};

struct exchange {
	struct podlog_config config;
	const char *known; /* the known end of the log, or NULL */
	int64_t ns;	   /* the time of its first line */
	int status;	   /* the reply to the request for the log; a failure has Retry-After: 7 */
	const char *log;
	/* The reply about the pod; NULL: kxfs does not ask. FAILS: 403, with Retry-After: 9. */
	const char *pod;
};

static const char FAILS[] = "";

/*
 * Return the result of a request: the outcome, whether there was a gap, the pause that the server
 * asked for, and the output.
 */
static const char *result_of(const struct exchange *x)
{
	static char text[64 + sizeof(rig.got)];
	struct podlog_config config = x->config;

	if (x->known)
		config.known = known(x->known, x->ns, 0);
	begin(config);
	if (x->status / 100 == 2)
		fake_answer(fake.requests, x->status, x->log);
	else
		fake_end(fake.requests,
			 &(struct http_reply){.status = x->status, .body = x->log, .wait_ms = 7});
	if (x->pod) {
		/* Nothing is passed on before the server has confirmed the run. */
		assert_int_equal(rig.done, 0);
		holds("");
		assert_string_equal(fake.requests->path, WHICH_POD);
		if (x->pod == FAILS)
			fake_end(fake.requests, &(struct http_reply){.status = 403, .wait_ms = 9});
		else
			fake_answer(fake.requests, 200, x->pod);
	}
	is_over(rig.result.outcome);
	assert_int_equal(rig.result.wait_ms, x->pod == FAILS ? 9 : x->status >= 400 ? 7 : 0);
	rig.got[rig.n] = '\0';
	snprintf(text, sizeof(text), "%s%s%s%s%s", outcomes[rig.result.outcome],
		 rig.gaps ? ", gap" : "", rig.result.wait_ms ? ", wait" : "", rig.n ? ": " : "",
		 rig.got);
	return text;
}

static void test_outcomes(void **state)
{
#define KNOWN(text) .known = text, .ns = STARTED
#define FORCE(pod)                                                                                 \
	{                                                                                          \
		{.force = true}, KNOWN("one\n"), 200, TWO, pod                                     \
	}
#define UNTIMED(pod)                                                                               \
	{                                                                                          \
		{.restart = 1, .previous = true}, "on", 0, 200, ONE, pod                           \
	}
#define NO_POD                                                                                     \
	"{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,"                               \
	"\"message\":\"pods \\\"pod\\\" not found\","                                              \
	"\"details\":{\"name\":\"pod\",\"kind\":\"pods\"}}"
#define NO_LOG	 "unable to retrieve container logs"
#define IO_ERROR "failed to read log file: input/output error"
#define TORN	 ONE TWO IO_ERROR
	static const struct {
		struct exchange x;
		const char *result;
		const char *says; /* part of the text; NULL: there is no text */
	} rows[] = {
		/* The stream repeats the known lines. podlog does not pass them on. */
		{{KNOWN("one\n"), .status = 200, .log = ONE TWO}, "ALL: two\n", NULL},
		{{KNOWN("one\ntwo\n"), .status = 200, .log = ONE}, "LESS", NULL},
		/* The stream lacks the known lines, or ends before it has repeated any. */
		{{KNOWN("one\n"), .status = 200, .log = TWO}, "OTHER", NULL},
		{{KNOWN("one\n"), .status = 200, .log = ""}, "OTHER", NULL},

		/*
		 * With FORCE, podlog accepts newer lines after a gap, once the server has confirmed
		 * that they are of this pod. Here another pod has this name, or no pod has, or the
		 * reply does not show which pod the lines are of.
		 */
		{FORCE(THIS_POD), "ALL, gap: two\n", NULL},
		{FORCE(OTHER_POD), "GONE", "the pod is gone"},
		{FORCE("{\"items\":[]}"), "GONE", "the pod is gone"},
		{FORCE("{\"items\":3}"), "WHICH_RUN", ""},
		{FORCE("{\"items\":[{\"metadata\":{\"uid\":\"uid-1\"}}]}"), "WHICH_RUN", ""},
		{FORCE(POD("uid-1", "\"0\"", RUNNING)), "WHICH_RUN", ""},
		{FORCE(FAILS), "WHICH_RUN, wait", ""},

		/* A stream without known lines ends before the server has confirmed the run. */
		{{{.follow = true}, NULL, 0, 200, ONE, THIS_POD}, "ALL: one\n", NULL},
		{{{.follow = true}, NULL, 0, 200, ONE, FAILS}, "WHICH_RUN, wait", ""},
		/*
		 * After a crash, only a few bytes of the log are known, without a timestamp.
		 * Another run may start with the same bytes.
		 */
		{UNTIMED(POD("uid-1", "2", RUNNING)), "ALL: e\n", NULL},
		{UNTIMED(POD("uid-1", "3", RUNNING)), "GONE", "restarted again"},

		/* If the kubelet has no log, it returns a message without a timestamp. */
		{{KNOWN("one\n"), .status = 200, .log = NO_LOG}, "MESSAGE", NO_LOG},
		/*
		 * The kubelet fails to read the rest of a log. A stream that follows the log may
		 * have a message at its end because the container was removed meanwhile.
		 */
		{{KNOWN("one\n"), .status = 200, .log = TORN}, "MESSAGE: two\n", IO_ERROR},
		{{{.follow = true}, KNOWN("one\n"), 200, TORN, NULL}, "ALL: two\n", NULL},

		{{.status = 204, .log = ""}, "NEVER_RAN", "never ran"},
		{{.status = 400, .log = "{}"}, "NO_RUN, wait", ""},
		{{.status = 404, .log = NO_POD}, "GONE, wait", ""},
		{{.status = 404, .log = "{}"}, "REFUSED, wait", ""},
		{{.status = 403, .log = "{}"}, "REFUSED, wait", ""},
		{{.status = 429, .log = "{}"}, "REFUSED, wait", ""},
		{{.status = 500, .log = "{}"}, "REFUSED, wait", ""},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		const char *says = rows[i].says;

		assert_string_equal(result_of(&rows[i].x), rows[i].result);
		assert_int_equal(*rig.text != '\0', says != NULL);
		if (says && !strstr(rig.text, says))
			fail_msg("row %zu: %s", i, rig.text);
	}
}

/*
 * The restart count shows which run a stream belongs to, whether or not lines of the run are
 * already known. podlog never accepts the bytes of another run.
 */
static void test_which_run(void **state)
{
#define WAITING "{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}"
	static const struct {
		const char *list;	       /* the reply about the pod; run 1 is requested */
		const char *newest, *previous; /* the outcome without and with PREVIOUS */
	} rows[] = {
		{POD("uid-1", "0", RUNNING), "WHICH_RUN", "WHICH_RUN"},
		{POD("uid-1", "1", RUNNING), "ALL", "NOT_YET"},
		{POD("uid-1", "1", WAITING), "ALL", "ALL"},
		{POD("uid-1", "2", RUNNING), "NEXT_RUN", "ALL"},
		{POD("uid-1", "2", WAITING), "GONE", "GONE"},
		{POD("uid-1", "3", RUNNING), "GONE", "GONE"},
		{POD("uid-2", "1", RUNNING), "GONE", "GONE"},
	};

	for (size_t i = 0; i < 4 * array_size(rows); i++) {
		bool previous = i & 1, force = i & 2;
		struct podlog_config config = {.restart = 1, .previous = previous, .force = force};
		struct exchange x = {config, NULL, 0, 200, ONE, rows[i / 4].list};
		const char *want = previous ? rows[i / 4].previous : rows[i / 4].newest;

		if (force) {
			x.known = "zero\n";
			x.ns = STARTED - 1;
		}
		if (streq(want, "ALL"))
			want = force ? "ALL, gap: one\n" : "ALL: one\n";
		assert_string_equal(result_of(&x), want);
	}
}

static void test_broken(void **state)
{
	static const struct {
		bool follow, begun;
		int err;
		enum podlog_outcome outcome;
	} rows[] = {
		{false, false, -EIO, PODLOG_BROKEN},	    {false, true, -EIO, PODLOG_CUT},
		{true, false, -ETIMEDOUT, PODLOG_BROKEN},   {true, true, -ETIMEDOUT, PODLOG_SILENT},
		{true, true, -EHOSTUNREACH, PODLOG_BROKEN},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		begin((struct podlog_config){.follow = rows[i].follow});
		if (rows[i].begun)
			accept_stream();
		fake_break(fake.requests, rows[i].err, true);
		if (rows[i].begun)
			fake_answer(fake_find(WHICH_POD), 200, THIS_POD);
		is_over(rows[i].outcome);
		assert_string_equal(rig.text, "it broke");
	}
}

/* The owner accepts no more output for now. */
static void test_slow(void **state)
{
	begin((struct podlog_config){0});
	rig.refuse = -ENOBUFS;
	fake_answer(fake.requests, 200, ONE);
	fake_answer(fake_find(WHICH_POD), 200, THIS_POD);
	is_over(PODLOG_SLOW);
}

/* --- streams that the kubelet has lost --- */

/* Start the stream of a log of SIZE bytes that ends with "one". The stream repeats that line. */
static struct http_request *begin_long(unsigned lost, uint64_t size)
{
	struct http_request *stream;

	begin((struct podlog_config){.follow = true,
				     .lost = lost,
				     .known = known("one\n", STARTED, size - 4)});
	stream = accept_stream();
	comes(stream, ONE);
	return stream;
}

/* Answer podlog's request for the kubelet's last line. */
static void last_line(const char *line)
{
	fake_answer(fake_find(LAST_LINE), 200, line);
}

/* Let time pass until podlog requests the kubelet's last line. */
static void wait_for_doubt(void)
{
	while (!fake_find(LAST_LINE))
		assert_true(fake_wait(1000000));
}

/*
 * The stream is silent, but the kubelet has no newer line. So the stream works. podlog checks again
 * only after it received much more output.
 */
static void test_silent(void **state)
{
	cleanup_free char *much = calloc(1, (1 << 20) + 64);
	struct http_request *stream = begin_long(0, 1 << 20);

	fake_pass(5000);
	last_line(ONE);
	comes(stream, TWO);
	fake_pass(1000000);
	assert_null(fake_find(LAST_LINE));
	memcpy(much, T("42"), strlen(T("42")));
	memset(much + strlen(T("42")), 'x', 1 << 20);
	rig.n = 0;
	rig.dropping = true;
	comes(stream, much);
	comes(stream, "\n" T("43") "last\n");
	fake_pass(5000);
	last_line(T("43") "last\n");
	fake_pass(1000000);
	assert_ptr_equal(fake.requests, stream);
	assert_null(stream->next);
	assert_int_equal(rig.done, 0);
}

/*
 * The stream delivers the new line after all, before or after the kubelet's reply. podlog checks
 * again at the next silence.
 */
static void test_late(void **state)
{
	struct http_request *stream = begin_long(0, 1 << 20);

	fake_pass(5000);
	comes(stream, TWO);
	last_line(T("42") "three\n");
	fake_pass(5000);
	last_line(T("42") "three\n");
	comes(stream, T("42") "three\n");
	fake_pass(10000);
	last_line(T("42") "three\n");
	fake_pass(1000000);
	assert_null(stream->next);
	holds("two\nthree\n");
}

/*
 * The kubelet does not reply, or returns no line because the file was just rotated. podlog checks
 * again after growing pauses.
 */
static void test_no_last_line(void **state)
{
	struct http_request *stream = begin_long(0, 1 << 20);
	unsigned n = 0;

	for (uint64_t begin = fake.now; fake.now < begin + 3600000; n++) {
		wait_for_doubt();
		if (n % 3 == 0)
			last_line("");
		else if (n % 3 == 1)
			fake_answer(fake_find(LAST_LINE), 500, TWO);
		else
			fake_break(fake_find(LAST_LINE), -EIO, true);
		assert_ptr_equal(fake.requests, stream);
	}
	assert_in_range(n, 10, 20);
	wait_for_doubt();
	last_line(TWO);
	fake_pass(1000000);
	is_over(PODLOG_SILENT);
}

/*
 * podlog does not check in these cases: the log is too small to be rotated; the request is not a
 * stream; or the owner has paused the stream. After the pause, the kubelet has a newer line that the
 * stream does not deliver.
 */
static void test_no_doubt(void **state)
{
	begin_long(0, 1 << 10);
	fake_pass(1000000);
	assert_null(fake.requests->next);
	begin((struct podlog_config){.known = known("one\n", STARTED, 1 << 20)});
	accept_stream();
	fake_pass(1000000);
	assert_null(fake.requests->next);
	begin_long(0, 1 << 20);
	assert_true(podlog_pause(rig.p));
	fake_pass(100000);
	assert_null(fake.requests->next);
	podlog_resume(rig.p);
	fake_pass(5000);
	last_line(TWO);
	assert_int_equal(rig.done, 0);
	fake_pass(5000);
	is_over(PODLOG_SILENT);
}

/* After streams were wrongly considered lost, podlog waits longer before the next check. */
static void test_lost_in_vain(void **state)
{
	uint64_t before = 0;

	for (unsigned lost = 0; lost < 12; lost++) {
		uint64_t begin;

		begin_long(lost, 1 << 20);
		begin = fake.now;
		wait_for_doubt();
		/*
		 * The first pause is about 2 s, and doubles after each wrong check. It varies by a
		 * quarter, so the first doubling may not be visible.
		 */
		if (lost > 1 && lost < 8)
			assert_true(fake.now - begin >= before);
		assert_in_range(fake.now - begin, 1000, 1200000);
		before = fake.now - begin;
	}
}

int main(void)
{
#define TEST(t) cmocka_unit_test_teardown(test_##t, teardown)
	const struct CMUnitTest tests[] = {
		TEST(path),	 TEST(held),	     TEST(all),	     TEST(outcomes),
		TEST(which_run), TEST(broken),	     TEST(slow),     TEST(silent),
		TEST(late),	 TEST(no_last_line), TEST(no_doubt), TEST(lost_in_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
