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
	rig_begin("plain");
	rig_expect("/reset", NULL);
	return 0;
}

static struct http_counts counts(void)
{
	struct http_counts n;

	http_count(rig.http, &n);
	return n;
}

#define POST   .method = HTTP_POST
#define DELETE .method = HTTP_DELETE
#define PATCH  .method = HTTP_PATCH

/* What the server gets. */
static void test_request(void **state)
{
#define COMMON "accept: application/json, */*\n"
#define AGENT  "user-agent: kxfs/" KXFS_VERSION "\n\n"
	static const struct {
		struct http_call call;
		const char *path, *authorization, *request;
	} rows[] = {
		{{0}, "/echo/../x?a=b%20c", NULL, "GET /echo/../x?a=b%20c\n" COMMON AGENT},
		{{.compress = true},
		 "/echo",
		 NULL,
		 "GET /echo\n" COMMON "accept-encoding: gzip\n" AGENT},
		{{POST, .body = "{\"a\": 1}", .len = 8},
		 "/echo",
		 "Authorization: Bearer abc",
		 "POST /echo\n" COMMON "authorization: Bearer abc\ncontent-length: 8\n"
		 "content-type: application/json\n" AGENT "{\"a\": 1}"},
		{{DELETE, .body = "{}", .len = 2},
		 "/echo",
		 NULL,
		 "DELETE /echo\n" COMMON "content-length: 2\ncontent-type: application/json\n" AGENT
		 "{}"},
		{{DELETE}, "/echo", NULL, "DELETE /echo\n" COMMON AGENT},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		call_scope c = {.call = rows[i].call};

		credentials.view.authorization = rows[i].authorization;
		rig_ask_call(&c, rows[i].path);
		assert_int_equal(c.status, 200);
		/* the first line is the host */
		assert_string_equal(strchr(c.body, '\n') + 1, rows[i].request);
	}
	assert_int_equal(counts().failed, 0);
}

/*
 * What the owner of a call gets, and how often the server has got the request. A broken connection
 * has already served a request. By default, curl would then send a request again.
 */
