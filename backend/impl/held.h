/* SPDX-License-Identifier: MIT */
/*
 * The jobs that the implementations do not know: held jobs, which kxfs will launch when their
 * conditions are met (spec/record/held.h); jobs that were submitted but never launched; and
 * submitted jobs of which kxfs does not know yet whether they were launched.
 *
 * This object receives requests before the implementation does. When a user submits a job that will
 * be held, the implementation makes a dry run of it. When the conditions are met, the
 * implementation launches the job like any other. All functions run on the I/O thread, unless noted
 * otherwise.
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

/* Create the object for B, which must have a loop, a store, records and a config. */
struct held *held_new(struct backend *b);
/* Call this when no operation of H is in progress. H may be NULL. */
void held_free(struct held *h);

/*
 * Handle RQ, a struct backend_request that was posted. Answer RQ if it is about a job of this
 * object, or about a job that does not exist. Otherwise pass RQ on to the implementation. While an
 * operation on RQ's held job is in progress, such as its launch, RQ waits.
 */
void held_run(void *rq);

/* ERR is 0, or -ETIMEDOUT if the disk did not accept the records in time. */
typedef void (*held_saved_fn)(void *data, int err);
/*
 * Call FN(DATA, err) once the records on disk show every condition that is met. FN may be called
 * before this function returns.
 */
void held_when_saved(struct held *h, held_saved_fn fn, void *data);

/*
 * Add the jobs of this object to the store, then call FN(DATA) once. Call this when the store has
 * all other jobs.
 */
void held_begin(struct held *h, loop_fn fn, void *data);
/* Begin to launch jobs whose conditions are met. Call this once the mount is up. */
void held_take_charge(struct held *h);
/*
 * Show the job of the SUBMITTING record R. The job was not held, and the server has not replied to
 * its launch request for some time. TEXT is the job's document.
 */
void held_sent(struct held *h, struct record *r, const char *text, size_t len);
/* The result of a submission. Plain data. */
struct held_answer {
	int err;    /* 0: launched; -EINPROGRESS: not known yet; any other error: not launched */
	bool heard; /* true if the submitter is waiting for this answer */
	const char *why;  /* the reason for ERR; may be NULL */
	const char *text; /* the job's document; may be NULL while the mount is ending */
	size_t len;
};
/*
 * Record the result of the submission of R. If the job was not launched, remove the record if
 * ANSWER->heard is true; otherwise make the record NEVER, and show the job in history/. If the
 * result is not known yet, show the job as SUBMITTED until the result is known.
 */
void held_answered(struct held *h, struct record *r, const struct held_answer *answer);

/* Handle a change of any job. See store_events.changed. */
void held_changed(struct held *h, const struct spec_job *old, const struct spec_job *now);
/*
 * Stop launching jobs. Call FN(DATA) once no operation is in progress. Call this after the
 * implementation has answered all requests.
 */
void held_stop(struct held *h, loop_fn fn, void *data);

/* Return the text WHICH of the held job JOB, in the same way as backend_text. Any thread. */
int held_text(const char *state_dir, const struct spec_job *job, enum backend_text which,
	      char **ret, size_t *ret_len);
