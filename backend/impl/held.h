/* SPDX-License-Identifier: MIT */
/*
 * The jobs that the implementations don't know: held jobs, whose conditions are not met yet
 * (spec/record/held.h); submitted jobs that were never launched; and submitted jobs of which kxfs
 * does not know yet whether they were launched.
 *
 * This object receives all requests before the implementation does. All functions run on the I/O
 * thread.
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
struct backend_request;

/* B must already have a loop, a store, records and a config. */
struct held *held_new(struct backend *b);
/* Call this when no operation of H is in progress. H may be NULL. */
void held_free(struct held *h);

/*
 * Handle RQ, a posted struct backend_request. Usually pass RQ on to the implementation. But answer
 * RQ if H manages its job, if its job does not exist, or if its document has conditions. While an
 * operation on the held job is in progress, such as its launch, RQ waits.
 */
void held_run(void *rq);

/* Add the jobs of H to the store, which must have all other jobs. Then call FN(DATA) once. */
void held_begin(struct held *h, loop_fn fn, void *data);
/* Begin to launch jobs. Call this once the mount is up. */
void held_take_charge(struct held *h);
/*
 * Show the job of R as SUBMITTED. The job was never held. Call this if the server does not reply to
 * the launch request for a while. TEXT is the job's document.
 */
void held_sent(struct held *h, struct record *r, const char *text, size_t len);
/* The result of a submission. Plain data. */
struct held_answer {
	int err;	  /* 0: launched; -EINPROGRESS: not known yet; else: not launched */
	bool heard;	  /* the submitter is waiting for this answer */
	const char *why;  /* the reason for ERR, or NULL */
	const char *text; /* the job's document; may be NULL when the mount ends */
	size_t len;
};
/*
 * Record the result of a submission. If the result is unknown, show the job as SUBMITTED. If the
 * job was not launched, show it in history/, unless ANSWER->heard is true. In that case, the
 * submitter gets the error, so remove R.
 */
void held_answered(struct held *h, struct record *r, const struct held_answer *answer);

/* Handle a change of any job; see store_events.changed. */
void held_changed(struct held *h, const struct spec_job *old, const struct spec_job *now);
/*
 * Stop launching jobs. Call FN(DATA) once no operation is in progress. The implementation must have
 * stopped.
 */
void held_stop(struct held *h, loop_fn fn, void *data);
