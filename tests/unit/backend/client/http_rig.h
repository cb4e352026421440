/* SPDX-License-Identifier: MIT */
/*
 * What all tests of http need: the servers of http_server.py, a loop, credentials that the test
 * sets, and calls that the test can wait for. Each test checks that it leaves no open descriptors.
 */
#pragma once

#include "tests/unit/waiting.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "backend/base/file.h"
#include "backend/client/http.h"

#define MANY_MS 230000 /* a deadline that no test reaches */
/* The shortest deadline in a test that must do something before the deadline. */
#define SURE_MS 6000

extern char **environ;

static struct {
	pid_t pid;
	FILE *io; /* its standard input and output */
	char line[512];
} server;

/* What credential_get returns. Tests set this. I/O thread. */
static struct {
	int err;
	const char *text;
	struct credential_parts view;
	/* What credential_get returns after a refusal, or NULL if asking again does not help. */
	const char *next_authorization;
	bool later; /* answer from a timer */
	bool never;
	unsigned refusals;
	unsigned hurries;
	struct loop_timer timer;
	credential_fn fn;
	void *data;
} credentials;

static struct {
	struct loop *loop;
	struct spec_connection connection;
	struct http *http;
	size_t descriptors; /* number of descriptors before the test */
	char url[64];
} rig;

static inline void rig_run(loop_fn fn, void *data)
{
	run_on(rig.loop, fn, data);
}

/* --- credentials --- */

static inline void credential_on_timer(void *data)
{
	credentials.fn(credentials.data, credentials.err, &credentials.view, credentials.text);
}

uint64_t credential_get(struct credential *cr, credential_fn fn, void *data)
{
	if (credentials.never)
		return 1;
	if (!credentials.later) {
		fn(data, credentials.err, &credentials.view, credentials.text);
		return 0;
	}
	credentials.fn = fn;
	credentials.data = data;
	loop_timer_init(&credentials.timer, rig.loop, credential_on_timer, NULL);
	loop_timer_set(&credentials.timer, 10);
	return 1;
}

void credential_cancel(struct credential *cr, uint64_t ticket)
{
	assert_int_equal(ticket, 1);
	loop_timer_stop(&credentials.timer);
}

void credential_retry_now(struct credential *cr)
{
	credentials.hurries++;
}

bool credential_refused(struct credential *cr, uint64_t generation)
{
	if (generation != credentials.view.generation)
		return true;
	credentials.refusals++;
	if (!credentials.next_authorization)
		return false;
	credentials.view.authorization = credentials.next_authorization;
	credentials.next_authorization = NULL;
	credentials.view.generation++;
	return true;
}

/* --- the servers --- */

static inline int server_start(void **state)
{
	const char *const args[] = {"/usr/bin/python3",
				    TEST_SOURCE "/tests/unit/backend/client/http_server.py", NULL};
	posix_spawn_file_actions_t actions;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
	posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
	assert_int_equal(posix_spawn(&server.pid, args[0], &actions, NULL,
				     (char *const *)(uintptr_t)args, environ),
			 0);
	posix_spawn_file_actions_destroy(&actions);
	close(pair[1]);
	server.io = fdopen(pair[0], "r");
	assert_non_null(fgets(server.line, sizeof(server.line), server.io));
	/* The first loop of a process opens descriptors that stay open. */
	loop_new(&rig.loop);
	assert_int_equal(loop_start(rig.loop), 0);
	loop_stop(rig.loop);
	loop_free(take_ptr(rig.loop));
	return 0;
}

static inline int server_end(void **state)
{
	int status;

	(void)fclose(server.io); /* then the server ends, and removes its files */
	assert_int_equal(waitpid(server.pid, &status, 0), server.pid);
	return 0;
}

static inline unsigned server_port(const char *name)
{
	char key[32];
	const char *at;

	(void)snprintf(key, sizeof(key), " %s ", name);
	at = strstr(server.line, key);
	assert_non_null(at);
	return (unsigned)strtoul(at + strlen(key), NULL, 10);
}

