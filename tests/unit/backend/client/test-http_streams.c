/* SPDX-License-Identifier: MIT */
/*
 * http: streams, requests that are cancelled or stopped at any moment, and hundreds of requests at
 * the same time.
 */
#include "tests/unit/backend/client/http_rig.h"

#include <curl/curl.h>

#include "backend/client/http_easy.h"
#include "tests/unit/clock.h"

#define call_scope struct rig_call cleanup(rig_clear)
#define MANY	   300

static bool shares; /* streams share connections */

/* Connect to the server that the initial state names. */
static int setup(void **state)
{
	const char *name = *state;

	if (rig_setup(state))
		return -1;
	shares = strcmp(name, "h2") == 0;
	rig_begin(name);
	rig_expect("/reset", NULL);
	return 0;
}

/* --- one stream --- */

static void test_results(void **state)
{
	static const struct {
		const char *path, *result;
		struct http_call call;
		size_t fail_after; /* bytes() then returns -ECANCELED; 0: never */
	} rows[] = {
		{"/pieces?n=5&size=100000&gap=0.01", "200, streamed 500000", .call = {0}},
		{"/silent", "Connection timed out, 0, sent", .call = {.deadline_ms = 300}},
		{"/pieces?n=3&end=cut", "Input/output error, 200, streamed 30, sent", .call = {0}},
		{"/pieces?n=2&end=hang", "Operation canceled, 200, streamed 20, sent",
		 .fail_after = 20},
		{"/status?status=400&body=not+yet", "400 not yet", .call = {0}},
	};
	call_scope slow = {.call = {.stream = true, .deadline_ms = 500}};

	for (size_t i = 0; i < array_size(rows); i++) {
		call_scope c = {.call = rows[i].call,
				.fail_after = rows[i].fail_after,
				.fail = rows[i].fail_after ? -ECANCELED : 0};

		c.call.stream = true;
		rig_check(&c, rows[i].path, rows[i].result);
	}
	/* The text of a refusal must arrive before the deadline too. */
	rig_ask_call(&slow, "/pieces?status=400&end=hang");
	assert_int_equal(slow.err, -ETIMEDOUT);
}

#define IDLE_S 60

/*
 * Number of chunks that test_idle's stream has received. After each chunk, the test lets most of
 * the idle timeout pass.
 */
static atomic_uint n_passed;

static void pass_most(struct rig_call *c)
{
	atomic_fetch_add(&n_passed, 1);
	clock_pass(rig.loop, IDLE_S * 2 / 3);
}

/*
 * A stream's header is reported when it arrives, even if no data follows. From then on the deadline
 * does not apply. A stream with an idle timeout ends if no data arrives for that long. Each chunk
 * restarts the timeout.
 */
static void test_idle(void **state)
{
	call_scope quiet = {.call = {.stream = true, .deadline_ms = SURE_MS}};
	call_scope c = {.call = {.stream = true, .idle_ms = IDLE_S * 1000}, .on_bytes = pass_most};

	n_passed = 0;
	rig_send(&quiet, "/pieces?n=0&end=hang");
	sem_wait_or_fail(&quiet.head_came);
	rig_send(&c, "/pieces?n=8&gap=0.1&end=hang");
	while (atomic_load(&c.bytes) < 80) {
		rig_run(clock_nothing, NULL);
		assert_false(c.over);
		usleep(1000);
	}
	/* If chunks did not restart the timeout, the stream would have ended by now. */
	assert_in_range(n_passed, 2, 8);
	clock_pass(rig.loop, IDLE_S);
	rig_wait(&c);
	assert_string_equal(rig_result(&c), "Connection timed out, 200, streamed 80, sent");
	assert_non_null(strstr(c.text, "the server sent no data within 60.0 s"));
	assert_false(quiet.over);
	assert_int_equal(quiet.bytes, 0);
}

/*
 * For test_fairness: how many chunks and bytes have arrived since the loop last ran a posted
 * function, and the most of them.
 */
static struct {
	bool posted;
	size_t chunks, bytes, total, most_chunks, most_bytes;
} turn;

static void on_turn(void *data)
{
	memset(&turn, 0, offsetof(typeof(turn), total));
}

