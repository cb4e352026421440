/* SPDX-License-Identifier: MIT */
/*
 * A loop without real time and a server without sockets, for tests of code that runs on the loop.
 * This file defines the functions of loop.h and http.h, so the library's own are not linked.
 * Everything runs in the test's thread, in an order that the test decides. fake_run runs what was
 * posted, fake_wait lets time pass up to the next timer, and each request waits in a list until the
 * test answers it.
 */
#pragma once

#include <utlist.h>

#include "backend/client/http.h"
#include "backend/base/uv.h"
#include "tests/unit/unit.h"

struct fake_job {
	/* The pool runs WORK before FN is called. NULL if there is no work. */
	loop_fn work, fn;
	void *data;
	struct fake_job *prev, *next;
};

/* A running timer. */
struct fake_timer {
	struct loop_timer *t;
	struct fake_timer *prev, *next;
};

struct http_request {
	struct http_call call;
	char *path, *body;
	bool paused;
	struct http_request *prev, *next;
};

static struct {
	uint64_t now; /* ms */
	struct fake_job *posted, *pool;
	struct fake_timer *timers;
	struct http_request *requests; /* unanswered requests, oldest first */
	size_t n_sent;
	bool refusing;	   /* http_send returns NULL */
	bool never_pauses; /* http_pause returns false */
} fake;

/* --- loop.h --- */

void loop_post(struct loop *loop, loop_fn fn, void *data)
{
	struct fake_job *j = calloc(1, sizeof(*j));

	assert_non_null(j);
	j->fn = fn;
	j->data = data;
	DL_APPEND(fake.posted, j);
}

void loop_post_or_drop(struct loop *loop, loop_fn fn, loop_fn drop, void *data)
{
	loop_post(loop, fn, data);
}

bool loop_is_here(const struct loop *loop)
{
	return true;
}

void loop_timer_stop(struct loop_timer *t)
{
	struct fake_timer *f, *next;

	t->position = 0;
	DL_FOREACH_SAFE(fake.timers, f, next)
		if (f->t == t) {
			DL_DELETE(fake.timers, f);
			free(f);
		}
}

void loop_timer_set(struct loop_timer *t, uint64_t ms)
{
	struct fake_timer *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	loop_timer_stop(t);
	t->at = fake.now + ms;
	t->position = 1;
	f->t = t;
	DL_APPEND(fake.timers, f);
}

/* The fake loop watches no descriptors. Where the spool needs a watch, it has its own timer. */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, bool priority, loop_fn fn, void *data)
{
	return NULL;
}

void loop_watch_free(struct loop_watch *watch)
{
}

int loop_signal(struct loop *loop, int sig, loop_fn fn, void *data)
{
	return 0;
}

void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data)
{
	struct fake_job *j = calloc(1, sizeof(*j));

	assert_non_null(j);
	j->work = work;
	j->fn = done;
	j->data = data;
	DL_APPEND(fake.pool, j);
}

void loop_work_of_many(struct loop *loop, loop_fn work, loop_fn done, void *data)
{
	loop_work(loop, work, done, data);
}

void loop_ref(struct loop *loop)
{
}

void loop_unref(struct loop *loop)
{
}

int64_t loop_time_ns(void)
{
	return (int64_t)(1700000000000 + fake.now) * 1000000;
}

uint64_t loop_now_ms(void)
{
	return fake.now;
}

uv_loop_t *loop_uv(struct loop *loop)
{
	return NULL;
}

static inline bool fake_step(struct fake_job **list)
{
	struct fake_job *j = *list;

	if (!j)
		return false;
	DL_DELETE(*list, j);
	if (j->work)
		j->work(j->data);
	j->fn(j->data);
	free(j);
	return true;
}

/* Run all posted calls, and all work of the pool. */
static inline void fake_run(void)
{
	while (fake_step(&fake.posted) || fake_step(&fake.pool))
		;
}

static inline void fake_nothing(void *data)
{
}

