/* SPDX-License-Identifier: MIT */
/* http: calls with a deadline. What is sent, how calls end, and when they are retried. */
#include "tests/unit/backend/client/http_rig.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "backend/base/print.h"
#include "tests/unit/clock.h"

#define call_scope struct rig_call cleanup(rig_clear)
#define BUDGET	   32 /* immediate retries, as in http.c */

static int plain(void **state)
{
	if (rig_setup(state))
		return -1;
	rig_prepare("plain");
	rig_connect();
	rig_expect("/reset", NULL);
	return 0;
}

static struct http_counts counts(void)
{
	struct http_counts n;

	http_count(rig.http, &n);
	return n;
}

/* --- requests and replies --- */

static void test_get(void **state)
{
	call_scope c = {0};

	rig_ask_call(&c, "/echo/../x?a=b%20c");
	assert_int_equal(c.status, 200);
	assert_non_null(strstr(c.body, "\"method\": \"GET\""));
	assert_non_null(strstr(c.body, "\"target\": \"/echo/../x?a=b%20c\""));
	assert_non_null(strstr(c.body, "[\"accept\", \"application/json, */*\"]"));
	assert_non_null(strstr(c.body, "[\"user-agent\", \"kxfs/" KXFS_VERSION "\"]"));
	assert_null(strstr(c.body, "accept-encoding"));
	assert_null(strstr(c.body, "authorization"));
	assert_false(c.sent);
	assert_int_equal(counts().failed, 0);
}

static void test_post(void **state)
{
	static const char body[] = "{\"a\": 1}";
	call_scope c = {.call = {.method = HTTP_POST, .body = body, .len = sizeof(body) - 1}};

	credentials.view.authorization = "Authorization: Bearer abc";
	rig_ask_call(&c, "/echo");
	assert_int_equal(c.status, 200);
	assert_non_null(strstr(c.body, "\"method\": \"POST\""));
	assert_non_null(strstr(c.body, "\"body\": \"{\\\"a\\\": 1}\""));
	assert_non_null(strstr(c.body, "[\"content-type\", \"application/json\"]"));
	assert_non_null(strstr(c.body, "[\"authorization\", \"Bearer abc\"]"));
	assert_null(strstr(c.body, "expect"));
}

static void test_delete(void **state)
{
	static const char body[] = "{}";
	call_scope with = {.call = {.method = HTTP_DELETE, .body = body, .len = 2}};
	call_scope without = {.call = {.method = HTTP_DELETE}};

	rig_ask_call(&with, "/echo");
	assert_non_null(strstr(with.body, "\"method\": \"DELETE\""));
	assert_non_null(strstr(with.body, "\"body\": \"{}\""));
	rig_ask_call(&without, "/echo");
	assert_non_null(strstr(without.body, "\"method\": \"DELETE\""));
	assert_non_null(strstr(without.body, "\"body\": \"\""));
}

static void test_compressed(void **state)
{
	call_scope c = {.call = {.compress = true}};

	rig_ask_call(&c, "/echo");
	assert_int_equal(c.status, 200);
	assert_non_null(strstr(c.body, "[\"accept-encoding\", \"gzip\"]"));
}

static void test_refusals(void **state)
{
	call_scope not_found = {0}, conflict = {.call = {.method = HTTP_POST}}, moved = {0};

	rig_ask_call(&not_found, "/nothing");
	assert_int_equal(not_found.err, 0);
	assert_int_equal(not_found.status, 404);
	assert_string_equal(not_found.body, "no such thing");
	rig_ask_call(&conflict, "/status?status=409&body=there");
	assert_int_equal(conflict.status, 409);
	assert_false(conflict.sent);
	assert_string_equal(conflict.body, "there");
	/* http does not follow redirects, so credentials are never sent elsewhere. */
	rig_ask_call(&moved, "/redirect");
	assert_int_equal(moved.status, 302);
	assert_string_equal(moved.body, "elsewhere");
}