/* Read more slowly than the server sends, so that there is always data to read. */
static void dawdle(struct rig_call *c)
{
	turn.chunks++;
	turn.bytes += c->bytes - turn.total;
	turn.total = c->bytes;
	turn.most_chunks = max_of(turn.most_chunks, turn.chunks);
	turn.most_bytes = max_of(turn.most_bytes, turn.bytes);
	if (!turn.posted)
		loop_post(rig.loop, on_turn, NULL);
	turn.posted = true;
	usleep(200);
}

static void dawdle_and_yield(struct rig_call *c)
{
	dawdle(c);
	http_yield(c->request);
}

/*
 * A stream that sends without pause does not keep other callbacks from running. If it yields, they
 * run after each chunk.
 */
static void test_fairness(void **state)
{
	for (int yields = 0; yields < 2; yields++) {
		call_scope c = {.call = {.stream = true},
				.on_bytes = yields ? dawdle_and_yield : dawdle};

		memset(&turn, 0, sizeof(turn));
		rig_check(&c, "/pieces?n=24&size=1000000", "200, streamed 24000000");
		assert_in_range(turn.most_bytes, 1, 8000000);
		if (yields)
			assert_int_equal(turn.most_chunks, 1);
	}
}

/* --- cancellation --- */

static void cancel_it(struct rig_call *c)
{
	rig_cancel_now(c);
}

static struct rig_call *other;

static void cancel_other(struct rig_call *c)
{
	rig_cancel_now(other);
}

/*
 * Assert that C was cancelled: none of its callbacks is called any more, and other requests
 * continue.
 */
static void assert_gone(struct rig_call *c)
{
	size_t bytes = c->bytes;

	rig_expect("/pieces?n=3&gap=0.01", "aaaaaaaaaabbbbbbbbbbcccccccccc");
	assert_false(c->over);
	assert_null(c->request);
	assert_int_equal(c->bytes, bytes);
}

static void send_and_cancel(void *data)
{
	struct rig_call *c = data;

	c->request = http_send(rig.http, &c->call);
	assert_non_null(c->request);
	rig_cancel_now(c);
}

static void test_cancel(void **state)
{
	static const unsigned when[] = {0, 1, 3, 10, 30, 100};
	call_scope at_once = {
		.call = {.path = "/echo", .deadline_ms = MANY_MS, .done = rig_on_done}};

	for (size_t i = 0; i < 3 * array_size(when); i++) {
		call_scope c = {.call = {.stream = i % 3 == 0,
					 .method = i % 3 == 1 ? HTTP_POST : HTTP_GET}};

		rig_send(&c, i % 3 ? "/silent" : "/pieces?n=1000000&gap=0.001");
		usleep(when[i / 3] * 1000);
		rig_run(rig_cancel_now, &c);
		assert_gone(&c);
	}
	at_once.call.data = &at_once;
	rig_run(send_and_cancel, &at_once);
	assert_gone(&at_once);
}

static void test_cancel_while_waiting(void **state)
{
	call_scope c = {.call = {.retry = true}}, d = {0};

	rig_send(&c, "/status?status=429&after=60&id=w");
	while (rig_number("/seen?id=w") == 0)
		usleep(10000);
	rig_run(rig_cancel_now, &c);
	assert_gone(&c);
	credentials.never = true;
	rig_send(&d, "/echo");
	usleep(20000);
	rig_run(rig_cancel_now, &d);
	credentials.never = false;
	assert_gone(&d);
}

/* --- what callbacks may do --- */

enum { IN_HEAD, IN_BYTES, IN_DONE, CALLBACKS };

/* Make the callback WHERE of C call WHAT. */
static void call_within(struct rig_call *c, int where, void (*what)(struct rig_call *c))
{
	void (**const callbacks[])(struct rig_call *) = {&c->on_head, &c->on_bytes, &c->on_done};

	*callbacks[where] = what;
}

/* A callback cancels its own request. */
static void test_cancel_within(void **state)
{
	for (int where = 0; where < CALLBACKS; where++) {
		call_scope c = {.call = {.stream = true}};

		call_within(&c, where, cancel_it);
		rig_send(&c, "/pieces?n=3&gap=0.01");
		if (where == IN_DONE)
			rig_wait(&c); /* cancelling a request in its own done() has no effect */
		else
			sem_wait_or_fail(&c.head_came);
		rig_expect("/status", NULL);
		assert_int_equal(c.over, where == IN_DONE);
	}
}

