/* SPDX-License-Identifier: MIT */
/*
 * podlog, which reads one log once: what it requests, what it passes to its owner, and how it
 * interprets each reply. The test answers the requests (fake_net.h).
 */
#include <stdio.h>

#include "tests/unit/backend/client/fake_net.h"

#include "backend/client/podlog.h"

#define T(second) "2026-11-21T09:08:" second ".000000000Z "
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

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	return 0;
}

static int teardown(void **state)
{
	podlog_stop(rig.p);
	assert_null(fake.requests);
	assert_null(fake.timers);
	return 0;
}

static void begin(struct podlog_config config)
{
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

static void holds(const char *text)
{
	rig.got[rig.n] = '\0';
	assert_string_equal(rig.got, text);
}

static void is_over(enum podlog_outcome outcome, bool more)
{
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.result.outcome, outcome);
	assert_int_equal(rig.result.more, more);
	assert_null(fake.requests);
}

static void test_path(void **state)
{
	begin((struct podlog_config){.follow = true});
	assert_string_equal(
		fake.requests->path,
		"/api/v1/namespaces/ns/pods/pod/log?container=main&timestamps=true&follow=true");
	podlog_stop(take_ptr(rig.p));
	assert_null(fake.requests);
	begin((struct podlog_config){.previous = true, .known = known("one\n", STARTED + 1, 100)});
	assert_string_equal(
		fake.requests->path,
		"/api/v1/namespaces/ns/pods/pod/log?container=main&timestamps=true&previous=true&"
		"sinceTime=2026-11-21T09:08:40Z");
}

/* A pod name that contains "../" does not lead to another path. */
static void test_path_of_a_bad_name(void **state)
{
	begin((struct podlog_config){.pod = "../x?y"});
	assert_string_equal(
		fake.requests->path,
		"/api/v1/namespaces/ns/pods/..%2Fx%3Fy/log?container=main&timestamps=true");
}

/* Until podlog knows which run the stream belongs to, it buffers a limited number of bytes. */
static void test_held(void **state)
{
	static char bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 64 == 63 ? '\n' : 'x';
	begin((struct podlog_config){.follow = true});
	fake.requests->call.head(fake.requests->call.data, 200);
	for (int i = 0; i < (256 << 10) / (int)sizeof(bytes); i++)
		assert_int_equal(fake_find("/log?")->call.bytes(fake_find("/log?")->call.data,
								bytes, sizeof(bytes)),
				 0);
	assert_int_equal(fake_find("/log?")->call.bytes(fake_find("/log?")->call.data, bytes, 1),
			 -EAGAIN);
}

static void test_all(void **state)
{
	begin((struct podlog_config){.follow = true});
	assert_false(podlog_has_begun(rig.p));
	assert_int_equal(rig.begun, 0);
	fake.requests->call.head(fake.requests->call.data, 200);
	fake_answer(fake_find(WHICH_POD), 200, THIS_POD);
	assert_true(podlog_has_begun(rig.p));
	assert_int_equal(rig.begun, 1);
	assert_int_equal(fake.requests->call.bytes(fake.requests->call.data, T("40") "one\n",
						   strlen(T("40") "one\n")),
			 0);
	holds("one\n");
	assert_int_equal(rig.ns, STARTED);
	assert_int_equal(rig.pauses, 1);
	assert_int_equal(podlog_came(rig.p), strlen(T("40") "one\n"));
	fake.now += 3000;
	fake_end(fake.requests, &(struct http_reply){.status = 200});
	is_over(PODLOG_ALL, true);
	assert_true(rig.result.begun);
	assert_int_equal(rig.result.open_ms, 3000);
}

/* The stream repeats the known lines. podlog does not pass them on. */
static void test_known(void **state)
{
	begin((struct podlog_config){.known = known("one\n", STARTED, 0)});
	fake_answer(fake.requests, 200, T("40") "one\n" T("41") "two\n");
	is_over(PODLOG_ALL, true);
	holds("two\n");
	setup(state);
	begin((struct podlog_config){.known = known("one\ntwo\n", STARTED, 0)});
	fake_answer(fake.requests, 200, T("40") "one\n");
	is_over(PODLOG_LESS, false);
}