/* http refuses a path or header that could inject a second request or another header. */
static void test_injection(void **state)
{
	static const char *const paths[] = {"/echo HTTP/1.1", "/echo\r\nX: y", "/a#b", "echo", ""};

	for (size_t i = 0; i < array_size(paths); i++) {
		call_scope c = {0};

		rig_ask_call(&c, paths[i]);
		assert_int_equal(c.err, -EINVAL);
		assert_false(c.sent);
	}
	for (size_t i = 0; i < 2; i++) {
		call_scope c = {0};

		credentials.view.authorization = i ? "Authorization: Bearer a\nX: y" : "A: \x7f";
		rig_ask_call(&c, "/echo");
		assert_int_equal(c.err, -EACCES);
		assert_false(c.sent);
		assert_null(strstr(c.text, "Bearer"));
	}
}

static void test_sizes(void **state)
{
	call_scope fits = {0}, large = {0}, allowed = {.call = {.max_body = 1 << 20}};
	call_scope words = {0};

	rig_ask_call(&fits, "/pieces?n=1&size=65536");
	assert_int_equal(fits.err, 0);
	assert_int_equal(fits.len, 65536);
	rig_ask_call(&large, "/pieces?n=1&size=65537");
	assert_int_equal(large.err, -EFBIG);
	assert_non_null(strstr(large.text, "too large"));
	rig_ask_call(&allowed, "/pieces?n=8&size=131072");
	assert_int_equal(allowed.err, 0);
	assert_int_equal(allowed.len, 1 << 20);
	assert_int_equal(allowed.body[(1 << 20) - 1], 'h');
	/* http keeps only the first 64 KiB of an error's text. */
	rig_ask_call(&words, "/pieces?status=500&n=3&size=60000");
	assert_int_equal(words.err, 0);
	assert_int_equal(words.status, 500);
	assert_int_equal(words.len, 65536);
}

/* --- deadlines --- */

static void test_deadline(void **state)
{
	call_scope get = {.call = {.deadline_ms = SURE_MS}};
	call_scope post = {.call = {.deadline_ms = SURE_MS, .method = HTTP_POST}};
	call_scope half = {.call = {.deadline_ms = SURE_MS, .method = HTTP_POST}};

	rig_send(&get, "/silent?id=s");
	rig_send(&post, "/silent?id=s");
	rig_send(&half, "/pieces?end=hang&status=201&id=h");
	while (rig_stats("s").seen < 2 || rig_stats("h").seen < 1)
		usleep(1000);
	/* Before this request is answered, the first bytes of the third reply have arrived. */
	rig_expect("/status", NULL);
	clock_pass(rig.loop, SURE_MS / 1000);
	rig_wait(&get);
	assert_int_equal(get.err, -ETIMEDOUT);
	assert_int_equal(get.status, 0);
	assert_non_null(strstr(get.text, "no answer within 6.0 s"));
	rig_wait(&post);
	assert_int_equal(post.err, -ETIMEDOUT);
	assert_true(post.sent);
	rig_wait(&half);
	assert_int_equal(half.err, -ETIMEDOUT);
	assert_int_equal(half.status, 201);
	assert_true(half.sent);
	assert_int_equal(counts().failed, 3);
	rig_expect("/status", NULL);
}

static void test_deadline_of_credentials(void **state)
{
	call_scope c = {.call = {.deadline_ms = 200, .method = HTTP_POST}};

	credentials.never = true;
	rig_ask_call(&c, "/echo");
	assert_int_equal(c.err, -ETIMEDOUT);
	assert_false(c.sent);
	assert_non_null(strstr(c.text, "no credential"));
}

/* --- counters --- */

static char *answers(void)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	tally_print(counts().answers, out, "r", (const char *const[]){"verb", "resource", "code"});
	assert_int_equal(fclose(out), 0);
	return text;
}