static void test_cancel_other_within(void **state)
{
	for (int where = 0; where < CALLBACKS; where++) {
		call_scope c = {.call = {.stream = true}}, victim = {.call = {.stream = true}};

		other = &victim;
		call_within(&c, where, cancel_other);
		rig_send(&victim, "/pieces?n=1000&gap=0.001&end=hang");
		sem_wait_or_fail(&victim.head_came);
		rig_check(&c, "/pieces?n=3&gap=0.01", "200, streamed 30");
		assert_gone(&victim);
	}
}

static void send_next(struct rig_call *c)
{
	rig_send_now(other);
}

static void test_send_within(void **state)
{
	for (int where = 0; where < CALLBACKS; where++) {
		call_scope c = {.call = {.stream = true}};
		call_scope next = {.call = {.path = "/status?body=next",
					    .deadline_ms = MANY_MS,
					    .done = rig_on_done,
					    .data = &next}};

		sem_init(&next.done, 0, 0);
		other = &next;
		call_within(&c, where, send_next);
		rig_ask_call(&c, "/pieces?n=1");
		rig_wait(&next);
		assert_string_equal(next.body, "next");
	}
}

static sem_t stopped;

static void stop_within(struct rig_call *c)
{
	http_stop(rig.http, rig_post, &stopped);
}

static void test_stop_within(void **state)
{
	for (int where = 0; where < CALLBACKS; where++) {
		call_scope c = {.call = {.stream = true}}, d = {.call = {.stream = true}};

		sem_init(&stopped, 0, 0);
		call_within(&c, where, stop_within);
		rig_send(&d, "/stream");
		rig_send(&c, "/pieces?n=1");
		sem_wait_or_fail(&stopped);
		sem_destroy(&stopped);
		assert_false(d.over);
		c.request = d.request = NULL;
		http_free(take_ptr(rig.http));
		rig_connect();
		rig_expect("/status", NULL);
	}
}

static void test_stop_unused(void **state)
{
	rig_begin("plain");
	rig_begin("plain");
	http_free(take_ptr(rig.http));
}

/* --- many requests --- */

static void begin_one(struct rig_call *c, const char *path)
{
	*c = (struct rig_call){.call = {.stream = true, .retry = true}};
	rig_send(c, path);
}

/* Start N streams that last until the test releases them, and wait for the first byte of each. */
static struct rig_call *begin_many(size_t n, const char *path)
{
	struct rig_call *c = calloc(n, sizeof(*c));

	assert_non_null(c);
	for (size_t i = 0; i < n; i++)
		begin_one(&c[i], path);
	for (size_t i = 0; i < n; i++) {
		for (int t = 0; atomic_load(&c[i].bytes) == 0 && t < WAIT_S * 100; t++) {
			if (c[i].over && c[i].err != -EHOSTUNREACH)
				fail_msg("stream %zu of %zu: %d %s", i, n, c[i].err, c[i].text);
			/* On a slow machine, a connection may time out. */
			if (c[i].over) {
				rig_clear(&c[i]);
				begin_one(&c[i], path);
			}
			usleep(10000);
		}
		assert_true(atomic_load(&c[i].bytes) > 0);
	}
	return c;
}

static void clear_many(struct rig_call *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rig_clear(&c[i]);
	free(c);
}

static void check_many(unsigned connections)
{
	struct rig_call *c = begin_many(MANY, "/stream?gap=2");
	struct http_counts n;

	http_count(rig.http, &n);
	/* One additional connection is for calls. */
	assert_int_equal(n.connections, connections + 1);
	for (int i = 0; i < 5; i++) {
		call_scope post = {.call = {.method = HTTP_POST}};

		rig_ask_call(&post, "/echo");
		assert_int_equal(post.status, 200);
	}
	rig_expect("/release", NULL);
	for (size_t i = 0; i < MANY; i++) {
		rig_wait(&c[i]);
		assert_int_equal(c[i].err, 0);
	}
	clear_many(c, MANY);
}

