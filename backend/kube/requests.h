/* SPDX-License-Identifier: MIT */
/*
 * Requests of users that are under way: what submissions, cancellations and ctl have in common. A request may take
 * several calls to the server, with pauses between them: a try whose reply was lost is made again after a while. The
 * end of the mount answers the requests that are left. I/O thread only.
 */
#pragma once

#include "backend/base/backoff.h"
#include "backend/base/group.h"
#include "backend/client/http.h"
#include "backend/impl/impl.h"
#include "spec/api/refusal.h"
#include "spec/pods/kind.h"

struct requests;

/* How long kxfs looks for the outcome of a request whose reply was lost. */
#define REQUEST_FIND_OUT_MS 600000

struct request;

struct request_ops {
	void (*send)(struct request *r); /* sends the next try */
	void (*free)(struct request *r);
};

/*
 * The members that all requests have. Whoever makes a request embeds this, all zero; only requests.c writes its fields.
 */
struct request {
	const struct request_ops *ops;
	struct backend_request *rq; /* NULL: it was answered */
	const struct spec_kind *kind;
	char *resource; /* the resource that it is about, such as "jobs.batch.volcano.sh" */
	bool working;
	bool unclear;
	struct requests *all;
	struct http_request *call; /* the call that is under way; NULL: none */
	struct loop_timer timer;   /* runs until the next try */
	uint64_t since;		   /* when the request began, by loop_now_ms */
	struct backoff backoff;
	struct request *prev, *next;
};

/* HTTP, GROUP and NAMESPACE are borrowed; each request enters GROUP. */
struct requests *requests_new(struct loop *loop, struct http *http, struct group *group,
			      const char *namespace);
/* Answer all requests but those of which a part is on the pool; these are answered when that comes back. */
void requests_stop(struct requests *all);
bool requests_are_stopping(const struct requests *all);
void requests_free(struct requests *all); /* NULL is allowed */

/* Begin R, which answers RQ, and is under way until request_answer. */
void request_begin(struct requests *all, struct request *r, struct backend_request *rq,
		   const struct request_ops *ops);
/* R is about jobs of KIND. To be called before the first call. */
void request_set_kind(struct request *r, const struct spec_kind *kind);
/* A part of R is on the pool (WORKING), so R must not be answered now. False at first. */
void request_set_working(struct request *r, bool working);
/* R is a submission that may have been launched, as far as is known here. False at first. */
void request_set_unclear(struct request *r, bool unclear);
/* How many ms ago R began. */
uint64_t request_age(const struct request *r);
/* What the text of a refusal needs: VERB was asked for of the job NAME. Borrowed. */
struct spec_asked request_asked(const struct request *r, const char *verb, const char *name);
/*
 * Send CALL about the job whose object is NAME (NULL: about all jobs), with QUERY ("?..." or ""); or, if CALL has a
 * path, about what that names. CALL is R->call until its done() calls request_replied, as it does first of all.
 */
void request_call(struct request *r, const char *name, const char *query,
		  const struct http_call *call);
void request_replied(struct request *r);
/* Call the send() of R's OPS after a pause of at least WAIT_MS. False: R has been tried long enough. */
bool request_again(struct request *r, unsigned wait_ms);
/* Answer R, and free it. */
void request_answer(struct request *r, int err, const char *id, const char *text);
void request_answer_dry_run(struct request *r, const struct backend_made *made);
