/* SPDX-License-Identifier: MIT */
/*
 * Jobs that no implementation has: those that are held, i.e. submitted, and launched later, when their conditions hold
 * (spec/record/held.h); those of which it is not known whether they were launched; and those that never were. This
 * object stands between requests and the implementation, which makes a dry run of a held job when it is submitted, and
 * launches it later like any other. I/O thread, unless said otherwise; the head of held.c says which objects there are.
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
struct record;
struct spec_head;
struct backend_request;

/* How held.c begins requests, which other files own; it is given these when it is made. I/O thread. */
struct held_ways {
	/* Run a request (its data) as if it had just been posted. */
	loop_fn run;
	/* Pass a request on to the implementation. */
	void (*pass)(struct backend_request *rq);
	/*
	 * Make a request about the document TEXT of the record HEAD, whose answer REPLY hears. AGAIN: as in struct
	 * backend_request.
	 */
	struct backend_request *(*make)(struct backend *b, const struct spec_head *head,
					enum backend_request_kind kind, bool again,
					const char *text, size_t len, backend_reply_fn reply,
					void *data);
};

/* B, which owns it, has a loop, a store, records and a config. */
struct held *held_new(struct backend *b, const struct held_ways *ways);
void held_free(struct held *h); /* NULL is allowed; to be called when nothing of it is under way */

/*
 * Does RQ have to do with a job that is shown here, or may it? Then it is answered here, or passed on later. A request
 * about a held job that is being launched waits until the job's record is LIVE on disk.
 */
bool held_takes(struct held *h, struct backend_request *rq);

/* ERR: 0; -ETIMEDOUT: the disk does not take it. */
typedef void (*held_saved_fn)(void *data, int err);
/* Call FN once all conditions that were met are on disk: at once, or later. */
void held_when_saved(struct held *h, held_saved_fn fn, void *data);

/* The store has all jobs: show the held ones, too; then call FN(DATA) once. */
void held_begin(struct held *h, loop_fn fn, void *data);
/* The mount is up: from now on jobs are launched. */
void held_take_charge(struct held *h);
/*
 * The record R is SUBMITTING, and its job, which was not held, was sent some time ago without an answer: show it.
 * Document: TEXT.
 */
void held_sent(struct held *h, struct record *r, const char *text, size_t len);
/* What became of such a submission. Plain data. */
struct held_answer {
	int err; /* 0: launched; -EINPROGRESS: it can't be found out now; else it was not launched */
	bool heard;	  /* the one who has submitted it is waiting for this answer */
	const char *why;  /* of ERR; may be NULL */
	const char *text; /* the document; not needed when the mount ends */
	size_t len;
};
/*
 * It is answered now. If it was not launched, the record is removed if that was HEARD; else it becomes NEVER, and the
 * job is shown in history/. If that can't be found out, the job is shown as SUBMITTED until it can.
 */
void held_answered(struct held *h, struct record *r, const struct held_answer *answer);

/* See store_events.changed; called for every job. */
void held_news(struct held *h, const struct spec_job *old, const struct spec_job *now);
/* Launch nothing any more; call FN(DATA) when nothing is under way. The implementation has answered all requests. */
void held_stop(struct held *h, loop_fn fn, void *data);

/* Like backend_text, for a JOB that is held. Any thread. */
int held_text(const char *state_dir, const struct spec_job *job, enum backend_text which,
	      char **ret, size_t *ret_len);