static void test_many_http2(void **state)
{
	check_many(4);
	assert_true(rig_number("/most") <= 90);
}

static void test_many_http1(void **state)
{
	check_many(MANY);
}

static void test_stop_many(void **state)
{
	struct rig_call *c = begin_many(MANY, "/stream?gap=2");

	rig_disconnect();
	for (size_t i = 0; i < MANY; i++)
		assert_false(c[i].over);
	clear_many(c, MANY);
}

/* --- HTTP/2 --- */

/*
 * The server announces that it will close a connection. Running requests continue on it, and new
 * ones use another connection.
 */
static void test_goaway(void **state)
{
	call_scope c = {.call = {.stream = true}}, away = {0},
		   post = {.call = {.method = HTTP_POST}};

	rig_send(&c, "/stream");
	sem_wait_or_fail(&c.head_came);
	rig_check(&away, "/goaway", "200 bye");
	rig_ask_call(&post, "/echo");
	assert_int_equal(post.status, 200);
	assert_false(c.over);
	rig_expect("/release", NULL);
	rig_wait(&c);
	assert_int_equal(c.err, 0);
}

#define ROUNDS	100
#define HELD_MS (HTTP_CONNECT_MS / 2) /* after HTTP_CONNECT_MS, a timer makes curl read again */

/*
 * Two streams share a connection. The server sends frames of both, and then nothing. All bytes
 * arrive nevertheless, although curl reads bytes of one stream while it works for the other.
 */
static void test_mixed(void **state)
{
	call_scope a = {.call = {.stream = true}}, b = {.call = {.stream = true}};
	size_t sent = 0;

	rig_send(&a, "/mixed");
	sem_wait_or_fail(&a.head_came);
	rig_send(&b, "/mixed");
	sem_wait_or_fail(&b.head_came);
	for (int i = 0; i < ROUNDS; i++) {
		sent += rig_number("/mix");
		for (int ms = 0; a.bytes + b.bytes < sent; ms++) {
			if (ms == HELD_MS)
				fail_msg("round %d: %zu and %zu bytes have arrived, not %zu", i,
					 a.bytes, b.bytes, sent);
			usleep(1000);
		}
	}
	assert_int_equal(a.bytes + b.bytes, sent);
}

/* --- paused streams --- */

#define PAUSED_MAX 8			       /* as in http.c */
#define MUCH	   "/pieces?n=40&size=1000000" /* more than curl buffers of a paused stream */
#define ALL_OF_IT  "200, streamed 40000000"

/*
 * With curl before 7.88.1, http does not pause streams that share a connection (see http.c). Then
 * there is nothing to test.
 */
static void need_waiting(void)
{
	if (shares && curl_version_info(CURLVERSION_NOW)->version_num < 0x075801)
		skip();
}

static void pause_it(struct rig_call *c)
{
	c->on_bytes = NULL;
	assert_true(http_pause(c->request));
}

static void resume_now(void *data)
{
	struct rig_call *c = data;

	http_resume(c->request);
}

/*
 * Wait until C has received more than BEFORE bytes and is paused. Assert that it receives nothing
 * more, and that others on its connection do.
 */
static void wait_paused(struct rig_call *c, size_t before)
{
	size_t bytes;

	while (c->bytes <= before) {
		if (c->over)
			fail_msg("it has ended: %d %s", c->err, c->text);
		usleep(1000);
	}
	bytes = c->bytes;
	rig_expect("/pieces?n=3&gap=0.01", "aaaaaaaaaabbbbbbbbbbcccccccccc");
	{
		call_scope d = {.call = {.stream = true}};

		rig_check(&d, "/pieces?n=3&size=1000000", "200, streamed 3000000");
	}
	assert_int_equal(c->bytes, bytes);
	assert_false(c->over);
}

/*
 * A paused stream uses bounded memory, and does not block other streams of its connection. Its idle
 * timeout does not apply. When resumed it receives every byte, even if it pauses again in the
 * middle of the data that curl has buffered.
 */