/* The counters name the verb and resource of a request as the server's RBAC rules do. */
static void test_names(void **state)
{
	static const struct {
		enum http_method method;
		const char *path, *verb, *resource;
	} cases[] = {
		{HTTP_GET, "/api/v1/namespaces/a/pods?limit=5", "list", "pods"},
		{HTTP_GET, "/api/v1/namespaces/a/pods?watch=true&x=/y", "watch", "pods"},
		{HTTP_GET, "/api/v1/namespaces/a/pods/p", "get", "pods"},
		{HTTP_GET, "/api/v1/namespaces/a/pods/p/log?follow=true", "get", "pods/log"},
		{HTTP_GET, "/apis/batch.volcano.sh/v1alpha1/namespaces/a/jobs", "list",
		 "jobs.batch.volcano.sh"},
		{HTTP_POST, "/apis/batch.volcano.sh/v1alpha1/namespaces/a/jobs", "create",
		 "jobs.batch.volcano.sh"},
		{HTTP_PATCH, "/apis/x.dev/v1beta2/namespaces/a/appwrappers/w?y", "patch",
		 "appwrappers.x.dev"},
		{HTTP_DELETE, "/apis/x.dev/v1/namespaces/a/jobs/j/status", "delete",
		 "jobs.x.dev/status"},
		{HTTP_GET, "/apis/scheduling.volcano.sh/v1beta1/queues?watch=true", "watch",
		 "queues.scheduling.volcano.sh"},
		{HTTP_GET, "/apis/scheduling.volcano.sh/v1beta1/queues/q", "get",
		 "queues.scheduling.volcano.sh"},
		{HTTP_GET, "/api/v1/namespaces/a", "get", "namespaces"},
		{HTTP_GET, "/apis/batch.volcano.sh/v1alpha1", "get", ""},
		{HTTP_GET, "/version", "get", ""},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		call_scope c = {.call = {.method = cases[i].method}};
		cleanup_free char *line = NULL;
		cleanup_free char *before = answers();
		cleanup_free char *after = NULL;
		int n = asprintf(&line, "kxfs_r{verb=\"%s\",resource=\"%s\",code=\"404\"} ",
				 cases[i].verb, cases[i].resource);

		assert_true(n > 0);
		rig_ask_call(&c, cases[i].path);
		assert_int_equal(c.status, 404);
		after = answers();
		assert_string_not_equal(before, after);
		assert_non_null(strstr(after, line));
	}
}

/* --- credentials --- */

static void test_no_credential(void **state)
{
	call_scope c = {.call = {.method = HTTP_POST, .retry = true}};
	unsigned asked = atomic_load(&counts().answers->n_rows);

	credentials.err = -ENOENT;
	credentials.text = "no token there";
	credentials.later = true;
	rig_ask_call(&c, "/echo");
	assert_int_equal(c.err, -EACCES);
	assert_string_equal(c.text, "no token there");
	assert_false(c.sent);
	assert_int_equal(atomic_load(&counts().answers->n_rows), asked);
}

static void test_unauthorized(void **state)
{
	call_scope fresh = {.call = {.method = HTTP_POST}}, still = {.call = {.method = HTTP_POST}};

	credentials.later = true;
	credentials.view.authorization = "Authorization: Bearer old";
	credentials.next_authorization = "Authorization: Bearer new";
	rig_ask_call(&fresh, "/token?token=new&id=t");
	assert_int_equal(fresh.status, 200);
	assert_string_equal(fresh.body, "in");
	assert_int_equal(rig_stats("t").seen, 2);
	/* The request is sent once more, but not repeatedly. */
	credentials.next_authorization = "Authorization: Bearer newer";
	rig_ask_call(&still, "/token?token=other&id=u");
	assert_int_equal(still.status, 401);
	assert_string_equal(still.body, "who are you");
	assert_int_equal(rig_stats("u").seen, 2);
	assert_int_equal(credentials.refusals, 2);
}

static void test_unauthorized_for_good(void **state)
{
	call_scope c = {0};

	rig_ask_call(&c, "/token?token=new&id=t");
	assert_int_equal(c.status, 401);
	assert_int_equal(rig_stats("t").seen, 1);
}