/* Return a certificate or key that the server created, as text. malloc'ed. */
static inline char *server_pem(const char *name)
{
	cleanup_free char *path = NULL;
	char *text;
	size_t len;

	assert_true(asprintf(&path, "%.*s/%s", (int)strcspn(server.line, " "), server.line, name) >
		    0);
	assert_int_equal(file_read(path, 65535, &text, &len), 0);
	return text;
}

/* --- a connection --- */

/* Return the number of open descriptors. */
static inline size_t rig_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline void rig_set(char **field, const char *value)
{
	free(*field);
	*field = strdup(value);
}

static inline void rig_post(void *data)
{
	sem_post(data);
}

static inline void rig_stop_now(void *data)
{
	http_stop(rig.http, rig_post, data);
}

/* Stop http, which ends all requests. No callback is called after that. */
static inline void rig_disconnect(void)
{
	sem_t done;

	if (rig.http) {
		sem_init(&done, 0, 0);
		rig_run(rig_stop_now, &done);
		sem_wait_or_fail(&done);
		sem_destroy(&done);
		http_free(take_ptr(rig.http));
	}
	spec_connection_clear(&rig.connection);
}

/*
 * Fill in the connection to server NAME, with everything that its CA verifies, in place of the
 * previous one. Call rig_connect afterwards to create the http.
 */
static inline void rig_prepare(const char *name)
{
	rig_disconnect();
	memset(&credentials, 0, sizeof(credentials));
	(void)snprintf(rig.url, sizeof(rig.url), "http%s://localhost:%u",
		       strcmp(name, "plain") == 0 ? "" : "s", server_port(name));
	rig.connection = (struct spec_connection){
		.context = strdup("test"),
		.server = strdup(rig.url),
		.ca_pem = server_pem("ca.pem"),
		.ca_file = strdup(""),
		.tls_server_name = strdup(""),
		.proxy_url = strdup(""),
		.as = strdup(""),
		.as_uid = strdup(""),
	};
}

static inline void rig_connect(void)
{
	cleanup_free char *text = NULL;

	assert_int_equal(http_new(rig.loop, &rig.connection, NULL, &rig.http, &text), 0);
	assert_null(text);
}

static inline void rig_begin(const char *name)
{
	rig_prepare(name);
	rig_connect();
}

static inline int rig_setup(void **state)
{
	rig.descriptors = rig_descriptors();
	loop_new(&rig.loop);
	return loop_start(rig.loop);
}

static inline int rig_teardown(void **state)
{
	rig_disconnect();
	loop_stop(rig.loop);
	loop_free(take_ptr(rig.loop));
	/* curl's name lookup thread may still have open descriptors. */
	for (int i = 0; i < WAIT_S * 100 && rig_descriptors() > rig.descriptors; i++)
		usleep(10000);
	assert_int_equal(rig_descriptors(), rig.descriptors);
	return 0;
}

/* --- calls --- */

/* A call and its result. The test clears it and fills in CALL. rig_send sets the rest. */
struct rig_call {
	struct http_call call;
	struct http_request *request;
	sem_t done;
	int err, status;
	unsigned wait_ms;
	bool over, sent, again;
	char text[512];
	char *body; /* freed by rig_clear */
	size_t len;

	/* How often each callback was called, and what it must do: */
	atomic_uint heads;
	int fail; /* return this after FAIL_AFTER bytes */
	atomic_size_t bytes;
	sem_t head_came;
	size_t fail_after;
	bool failed; /* FAIL was returned */
	void (*on_head)(struct rig_call *c);
	void (*on_bytes)(struct rig_call *c);
	void (*on_done)(struct rig_call *c);
};

static inline void rig_on_head(void *data, int status)
{
	struct rig_call *c = data;

	assert_false(c->over);
	assert_int_equal(status / 100, 2);
	atomic_fetch_add(&c->heads, 1);
	sem_post(&c->head_came);
	if (c->on_head)
		c->on_head(c);
}

static inline int rig_on_bytes(void *data, const char *bytes, size_t n)
{
	struct rig_call *c = data;

	assert_false(c->over || c->failed);
	assert_int_equal(atomic_load(&c->heads), 1);
	atomic_fetch_add(&c->bytes, n);
	if (c->on_bytes)
		c->on_bytes(c);
	c->failed = c->fail && atomic_load(&c->bytes) >= c->fail_after;
	return c->failed ? c->fail : 0;
}