static void test_pause(void **state)
{
	call_scope shared = {.call = {.stream = true, .idle_ms = SURE_MS}, .on_bytes = pause_it};
	call_scope alone = shared;
	struct rig_call *const both[] = {&shared, &alone};

	need_waiting();
	alone.call.alone = true;
	for (size_t i = 0; i < array_size(both); i++) {
		rig_send(both[i], MUCH);
		wait_paused(both[i], 0);
	}
	clock_pass(rig.loop, 2 * SURE_MS / 1000);
	/* one iteration of the loop, so that all timers that are due run */
	for (int i = 0; i < 3; i++)
		rig_run(clock_nothing, NULL);
	for (size_t i = 0; i < array_size(both); i++) {
		struct rig_call *c = both[i];

		for (int n = 0; n < 3; n++) {
			size_t before = c->bytes;

			c->on_bytes = pause_it;
			rig_run(resume_now, c);
			wait_paused(c, before);
		}
		rig_run(resume_now, c);
		rig_wait(c);
		assert_string_equal(rig_result(c), ALL_OF_IT);
	}
}

/* A stream can be cancelled or can fail while it is paused, or while it resumes. */
static void test_pause_and_end(void **state)
{
	need_waiting();
	for (int i = 0; i < 4; i++) {
		call_scope c = {.call = {.stream = true, .alone = i % 2}, .on_bytes = pause_it};

		rig_send(&c, MUCH);
		wait_paused(&c, 0);
		if (i < 2) {
			rig_run(rig_cancel_now, &c);
			assert_gone(&c);
			continue;
		}
		c.fail_after = 1;
		c.fail = -ENOBUFS;
		rig_run(resume_now, &c);
		rig_wait(&c);
		assert_int_equal(c.err, -ENOBUFS);
	}
}

static bool refused;

static void try_to_pause(struct rig_call *c)
{
	c->on_bytes = NULL;
	refused = !http_pause(c->request);
}

/*
 * Only a limited number of HTTP/2 streams can be paused, because each may use much memory. Streams
 * with their own connection have no such limit.
 */
static void test_pause_many(void **state)
{
	struct rig_call c[PAUSED_MAX] = {0};
	call_scope last = {.call = {.stream = true}, .on_bytes = try_to_pause};
	call_scope alone = {.call = {.stream = true, .alone = true}, .on_bytes = pause_it};

	need_waiting();
	for (size_t i = 0; i < array_size(c); i++) {
		c[i].call.stream = true;
		c[i].on_bytes = pause_it;
		rig_send(&c[i], MUCH);
		wait_paused(&c[i], 0);
	}
	rig_check(&last, "/pieces?n=3&size=100000", "200, streamed 300000");
	assert_true(refused);
	rig_send(&alone, MUCH);
	wait_paused(&alone, 0);
	for (size_t i = 0; i < array_size(c); i++) {
		size_t before = c[i].bytes;

		rig_run(resume_now, &c[i]);
		while (c[i].bytes <= before && !c[i].over)
			usleep(1000);
		rig_run(rig_cancel_now, &c[i]);
		assert_true(c[i].bytes > before);
		rig_clear(&c[i]);
	}
	rig_run(resume_now, &alone);
	rig_wait(&alone);
	assert_string_equal(rig_result(&alone), ALL_OF_IT);
}

int main(void)
{
#define TEST(server, t)                                                                            \
	{                                                                                          \
#t " (" server ")", test_##t, setup, rig_teardown, (void *)(uintptr_t)server       \
	}
#define EACH(t) TEST("plain", t), TEST("tls", t), TEST("h2", t)
	const struct CMUnitTest tests[] = {
		EACH(results),
		EACH(idle),
		EACH(fairness),
		EACH(cancel),
		EACH(cancel_while_waiting),
		EACH(cancel_within),
		EACH(cancel_other_within),
		EACH(send_within),
		EACH(stop_within),
		TEST("plain", stop_unused),
		EACH(pause),
		EACH(pause_and_end),
		TEST("h2", pause_many),
		TEST("h2", many_http2),
		TEST("tls", many_http1),
		TEST("h2", stop_many),
		TEST("tls", stop_many),
		TEST("h2", goaway),
		TEST("plain", goaway),
		TEST("h2", mixed),
	};

	return cmocka_run_group_tests(tests, server_start, server_end);
}