/* --- broken connections --- */

/* A peer that disappeared without closing is noticed, even by a stream that only waits. */
static void test_silent_peers(void **state)
{
	size_t n = 0;

	for (int fd = 3; fd < 256; fd++) {
		int domain = 0, alive = 0, after = 0;
		unsigned dead = 0;
		socklen_t size = sizeof(int);

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 || domain == AF_UNIX)
			continue;
		n++;
		getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &alive, &size);
		getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after, &size);
		getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, &size);
		assert_int_equal(alive, 1);
		assert_int_equal(after, 20);
		assert_int_equal(dead, 30000);
	}
	assert_int_equal(n, 1);
}

static void test_cut(void **state)
{
	call_scope get = {0}, post = {.call = {.method = HTTP_POST, .retry = true}};
	call_scope half = {.call = {.method = HTTP_POST, .retry = true}};
	call_scope head = {.call = {.method = HTTP_POST, .retry = true}};
	call_scope stranger = {.call = {.method = HTTP_POST, .retry = true}};

	rig_ask_call(&get, "/cut?id=g");
	assert_int_equal(get.err, -EIO);
	assert_true(strlen(get.text) > 0);
	/* The server may have acted on the request. The owner has to find that out. */
	rig_ask_call(&post, "/cut?id=p");
	assert_int_equal(post.err, -EIO);
	assert_int_equal(post.status, 0);
	assert_true(post.sent);
	assert_int_equal(rig_stats("p").seen, 1);
	rig_ask_call(&half, "/pieces?n=2&status=201&end=cut&id=h");
	assert_int_equal(half.err, -EIO);
	assert_int_equal(half.status, 201);
	assert_true(half.sent);
	assert_int_equal(rig_stats("h").seen, 1);
	/* A server that replies 401 has not acted, even if its reply breaks off. */
	rig_ask_call(&stranger, "/pieces?n=2&status=401&end=cut&id=s");
	assert_int_equal(stranger.err, 0);
	assert_int_equal(stranger.status, 401);
	assert_false(stranger.sent);
	/* curl accepts this half of a header as a reply. */
	rig_ask_call(&head, "/half-head?id=hh");
	assert_int_equal(head.err, -EIO);
	assert_int_equal(head.status, 0);
	assert_true(head.sent);
	assert_int_equal(rig_stats("hh").seen, 1);
}

/*
 * A connection that already served a request breaks. By default, curl would send the request again.
 */
static void test_cut_of_a_used_connection(void **state)
{
	static const enum http_method methods[] = {HTTP_POST, HTTP_DELETE};

	for (size_t i = 0; i < array_size(methods); i++) {
		call_scope c = {.call = {.method = methods[i], .retry = true}};
		char path[32], id[2] = {(char)('a' + i)};

		rig_expect("/status", NULL);
		(void)snprintf(path, sizeof(path), "/cut?times=1&id=%s", id);
		rig_ask_call(&c, path);
		assert_int_equal(c.err, -EIO);
		assert_true(c.sent);
		assert_non_null(strstr(c.text, "before the server answered"));
		assert_int_equal(rig_stats(id).seen, 1);
	}
}

static void test_cut_of_what_changes_nothing(void **state)
{
	call_scope c = {.call = {.method = HTTP_POST, .retry = true, .harmless = true}};

	rig_expect("/status", NULL);
	rig_ask_call(&c, "/cut?times=2&id=n");
	assert_int_equal(c.err, 0);
	assert_int_equal(c.status, 200);
	assert_int_equal(rig_stats("n").seen, 3);
}

static void test_cut_of_a_get(void **state)
{
	call_scope c = {.call = {.retry = true}}, told = {.call = {.retry = true, .stream = true}};

	rig_ask_call(&c, "/cut?times=2&id=c");
	assert_int_equal(c.err, 0);
	assert_int_equal(c.status, 200);
	assert_string_equal(c.body, "fine");
	assert_int_equal(rig_stats("c").seen, 3);
	/* The owner has already received bytes, so the call is not retried. */
	rig_ask_call(&told, "/pieces?n=2&end=cut&id=t");
	assert_int_equal(told.err, -EIO);
	assert_int_equal(told.status, 200);
	assert_int_equal(told.bytes, 20);
	assert_int_equal(rig_stats("t").seen, 1);
}

