/* SPDX-License-Identifier: MIT */
/*
 * Requests of users that are under way: what submitting, cancelling and ctl share. Each may take several calls to
 * the server, with time between: a try whose reply was lost is made again after a while, and the end of the mount
 * answers all that are left. I/O thread only.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/client/http.h"
#include "backend/impl/impl.h"
#include "spec/api/refusal.h"
#include "spec/pods/kind.h"

struct requests;

/* How long the outcome of a request whose reply was lost is looked for. */
#define REQUEST_FIND_OUT_MS 600000

struct request;

struct request_ops {
	void (*send)(struct request *r); /* the next try */
	void (*free)(struct request *r);
};

/* What all requests have. Whoever makes a request embeds it, all zero; requests.c alone writes its fields. */
struct request {
	const struct request_ops *ops;
	struct backend_request *rq; /* NULL: answered */
	const struct spec_kind *kind;
	char *resource; /* "jobs.batch.volcano.sh" */
	bool working;
	bool unclear;
	struct requests *all;
	struct http_request *call; /* under way */
	struct loop_timer timer;   /* until the next try */
	uint64_t since;		   /* loop_now_ms */
	unsigned tries;
	struct request *prev, *next;
};

/* HTTP, GROUP, which each request is in, and NAMESPACE are borrowed. */
struct requests *requests_new(struct loop *loop, struct http *http, struct group *group,
			      const char *namespace);
/* Answer all but those that are on the pool, which see that the mount ends when they come back. */
void requests_stop(struct requests *all);
bool requests_are_stopping(const struct requests *all);
void requests_free(struct requests *all); /* NULL is allowed */

/* R, which answers RQ, is under way until request_answer. */
void request_begin(struct requests *all, struct request *r, struct backend_request *rq,
		   const struct request_ops *ops);
/* It is about jobs of KIND. Before the first call. */
void request_set_kind(struct request *r, const struct spec_kind *kind);
/* A part of it is on the pool, so it must not be answered now. False at first. */
void request_set_working(struct request *r, bool working);
/* It is a submission that may have been launched, as far as is known here. False at first. */
void request_set_unclear(struct request *r, bool unclear);
/* ms since then */
uint64_t request_age(const struct request *r);
/* For the message of a refusal: VERB was asked for of the job NAME. Borrowed. */
struct spec_asked request_asked(const struct request *r, const char *verb, const char *name);
/*
 * Send CALL about the job whose object is NAME (NULL: about all jobs), with QUERY ("?..." or ""); or, if it has a path,
 * about what that names. R->call is it until request_replied, the first thing that its done() calls.
 */
void request_call(struct request *r, const char *name, const char *query,
		  const struct http_call *call);
void request_replied(struct request *r);
/* Call the send() of R's OPS after a while, at least WAIT_MS. False: it has been tried long enough. */
bool request_again(struct request *r, unsigned wait_ms);
/* Answer R, and free it. */
void request_answer(struct request *r, int err, const char *id, const char *text);
void request_answer_dry_run(struct request *r, const struct backend_made *made);