static inline void rig_on_done(void *data, const struct http_reply *reply)
{
	struct rig_call *c = data;

	assert_false(c->over);
	c->over = true;
	c->request = NULL;
	c->err = reply->err;
	c->status = reply->status;
	c->sent = reply->sent;
	c->again = reply->again;
	c->wait_ms = reply->wait_ms;
	(void)snprintf(c->text, sizeof(c->text), "%s", reply->text);
	c->body = malloc(reply->len + 1);
	memcpy(c->body, reply->body, reply->len);
	c->body[reply->len] = '\0';
	c->len = reply->len;
	if (c->on_done)
		c->on_done(c);
	sem_post(&c->done);
}

static inline void rig_send_now(void *data)
{
	struct rig_call *c = data;

	c->request = http_send(rig.http, &c->call);
	assert_non_null(c->request);
	assert_false(c->over);
}

/* Send C. If C->call.stream is set, on_head() and on_bytes() are called too. */
static inline void rig_send(struct rig_call *c, const char *path)
{
	sem_init(&c->done, 0, 0);
	sem_init(&c->head_came, 0, 0);
	c->call.path = path;
	if (!c->call.deadline_ms)
		c->call.deadline_ms = MANY_MS;
	if (c->call.stream) {
		c->call.head = rig_on_head;
		c->call.bytes = rig_on_bytes;
	}
	c->call.done = rig_on_done;
	c->call.data = c;
	rig_run(rig_send_now, c);
}

static inline void rig_wait(struct rig_call *c)
{
	sem_wait_or_fail(&c->done);
}

static inline void rig_cancel_now(void *data)
{
	struct rig_call *c = data;

	if (c->request)
		http_cancel(take_ptr(c->request));
}

/*
 * Cancel the call if it is still under way, so that no callback is called any more, and free its
 * memory.
 */
static inline void rig_clear(struct rig_call *c)
{
	if (rig.http)
		rig_run(rig_cancel_now, c);
	free(c->body);
	sem_destroy(&c->done);
	sem_destroy(&c->head_came);
}

/* Send C and wait until it ends. The caller clears it with rig_clear. */
static inline void rig_ask_call(struct rig_call *c, const char *path)
{
	rig_send(c, path);
	rig_wait(c);
}

/* Return the number that the reply to PATH contains: /seen?id=ID, /most, /mix. */
static inline unsigned rig_number(const char *path)
{
	struct rig_call c cleanup(rig_clear) = {0};

	rig_ask_call(&c, path);
	assert_int_equal(c.status, 200);
	return (unsigned)strtoul(c.body, NULL, 10);
}

/* Return how C has ended, as text: the error, the status, the body, and so on. */
static inline const char *rig_result(const struct rig_call *c)
{
	static char text[256];
	FILE *out = fmemopen(text, sizeof(text), "w");

	if (c->err)
		(void)fprintf(out, "%s, %d", strerror(-c->err), c->status);
	else if (c->len > 30)
		(void)fprintf(out, "%d (%zu bytes)", c->status, c->len);
	else
		(void)fprintf(out, "%d%s%s", c->status, c->len ? " " : "", c->body);
	if (c->heads)
		(void)fprintf(out, ", streamed %zu", atomic_load(&c->bytes));
	(void)fprintf(out, "%s%s", c->sent ? ", sent" : "", c->again ? ", again" : "");
	if (c->wait_ms)
		(void)fprintf(out, ", wait %u ms", c->wait_ms);
	(void)fclose(out);
	return text;
}

/* Send C, and assert that its result is WANT. The caller clears C. */
static inline void rig_check(struct rig_call *c, const char *path, const char *want)
{
	rig_ask_call(c, path);
	assert_string_equal(rig_result(c), want);
}

/* Assert that a GET of PATH returns 200 and BODY, or any body if BODY is NULL. */
static inline void rig_expect(const char *path, const char *body)
{
	struct rig_call c cleanup(rig_clear) = {0};

	rig_ask_call(&c, path);
	assert_string_equal(c.text, "");
	assert_int_equal(c.status, 200);
	if (body)
		assert_string_equal(c.body, body);
}