static void test_nobody_listens(void **state)
{
	call_scope once = {.call = {.method = HTTP_POST}}, unknown = {0};
	struct rig_call again[BUDGET + 1] = {0};

	rig_disconnect();
	rig_prepare("plain");
	rig_set(&rig.connection.server, "http://127.0.0.1:1");
	rig_connect();
	rig_ask_call(&once, "/echo");
	assert_int_equal(once.err, -EHOSTUNREACH);
	assert_false(once.sent);
	assert_non_null(strstr(once.text, "127.0.0.1:1: "));
	for (size_t i = 0; i < array_size(again); i++) {
		again[i].call = (struct http_call){.method = HTTP_POST, .retry = true};
		rig_send(&again[i], "/echo");
	}
	for (size_t i = 0; i < array_size(again); i++) {
		rig_wait(&again[i]);
		assert_int_equal(again[i].err, -EHOSTUNREACH);
		assert_false(again[i].sent);
		rig_clear(&again[i]);
	}
	assert_true(counts().retried >= BUDGET);
	rig_disconnect();

	rig_prepare("plain");
	rig_set(&rig.connection.server, "http://no-such-host.invalid");
	rig_connect();
	rig_ask_call(&unknown, "/echo");
	assert_int_equal(unknown.err, -EHOSTUNREACH);
	assert_non_null(strstr(unknown.text, "no-such-host.invalid"));
}

/* --- servers that ask to wait --- */

static void test_retry_after(void **state)
{
	call_scope c = {.call = {.method = HTTP_POST, .retry = true}}, late = c, no = {0};
	uint64_t since = loop_now_ms();

	rig_ask_call(&c, "/status?status=429&times=1&after=1&id=a");
	assert_int_equal(c.status, 200);
	assert_true(loop_now_ms() - since >= 1000);
	assert_int_equal(counts().retried, 1);
	assert_true(c.again);
	/*
	 * The server asks for a retry after the call's deadline. The call ends immediately with the
	 * server's reply.
	 */
	late.call.deadline_ms = 20000;
	rig_ask_call(&late, "/status?status=503&after=90&body=later&id=b");
	assert_int_equal(late.err, 0);
	assert_int_equal(late.status, 503);
	assert_int_equal(late.wait_ms, 60000);
	assert_string_equal(late.body, "later");
	assert_int_equal(rig_stats("b").seen, 1);
	/* This owner retries by itself. */
	rig_ask_call(&no, "/status?status=429&after=2&id=c");
	assert_int_equal(no.status, 429);
	assert_int_equal(no.wait_ms, 2000);
	assert_int_equal(rig_stats("c").seen, 1);
}

/*
 * http trusts a 503 only if the API server itself sent it. A proxy may send a 503 in place of a
 * reply that it lost.
 */
static void test_unavailable(void **state)
{
	static const enum http_method methods[] = {HTTP_POST, HTTP_PATCH, HTTP_DELETE};
	call_scope post = {.call = {.method = HTTP_POST, .retry = true}};

	for (size_t i = 0; i < array_size(methods); i++) {
		call_scope c = {.call = {.method = methods[i], .retry = true}};
		char path[64];

		(void)snprintf(path, sizeof(path),
			       "/status?status=503&times=1&body=upstream&id=%zu", i);
		rig_ask_call(&c, path);
		assert_int_equal(c.err, 0);
		assert_int_equal(c.status, 503);
		assert_false(c.again);
		assert_string_equal(c.body, "upstream");
	}
	rig_ask_call(&post, "/status?status=503&times=1&id=s&body=%7B%22kind%22:%22Status%22,"
			    "%22reason%22:%22ServiceUnavailable%22%7D");
	assert_int_equal(post.status, 200);
	assert_true(post.again);
}