static void test_results(void **state)
{
#define RETRY	   .retry = true
#define UNANSWERED "before the server answered"
#define API_ERROR  "%7B%22kind%22:%22Status%22,%22reason%22:%22ServiceUnavailable%22%7D"
	static const struct {
		const char *path, *result;
		struct http_call call;
		const char *says;  /* part of the text for people, if there must be one */
		unsigned least_ms; /* the call does not end earlier */
	} rows[] = {
		{"/nothing?", "404 no such thing, seen 1", .call = {0}},
		{"/status?status=409&body=there", "409 there, seen 1", .call = {POST}},
		/* http does not follow redirects, so credentials are never sent elsewhere. */
		{"/redirect?", "302 elsewhere, seen 1", .call = {0}},
		/* http refuses a path that could inject a second request or a header. */
		{"/echo HTTP/1.1", "Invalid argument, 0, seen 0", .call = {0}},
		{"/echo\r\nX: y", "Invalid argument, 0, seen 0", .call = {0}},
		{"/a#b", "Invalid argument, 0, seen 0", .call = {0}},
		{"echo", "Invalid argument, 0, seen 0", .call = {0}},
		{"", "Invalid argument, 0, seen 0", .call = {0}},

		{"/pieces?size=65536", "200 (65536 bytes), seen 1", .call = {0}},
		{"/pieces?size=65537", "File too large, 200, sent, seen 1", .says = "too large"},
		{"/pieces?n=8&size=131072", "200 (1048576 bytes), seen 1",
		 .call = {.max_body = 1 << 20}},
		/* http keeps only the first 64 KiB of an error's text. */
		{"/pieces?status=500&n=3&size=60000", "500 (65536 bytes), seen 1", .call = {0}},

		/* A call that has no effect is retried, but not if the owner has received bytes. */
		{"/cut?times=2", "200 fine, seen 3", .call = {RETRY}},
		{"/cut?times=2", "200 fine, seen 3", .call = {POST, RETRY, .harmless = true}},
		{"/pieces?n=2&end=cut", "Input/output error, 200, streamed 20, sent, seen 1",
		 .call = {RETRY, .stream = true}},
		/* The server may have acted on the request. The owner has to find that out. */
		{"/cut?", "Input/output error, 0, sent, seen 1", .call = {POST, RETRY},
		 .says = UNANSWERED},
		{"/cut?", "Input/output error, 0, sent, seen 1", .call = {DELETE, RETRY},
		 .says = UNANSWERED},
		{"/pieces?status=201&end=cut", "Input/output error, 201, sent, seen 1",
		 .call = {POST, RETRY}},
		/* curl accepts this half of a header as a reply. */
		{"/half-head?", "Input/output error, 0, sent, seen 1", .call = {POST, RETRY}},
		/* A server that replies 401 has not acted, even if its reply breaks off. */
		{"/pieces?status=401&end=cut", "401 aaaaaaaaaa, seen 1", .call = {POST, RETRY}},

		/*
		 * http trusts a 503 only if the API server itself sent it. A proxy may send a 503
		 * in place of a reply that it lost.
		 */
		{"/status?status=503&times=1&body=proxy", "503 proxy, seen 1",
		 .call = {POST, RETRY}},
		{"/status?status=503&times=1&body=proxy", "503 proxy, seen 1",
		 .call = {PATCH, RETRY}},
		{"/status?status=503&times=1&body=proxy", "503 proxy, seen 1",
		 .call = {DELETE, RETRY}},
		{"/status?status=503&times=1&body=" API_ERROR, "200 fine, again, seen 2",
		 .call = {POST, RETRY}},
		/* The first pause is about 250 ms, and each further one is twice as long. */
		{"/status?status=503&times=3", "200 fine, again, seen 4", .call = {RETRY},
		 .least_ms = 187 + 375 + 750},
		{"/status?status=429&times=1&after=1", "200 fine, again, seen 2",
		 .call = {POST, RETRY}, .least_ms = 1000},
		/*
		 * The server asks for a retry after the call's deadline. The call ends immediately
		 * with the server's reply. The owner of the next call retries by itself.
		 */
		{"/status?status=503&after=90&body=later", "503 later, wait 60000 ms, seen 1",
		 .call = {POST, RETRY, .deadline_ms = 20000}},
		{"/status?status=429&after=2", "429, wait 2000 ms, seen 1", .call = {0}},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		call_scope c = {.call = rows[i].call};
		uint64_t since = loop_now_ms();
		char path[256], seen_path[32], result[256];
		unsigned seen;

		(void)snprintf(path, sizeof(path), *rows[i].path ? "%s&id=%zu" : "%s", rows[i].path,
			       i);
		(void)snprintf(seen_path, sizeof(seen_path), "/seen?id=%zu", i);
		rig_ask_call(&c, path);
		if (rows[i].least_ms) /* the upper bound allows for a slow machine */
			assert_in_range(loop_now_ms() - since, rows[i].least_ms, 2 * SURE_MS);
		seen = rig_number(seen_path);
		(void)snprintf(result, sizeof(result), "%s, seen %u", rig_result(&c), seen);
		assert_string_equal(result, rows[i].result);
		if (rows[i].says && !strstr(c.text, rows[i].says))
			fail_msg("%s: %s", path, c.text);
	}
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
	while (rig_number("/seen?id=s") < 2 || rig_number("/seen?id=h") < 1)
		usleep(1000);
	/* Before this request is answered, the first bytes of the third reply have arrived. */
	rig_expect("/status", NULL);
	clock_pass(rig.loop, SURE_MS / 1000);
	rig_wait(&get);
	assert_string_equal(rig_result(&get), "Connection timed out, 0, sent");
	assert_non_null(strstr(get.text, "no answer within 6.0 s"));
	rig_wait(&post);
	assert_string_equal(rig_result(&post), "Connection timed out, 0, sent");
	rig_wait(&half);
	assert_string_equal(rig_result(&half), "Connection timed out, 201, sent");
	assert_int_equal(counts().failed, 3);
	rig_expect("/status", NULL);
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
		{HTTP_GET, "/apis/x.dev/v1/namespaces/a/jobs", "list", "jobs.x.dev"},
		{HTTP_POST, "/apis/x.dev/v1/namespaces/a/jobs", "create", "jobs.x.dev"},
		{HTTP_PATCH, "/apis/x.dev/v1/namespaces/a/jobs/j?y", "patch", "jobs.x.dev"},
		{HTTP_DELETE, "/apis/x.dev/v1/namespaces/a/jobs/j/status", "delete",
		 "jobs.x.dev/status"},
		{HTTP_GET, "/apis/x.dev/v1beta1/queues?watch=true", "watch", "queues.x.dev"},
		{HTTP_GET, "/apis/x.dev/v1beta1/queues/q", "get", "queues.x.dev"},
		{HTTP_GET, "/api/v1/namespaces/a", "get", "namespaces"},
		{HTTP_GET, "/apis/x.dev/v1alpha1", "get", ""},
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

/* Without a credential, http sends nothing. */
static void test_no_credential(void **state)
{
	call_scope none = {.call = {POST, RETRY}}, late = {.call = {POST, .deadline_ms = 200}};
	unsigned asked = atomic_load(&counts().answers->n_rows);

	credentials.err = -ENOENT;
	credentials.text = "no token there";
	credentials.later = true;
	rig_check(&none, "/echo", "Permission denied, 0");
	assert_string_equal(none.text, "no token there");
	credentials.never = true;
	rig_check(&late, "/echo", "Connection timed out, 0");
	assert_non_null(strstr(late.text, "no credential"));
	credentials.never = credentials.later = false;
	credentials.err = 0;
	/* These would inject another header. */
	for (size_t i = 0; i < 2; i++) {
		call_scope c = {0};

		credentials.view.authorization = i ? "Authorization: Bearer a\nX: y" : "A: \x7f";
		rig_check(&c, "/echo", "Permission denied, 0");
		assert_null(strstr(c.text, "Bearer"));
	}
	assert_int_equal(atomic_load(&counts().answers->n_rows), asked);
}

/* After a 401, the request is sent once more with a new credential, if there is one. */
static void test_unauthorized(void **state)
{
	call_scope fresh = {.call = {POST}}, still = {.call = {POST}}, good = {0};

	credentials.later = true;
	credentials.view.authorization = "Authorization: Bearer old";
	credentials.next_authorization = "Authorization: Bearer new";
	rig_check(&fresh, "/token?token=new&id=t", "200 in");
	assert_int_equal(rig_number("/seen?id=t"), 2);
	credentials.next_authorization = "Authorization: Bearer newer";
	rig_check(&still, "/token?token=other&id=u", "401 who are you");
	assert_int_equal(rig_number("/seen?id=u"), 2);
	assert_int_equal(credentials.refusals, 2);
	rig_check(&good, "/token?token=newest&id=v", "401 who are you");
	assert_int_equal(rig_number("/seen?id=v"), 1);
}

/* --- servers in trouble --- */

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

static void test_nobody_listens(void **state)
{
	call_scope refused = {.call = {POST, RETRY, .deadline_ms = 1000}}, unknown = {0};

	rig_prepare("plain");
	rig_set(&rig.connection.server, "http://127.0.0.1:1");
	rig_connect();
	rig_check(&refused, "/echo", "No route to host, 0");
	assert_non_null(strstr(refused.text, "127.0.0.1:1: "));
	assert_true(counts().retried > 0);
	rig_prepare("plain");
	rig_set(&rig.connection.server, "http://no-such-host.invalid");
	rig_connect();
	rig_check(&unknown, "/echo", "No route to host, 0");
	assert_non_null(strstr(unknown.text, "no-such-host.invalid"));
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
	while (rig_number("/seen?id=w") < 7) {
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
		assert_non_null(strstr(rig_result(&c[i]), "503 no"));
		rig_clear(&c[i]);
	}
	seen = rig_number("/seen?id=x");
	assert_true(seen > N);
	assert_true(seen <= N + BUDGET + (loop_now_ms() - since) / 500 + 1);
	assert_int_equal(counts().retried, seen - N);
	free(c);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(test_##t, plain, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(request),	     TEST(results),	 TEST(deadline),     TEST(names),
		TEST(no_credential), TEST(unauthorized), TEST(silent_peers), TEST(nobody_listens),
		TEST(recovered),     TEST(urgent),	 TEST(budget),
	};

	return cmocka_run_group_tests(tests, server_start, server_end);
}
