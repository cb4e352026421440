/* SPDX-License-Identifier: MIT */
/*
 * Jobs that the implementations do not know. Held jobs were submitted, and are launched later, when their
 * conditions are met (spec/record/held.h). The others are jobs that were never launched, and jobs for which kxfs
 * does not know whether they were launched. This object is between requests and the implementation. When a job that
 * will be held is submitted, the implementation makes a dry run of it; later it launches the job like any other.
 * I/O thread, unless noted otherwise. The head of held.c lists the objects.
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

/*
 * Create the object for B, which must have a loop, a store, records and a config. The caller frees it with
 * held_free.
 */
struct held *held_new(struct backend *b);
/* Call this when no operation of H is in progress. H may be NULL. */
void held_free(struct held *h);

/*
 * Handle RQ, a struct backend_request that was posted. Answer it if its job is one of those above, or does not
 * exist; otherwise pass it on to the implementation. A request about a held job that is being launched waits until
 * the job's record is LIVE on disk.
 */
void held_run(void *rq);

/* ERR is 0, or -ETIMEDOUT if the disk does not accept it. */
typedef void (*held_saved_fn)(void *data, int err);
/* Call FN(DATA, err) once the disk has the record of each condition that is met, perhaps from within this call. */
void held_when_saved(struct held *h, held_saved_fn fn, void *data);

/* The store has all other jobs: add the held ones, then call FN(DATA) once. */
void held_begin(struct held *h, loop_fn fn, void *data);
/* The mount is up: launch jobs from now on. */
void held_take_charge(struct held *h);
/*
 * Show the job of R, which is SUBMITTING. The job was not held; its launch was requested some time ago, and no
 * reply has arrived. TEXT is its document.
 */
void held_sent(struct held *h, struct record *r, const char *text, size_t len);
/* The result of a submission. Plain data. */
struct held_answer {
	int err;    /* 0: launched; -EINPROGRESS: unknown at present; else it was not launched */
	bool heard; /* the submitter is waiting for this answer */
	const char *why;  /* the reason for ERR; may be NULL */
	const char *text; /* the document; not needed when the mount ends */
	size_t len;
};
/*
 * Note the result of the submission of R. If it was not launched: remove the record if HEARD; otherwise the record
 * becomes NEVER, and history/ shows the job. If the result is unknown, show the job as SUBMITTED until the result
 * is known.
 */
void held_answered(struct held *h, struct record *r, const struct held_answer *answer);

/* See store_events.changed; called for every job. */
void held_changed(struct held *h, const struct spec_job *old, const struct spec_job *now);
/*
 * Stop launching jobs, and call FN(DATA) once no operation is in progress. The implementation has already answered
 * all requests.
 */
void held_stop(struct held *h, loop_fn fn, void *data);

/* Return the text WHICH of JOB, which is held, as backend_text does. Any thread. */
int held_text(const char *state_dir, const struct spec_job *job, enum backend_text which,
	      char **ret, size_t *ret_len);