/*
 * The first pause is about 250 ms, and each further one is twice as long. The upper bound allows
 * for a slow machine.
 */
static void test_backoff(void **state)
{
	call_scope c = {.call = {.retry = true}};
	uint64_t since = loop_now_ms();

	rig_ask_call(&c, "/status?status=503&times=3&id=y");
	assert_int_equal(c.status, 200);
	assert_in_range(loop_now_ms() - since, 187 + 375 + 750, 2 * SURE_MS);
	assert_int_equal(rig_stats("y").seen, 4);
	assert_int_equal(counts().retried, 3);
}

static void count_one(void *data)
{
	atomic_fetch_add((atomic_uint *)data, 1);
}

/*
 * http reports the first success after a failure, and then sends all waiting retries immediately.
 */
static void test_recovered(void **state)
{
	call_scope bad = {0}, good = {0}, again = {0}, last = {0};
	call_scope waits = {.call = {.retry = true, .deadline_ms = 60000}};
	atomic_uint n = 0;

	http_set_recovered(rig.http, count_one, &n);
	rig_ask_call(&good, "/echo");
	rig_ask_call(&bad, "/status?status=503&body=no");
	rig_ask_call(&again, "/echo");
	rig_ask_call(&last, "/echo");
	assert_int_equal(atomic_load(&n), 1);
	/* Without the success of another call, it would wait for 16 s. */
	rig_send(&waits, "/status?status=503&times=6&id=w");
	while (rig_stats("w").seen < 7) {
		call_scope more = {0};

		rig_ask_call(&more, "/echo");
	}
	rig_wait(&waits);
	assert_int_equal(waits.status, 200);
	assert_true(atomic_load(&n) > 1);
}

/* If a user waits for a call, its first failure makes kxfs request the credential again. */
static void test_urgent(void **state)
{
	call_scope urgent = {.call = {.retry = true, .urgent = true}}, plain_one = {0};

	credentials.hurries = 0;
	rig_ask_call(&plain_one, "/echo");
	assert_int_equal(credentials.hurries, 0);
	rig_ask_call(&urgent, "/status?status=503&times=1&id=h");
	assert_int_equal(credentials.hurries, 1);
}

/* If the server has trouble, http limits the retries of all calls together. */
static void test_budget(void **state)
{
	enum { N = 60 };
	struct rig_call *c = calloc(N, sizeof(*c));
	uint64_t since = loop_now_ms();
	unsigned seen;

	for (size_t i = 0; i < N; i++) {
		c[i].call.retry = true;
		rig_send(&c[i], "/status?status=503&body=no&id=x");
	}
	for (size_t i = 0; i < N; i++) {
		rig_wait(&c[i]);
		assert_int_equal(c[i].err, 0);
		assert_int_equal(c[i].status, 503);
		assert_string_equal(c[i].body, "no");
		rig_clear(&c[i]);
	}
	seen = rig_stats("x").seen;
	assert_true(seen > N);
	assert_true(seen <= N + BUDGET + (loop_now_ms() - since) / 500 + 1);
	assert_int_equal(counts().retried, seen - N);
	free(c);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(test_##t, plain, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(get),
		TEST(post),
		TEST(delete),
		TEST(compressed),
		TEST(refusals),
		TEST(injection),
		TEST(sizes),
		TEST(deadline),
		TEST(deadline_of_credentials),
		TEST(names),
		TEST(no_credential),
		TEST(unauthorized),
		TEST(unauthorized_for_good),
		TEST(silent_peers),
		TEST(cut),
		TEST(cut_of_a_used_connection),
		TEST(cut_of_what_changes_nothing),
		TEST(cut_of_a_get),
		TEST(nobody_listens),
		TEST(retry_after),
		TEST(unavailable),
		TEST(backoff),
		TEST(recovered),
		TEST(urgent),
		TEST(budget),
	};

	return cmocka_run_group_tests(tests, server_start, server_end);
}