/* The stream lacks the known lines. */
static void test_other(void **state)
{
	begin((struct podlog_config){.known = known("one\n", STARTED, 0)});
	fake_answer(fake.requests, 200, T("41") "two\n");
	is_over(PODLOG_OTHER, false);
	assert_int_equal(rig.gaps, 0);
	holds("");
	/* The stream ends before it has repeated any known line. */
	setup(state);
	begin((struct podlog_config){.known = known("one\n", STARTED, 0)});
	fake_answer(fake.requests, 200, "");
	is_over(PODLOG_OTHER, false);
	holds("");
}

static void begin_force(void)
{
	begin((struct podlog_config){.force = true, .known = known("one\n", STARTED, 0)});
	fake_answer(fake.requests, 200, T("41") "two\n");
	assert_int_equal(rig.done, 0);
	holds("");
	assert_non_null(fake.requests);
	assert_string_equal(fake.requests->path, WHICH_POD);
}

/*
 * With FORCE, podlog accepts newer lines after a gap, once the server has confirmed that they are
 * of this pod.
 */
static void test_force(void **state)
{
	begin_force();
	fake_answer(fake.requests, 200, THIS_POD);
	is_over(PODLOG_ALL, true);
	assert_int_equal(rig.gaps, 1);
	holds("two\n");
}

/* Another pod has this name, or no pod has. podlog accepts none of the lines. */
static void test_force_of_other(void **state)
{
	static const char *const lists[] = {OTHER_POD, "{\"items\":[]}"};

	for (size_t i = 0; i < array_size(lists); i++) {
		setup(state);
		begin_force();
		fake_answer(fake.requests, 200, lists[i]);
		is_over(PODLOG_GONE, false);
		assert_string_equal(rig.text, "the pod is gone");
		assert_int_equal(rig.gaps, 0);
		holds("");
	}
}

/*
 * The server fails to reply, or its reply does not show which pod the lines are of. podlog ends, so
 * that its owner can retry later.
 */
static void test_force_without_answer(void **state)
{
	static const char *const lists[] = {
		"{\"items\":3}",
		"{\"items\":[{\"metadata\":{\"uid\":\"uid-1\"}}]}",
		POD("uid-1", "\"0\"", RUNNING),
		NULL,
	};

	for (size_t i = 0; i < array_size(lists); i++) {
		setup(state);
		begin_force();
		if (lists[i])
			fake_answer(fake.requests, 200, lists[i]);
		else
			fake_end(fake.requests, &(struct http_reply){.status = 403, .wait_ms = 9});
		is_over(PODLOG_WHICH_RUN, false);
		assert_true(*rig.text);
		assert_int_equal(rig.result.wait_ms, lists[i] ? 0 : 9);
		holds("");
	}
}

/* If the kubelet has no log, it returns a message without a timestamp. */
static void test_message(void **state)
{
	begin((struct podlog_config){.known = known("one\n", STARTED, 0)});
	fake_answer(fake.requests, 200, "unable to retrieve container logs");
	is_over(PODLOG_MESSAGE, false);
	assert_string_equal(rig.text, "unable to retrieve container logs");
}

/*
 * The kubelet fails to read the rest of a log, and returns a message after the output. A stream that
 * follows the log may have a message at its end because the container was removed meanwhile.
 */
static void test_message_after_output(void **state)
{
	static const char body[] =
		T("40") "one\n" T("41") "two\n"
					"failed to read log file: input/output error";

	begin((struct podlog_config){.known = known("one\n", STARTED, 0)});
	fake_answer(fake.requests, 200, body);
	is_over(PODLOG_MESSAGE, true);
	assert_string_equal(rig.text, "failed to read log file: input/output error");
	holds("two\n");
	setup(state);
	begin((struct podlog_config){.follow = true, .known = known("one\n", STARTED, 0)});
	fake_answer(fake.requests, 200, body);
	is_over(PODLOG_ALL, true);
	holds("two\n");
}

