/* SPDX-License-Identifier: MIT */
/*
 * Requests of users under way: the common part of submissions, cancellations and ctl. A request may take several calls
 * to the server, with pauses between them: after a lost reply a call is repeated. The end of the mount answers the
 * requests that are left. I/O thread only.
 */
#pragma once

#include "backend/base/random.h"
#include "backend/base/work.h"
#include "backend/client/http.h"
#include "backend/impl/impl.h"
#include "spec/api/refusal.h"
#include "spec/pods/kind.h"

struct requests;

/* How long kxfs tries to find out the outcome of a request whose reply was lost. */
#define REQUEST_FIND_OUT_MS 600000

struct request;

struct request_ops {
	void (*send)(struct request *r); /* send the next call */
	void (*free)(struct request *r);
};

/* Embed this, all zero. Only requests.c writes its fields. */
struct request {
	const struct request_ops *ops;
	struct backend_request *rq; /* NULL after the answer */
	const struct spec_kind *kind;
	char *resource; /* "jobs.batch.volcano.sh" */
	bool working;
	bool unclear;
	struct requests *all;
	struct http_request *call; /* the call that is under way, or NULL */
	struct loop_timer timer;   /* runs until the next call */
	uint64_t since;		   /* when the request began, by loop_now_ms */
	struct backoff backoff;
	struct request *prev, *next;
};

/* HTTP, GROUP and NAMESPACE are borrowed; each request enters GROUP. */
struct requests *requests_new(struct loop *loop, struct http *http, struct group *group,
			      const char *namespace);
/* Answer all requests, except those with work on the pool, which are answered when that returns. */
void requests_stop(struct requests *all);
bool requests_are_stopping(const struct requests *all);
void requests_free(struct requests *all); /* NULL is allowed */

/* Begin R, which will answer RQ by request_answer. */
void request_begin(struct requests *all, struct request *r, struct backend_request *rq,
		   const struct request_ops *ops);
/* R is about jobs of KIND. Call this before the first request_call. */
void request_set_kind(struct request *r, const struct spec_kind *kind);
/* WORKING: R has work on the pool, so it must not be answered now. False at first. */
void request_set_working(struct request *r, bool working);
/* UNCLEAR: R is a submission that may have been launched. False at first. */
void request_set_unclear(struct request *r, bool unclear);
/* Return how many ms ago R began. */
uint64_t request_age(const struct request *r);
/* Return the input for the text of a refusal of VERB on the job NAME. Borrowed. */
struct spec_asked request_asked(const struct request *r, const char *verb, const char *name);
/*
 * Send CALL about the object NAME (NULL: about all jobs), with QUERY ("?..." or ""); or, if CALL has a path, to that.
 * Its done() first calls request_replied.
 */
void request_call(struct request *r, const char *name, const char *query,
		  const struct http_call *call);
void request_replied(struct request *r);
/* Call send() of R's OPS after a pause of at least WAIT_MS. False: R has taken too long. */
bool request_again(struct request *r, unsigned wait_ms);
/* Answer R, and free it. */
void request_answer(struct request *r, int err, const char *id, const char *text);
void request_answer_dry_run(struct request *r, const struct backend_made *made);