/* Let time pass up to the next timer, and run it. Return false if no timer is due within MS. */
static inline bool fake_wait(uint64_t ms)
{
	struct fake_timer *f;
	struct loop_timer *next = NULL;

	DL_FOREACH(fake.timers, f)
		if (!next || f->t->at < next->at)
			next = f->t;
	if (!next || next->at > fake.now + ms)
		return false;
	fake.now = max_of(fake.now, next->at);
	loop_timer_stop(next);
	next->fn(next->data);
	fake_run();
	return true;
}

/* Let MS pass, and run the timers that are due meanwhile. */
static inline void fake_pass(uint64_t ms)
{
	uint64_t until = fake.now + ms;

	while (fake_wait(until - fake.now))
		;
	fake.now = until;
}

/* --- http.h --- */

struct http {
	loop_fn stopped;
	void *data;
};

int http_new(struct loop *loop, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text)
{
	*ret_text = NULL;
	*ret = calloc(1, sizeof(**ret));
	return 0;
}

void http_free(struct http *http)
{
	free(http);
}

void http_set_recovered(struct http *http, loop_fn fn, void *data)
{
}

static inline void fake_forget(struct http_request *rq)
{
	DL_DELETE(fake.requests, rq);
	free(rq->path);
	free(rq->body);
	free(rq);
}

void http_stop(struct http *http, loop_fn fn, void *data)
{
	while (fake.requests)
		fake_forget(fake.requests);
	loop_post(NULL, fn, data);
}

struct http_request *http_send(struct http *http, const struct http_call *call)
{
	struct http_request *rq;

	assert_true(call->deadline_ms && call->done);
	if (fake.refusing)
		return NULL;
	rq = calloc(1, sizeof(*rq));
	assert_non_null(rq);
	rq->call = *call;
	rq->path = strdup(call->path);
	rq->body = call->body ? strndup(call->body, call->len) : NULL;
	rq->call.path = rq->path;
	rq->call.body = rq->body;
	DL_APPEND(fake.requests, rq);
	fake.n_sent++;
	return rq;
}

void http_cancel(struct http_request *rq)
{
	fake_forget(rq);
}

/* The test must not send bytes to a paused stream. */
bool http_pause(struct http_request *rq)
{
	rq->paused = !fake.never_pauses;
	return rq->paused;
}

void http_resume(struct http_request *rq)
{
	rq->paused = false;
}

void http_yield(struct http_request *rq)
{
}

char *http_trouble(const struct http *http)
{
	return NULL;
}

void http_count(struct http *http, struct http_counts *ret)
{
	*ret = (struct http_counts){0};
}

/* Return the oldest request whose path contains PART, or NULL if there is none. */
static inline struct http_request *fake_find(const char *part)
{
	struct http_request *rq;

	DL_FOREACH(fake.requests, rq)
		if (strstr(rq->path, part))
			return rq;
	return NULL;
}

static inline void fake_end(struct http_request *rq, const struct http_reply *reply)
{
	struct http_reply r = *reply;
	struct http_call call = rq->call;

	r.text = r.text ? r.text : "";
	r.body = r.body ? r.body : "";
	r.len = strlen(r.body);
	fake_forget(rq); /* first: the owner can't cancel a request from within its own done() */
	call.done(call.data, &r);
}

/* Answer RQ. If RQ is a stream and STATUS is 2xx, pass BODY to its bytes callback. */
static inline void fake_answer(struct http_request *rq, int status, const char *body)
{
	struct http_reply reply = {.status = status, .body = body};

	if (status / 100 == 2 && rq->call.head)
		rq->call.head(rq->call.data, status);
	if (status / 100 == 2 && rq->call.bytes) {
		int err = *body ? rq->call.bytes(rq->call.data, body, strlen(body)) : 0;

		reply.err = err < 0 ? err : 0;
		reply.body = "";
	}
	fake_end(rq, &reply);
}

/* Break the connection of RQ. SENT: the server may have acted on the request. */
static inline void fake_break(struct http_request *rq, int err, bool sent)
{
	fake_end(rq, &(struct http_reply){.err = err, .sent = sent, .text = "it broke"});
}

/* Stop all timers that are still running. */
static inline void fake_forget_timers(void)
{
	while (fake.timers)
		loop_timer_stop(fake.timers->t);
}