static const char no_pod[] = "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,"
			     "\"message\":\"pods \\\"pod\\\" not found\","
			     "\"details\":{\"name\":\"pod\",\"kind\":\"pods\"}}";

static void test_refused(void **state)
{
	static const struct {
		int status;
		const char *body;
		enum podlog_outcome outcome;
	} cases[] = {
		{204, "", PODLOG_NEVER_RAN}, {400, "{}", PODLOG_NO_RUN},
		{404, no_pod, PODLOG_GONE},  {404, "{}", PODLOG_REFUSED},
		{403, "{}", PODLOG_REFUSED}, {429, "{}", PODLOG_REFUSED},
		{500, "{}", PODLOG_REFUSED},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		setup(state);
		begin((struct podlog_config){0});
		fake_end(fake.requests, &(struct http_reply){.status = cases[i].status,
							     .body = cases[i].body,
							     .wait_ms = 7});
		is_over(cases[i].outcome, false);
		assert_true(*rig.text);
		assert_int_equal(rig.result.wait_ms, cases[i].status == 204 ? 0 : 7);
	}
}

static void test_broken(void **state)
{
	for (int i = 0; i < 5; i++) {
		static const enum podlog_outcome outcomes[] = {PODLOG_BROKEN, PODLOG_CUT,
							       PODLOG_BROKEN, PODLOG_SILENT,
							       PODLOG_BROKEN};

		setup(state);
		begin((struct podlog_config){.follow = i > 1});
		if (i % 2 || i == 4)
			fake.requests->call.head(fake.requests->call.data, 200);
		fake_break(fake.requests, i < 2 ? -EIO : i < 4 ? -ETIMEDOUT : -EHOSTUNREACH, true);
		if (fake.requests)
			fake_answer(fake_find(WHICH_POD), 200, THIS_POD);
		is_over(outcomes[i], false);
		assert_string_equal(rig.text, "it broke");
	}
}

/* The owner accepts no more output for now. */
static void test_slow(void **state)
{
	begin((struct podlog_config){0});
	rig.refuse = -ENOBUFS;
	fake_answer(fake.requests, 200, T("40") "one\n");
	fake_answer(fake_find(WHICH_POD), 200, THIS_POD);
	is_over(PODLOG_SLOW, false);
}

/* --- which run a stream belongs to --- */

/* Start to follow the first run, without any known lines. */
static void begin_unsure(void)
{
	begin((struct podlog_config){.follow = true});
	assert_true(podlog_is_unsure(rig.p));
	assert_false(podlog_is_asking(rig.p));
	fake.requests->call.head(fake.requests->call.data, 200);
	assert_true(podlog_is_asking(rig.p));
	assert_int_equal(fake.requests->call.bytes(fake.requests->call.data, T("40") "one\n",
						   strlen(T("40") "one\n")),
			 0);
	holds("");
}

static void test_this_run(void **state)
{
	begin_unsure();
	fake_answer(fake_find(WHICH_POD), 200, THIS_POD);
	assert_false(podlog_is_unsure(rig.p));
	holds("one\n");
	fake_end(fake.requests, &(struct http_reply){.status = 200});
	is_over(PODLOG_ALL, true);
}

/*
 * The restart count shows which run a stream belongs to, whether or not lines of the run are
 * already known. podlog never accepts the bytes of another run.
 */
