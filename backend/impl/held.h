/* SPDX-License-Identifier: MIT */
/*
 * Jobs that are held: submitted, and launched later, when their conditions hold (spec/record/held.h). They stand
 * between the requests and the implementation, which has made a dry run of them, and launches them like any other file.
 * I/O thread, unless said otherwise; the head of held.c says which objects there are.
 */
#pragma once

#include "backend/backend.h"

enum backend_request_kind {
	BACKEND_SUBMIT,
	BACKEND_DRY_RUN,
	BACKEND_CANCEL,
	BACKEND_CONTROL,
	BACKEND_FORGET,
	BACKEND_N_REQUESTS
};

struct held;
struct spec_held;
struct backend_request;

/* Requests are others': given when it is made. I/O thread. */
struct held_ways {
	/* Begin with a request, as when it was posted (its data). */
	loop_fn run;
	/* Give one to the implementation. */
	void (*pass)(struct backend_request *rq);
	/* One about the document TEXT of REC, of which REPLY hears. */
	struct backend_request *(*make)(struct backend *b, const struct spec_held *rec,
					enum backend_request_kind kind, const char *text,
					size_t len, backend_reply_fn reply, void *data);
};

/* B, which owns it, has a loop, a store and a config. */
struct held *held_new(struct backend *b, const struct held_ways *ways);
void held_free(struct held *h); /* NULL is allowed; when nothing of it is under way */

/*
 * Does RQ have to do with a held job, or may it? Then it is answered here, or passed on later. A request about a job
 * waits while that is being launched: what is on record of it must be gone before the job can be.
 */
bool held_takes(struct held *h, struct backend_request *rq);

/* The store has all jobs: read those that are held, and show them. Then FN(DATA), once. */
void held_begin(struct held *h, loop_fn fn, void *data);
/* The mount is up: from now on jobs are launched. */
void held_take_charge(struct held *h);
/* As store_events.changed, of every job. */
void held_news(struct held *h, const struct spec_job *old, const struct spec_job *now);
/* Nothing is launched any more; FN(DATA) when nothing of it is under way. The implementation has answered all. */
void held_stop(struct held *h, loop_fn fn, void *data);

/* As backend_text, of a JOB that is held. Any thread. */
int held_text(const char *state_dir, const struct spec_job *job, enum backend_text which,
	      char **ret, size_t *ret_len);