static void test_which_run(void **state)
{
#define WAITING "{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}"
	static const struct {
		const char *list; /* the reply about the pod; run 1 is followed */
		enum podlog_outcome newest, previous;
	} cases[] = {
		{POD("uid-1", "0", RUNNING), PODLOG_WHICH_RUN, PODLOG_WHICH_RUN},
		{POD("uid-1", "1", RUNNING), PODLOG_ALL, PODLOG_NOT_YET},
		{POD("uid-1", "1", WAITING), PODLOG_ALL, PODLOG_ALL},
		{POD("uid-1", "2", RUNNING), PODLOG_NEXT_RUN, PODLOG_ALL},
		{POD("uid-1", "2", WAITING), PODLOG_GONE, PODLOG_GONE},
		{POD("uid-1", "3", RUNNING), PODLOG_GONE, PODLOG_GONE},
		{POD("uid-2", "1", RUNNING), PODLOG_GONE, PODLOG_GONE},
	};

	for (size_t i = 0; i < 4 * array_size(cases); i++) {
		bool previous = i & 1, force = i & 2;
		enum podlog_outcome outcome =
			previous ? cases[i / 4].previous : cases[i / 4].newest;
		bool taken = outcome == PODLOG_ALL;

		setup(state);
		if (force)
			begin((struct podlog_config){.restart = 1,
						     .previous = previous,
						     .force = true,
						     .known = known("zero\n", STARTED - 1, 0)});
		else
			begin((struct podlog_config){.restart = 1, .previous = previous});
		fake_answer(fake.requests, 200, T("40") "one\n");
		fake_answer(fake_find(WHICH_POD), 200, cases[i / 4].list);
		is_over(outcome, taken);
		assert_int_equal(rig.gaps, taken && force);
		holds(taken ? "one\n" : "");
	}
}

/*
 * After a crash, only a few bytes of the log are known, without a timestamp. Another run may start
 * with the same bytes.
 */
static void test_known_without_time(void **state)
{
	static const struct {
		const char *list;
		enum podlog_outcome outcome;
		const char *holds;
	} cases[] = {
		{POD("uid-1", "2", RUNNING), PODLOG_ALL, "e\n"},
		{POD("uid-1", "3", RUNNING), PODLOG_GONE, ""},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		setup(state);
		begin((struct podlog_config){.restart = 1,
					     .previous = true,
					     .known = known("on", 0, 0)});
		fake_answer(fake.requests, 200, T("40") "one\n");
		fake_answer(fake_find(WHICH_POD), 200, cases[i].list);
		is_over(cases[i].outcome, *cases[i].holds);
		holds(cases[i].holds);
	}
}

static void test_no_answer(void **state)
{
	begin_unsure();
	fake_end(fake_find(WHICH_POD), &(struct http_reply){.status = 500, .wait_ms = 9});
	is_over(PODLOG_WHICH_RUN, false);
	assert_int_equal(rig.result.wait_ms, 9);
	holds("");
}

/* The stream ends before the server has answered. */
static void test_ended_unsure(void **state)
{
	begin_unsure();
	fake_end(fake.requests, &(struct http_reply){.status = 200});
	assert_int_equal(rig.done, 0);
	fake_answer(fake_find(WHICH_POD), 200, THIS_POD);
	is_over(PODLOG_ALL, true);
	holds("one\n");
}

/* --- streams that the kubelet has lost --- */

/* Start the stream of a log of SIZE bytes that ends with "one". The stream repeats that line. */
static struct http_request *begin_long(unsigned lost, uint64_t size)
{
	begin((struct podlog_config){.follow = true,
				     .lost = lost,
				     .known = known("one\n", STARTED, size - 4)});
	fake.requests->call.head(fake.requests->call.data, 200);
	assert_int_equal(fake.requests->call.bytes(fake.requests->call.data, T("40") "one\n",
						   strlen(T("40") "one\n")),
			 0);
	return fake.requests;
}

static void comes(struct http_request *stream, const char *text)
{
	assert_int_equal(stream->call.bytes(stream->call.data, text, strlen(text)), 0);
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
	fake_answer(fake_find(LAST_LINE), 200, T("40") "one\n");
	comes(stream, T("41") "two\n");
	fake_pass(1000000);
	assert_null(fake_find(LAST_LINE));
	memcpy(much, T("42"), strlen(T("42")));
	memset(much + strlen(T("42")), 'x', 1 << 20);
	rig.n = 0;
	rig.dropping = true;
	comes(stream, much);
	comes(stream, "\n" T("43") "last\n");
	fake_pass(5000);
	fake_answer(fake_find(LAST_LINE), 200, T("43") "last\n");
	fake_pass(1000000);
	assert_ptr_equal(fake.requests, stream);
	assert_null(stream->next);
	assert_int_equal(rig.done, 0);
}

/* The kubelet has a newer line that the stream does not deliver. */
static void test_lost(void **state)
{
	begin_long(0, 1 << 20);
	fake_pass(5000);
	fake_answer(fake_find(LAST_LINE), 200, T("41") "two\n");
	assert_int_equal(rig.done, 0);
	fake_pass(5000);
	is_over(PODLOG_SILENT, false);
}

/*
 * The stream delivers the new line after all, before or after the kubelet's reply. podlog checks
 * again at the next silence.
 */
static void test_late(void **state)
{
	struct http_request *stream = begin_long(0, 1 << 20);

	fake_pass(5000);
	comes(stream, T("41") "two\n");
	fake_answer(fake_find(LAST_LINE), 200, T("42") "three\n");
	fake_pass(5000);
	fake_answer(fake_find(LAST_LINE), 200, T("42") "three\n");
	comes(stream, T("42") "three\n");
	fake_pass(10000);
	fake_answer(fake_find(LAST_LINE), 200, T("42") "three\n");
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
		while (!fake_find(LAST_LINE))
			assert_true(fake_wait(1000000));
		if (n % 3 == 0)
			fake_answer(fake_find(LAST_LINE), 200, "");
		else if (n % 3 == 1)
			fake_answer(fake_find(LAST_LINE), 500, T("41") "two\n");
		else
			fake_break(fake_find(LAST_LINE), -EIO, true);
		assert_ptr_equal(fake.requests, stream);
	}
	assert_in_range(n, 10, 20);
	while (!fake_find(LAST_LINE))
		assert_true(fake_wait(1000000));
	fake_answer(fake_find(LAST_LINE), 200, T("41") "two\n");
	fake_pass(1000000);
	is_over(PODLOG_SILENT, false);
}

/*
 * podlog does not check in these cases: the log is too small to be rotated; the request is not a
 * stream; or the owner has paused the stream.
 */
static void test_no_doubt(void **state)
{
	begin_long(0, 1 << 10);
	fake_pass(1000000);
	assert_null(fake.requests->next);
	podlog_stop(take_ptr(rig.p));
	begin((struct podlog_config){.known = known("one\n", STARTED, 1 << 20)});
	fake.requests->call.head(fake.requests->call.data, 200);
	fake_pass(1000000);
	assert_null(fake.requests->next);
	podlog_stop(take_ptr(rig.p));
	begin_long(0, 1 << 20);
	assert_true(podlog_pause(rig.p));
	fake_pass(100000);
	assert_null(fake.requests->next);
	podlog_resume(rig.p);
	fake_pass(10000);
	assert_non_null(fake_find(LAST_LINE));
}

/* After streams were wrongly considered lost, podlog waits longer before the next check. */
static void test_lost_in_vain(void **state)
{
	uint64_t before = 0;

	for (unsigned lost = 0; lost < 12; lost++) {
		uint64_t begin;

		setup(state);
		begin = fake.now;
		begin_long(lost, 1 << 20);
		while (!fake_find(LAST_LINE))
			assert_true(fake_wait(1000000));
		/*
		 * The first pause is about 2 s, and doubles after each wrong check. It varies by a
		 * quarter, so the first doubling may not be visible.
		 */
		if (lost > 1 && lost < 8)
			assert_true(fake.now - begin >= before);
		assert_in_range(fake.now - begin, 1000, 1200000);
		before = fake.now - begin;
		podlog_stop(take_ptr(rig.p));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_path_of_a_bad_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_force, setup, teardown),
		cmocka_unit_test_setup_teardown(test_force_of_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_force_without_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_message, setup, teardown),
		cmocka_unit_test_setup_teardown(test_message_after_output, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_this_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_which_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_known_without_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended_unsure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_last_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_doubt, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_in_vain, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
