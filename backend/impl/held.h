/* SPDX-License-Identifier: MIT */
/*
 * Jobs that no implementation has: held jobs, which were submitted and are launched later, when
 * their conditions are met (spec/record/held.h); jobs of which it is unknown whether they were
 * launched; and jobs that were never launched. This object is between requests and the
 * implementation, which makes a dry run of a held job when it is submitted, and launches it later
 * like any other. I/O thread, unless noted otherwise. The head of held.c lists the objects.
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

/* Create the object for B, which owns it and has a loop, a store, records and a config. */
struct held *held_new(struct backend *b);
/* Call this when no operation of H is under way. NULL is allowed. */
void held_free(struct held *h);

/*
 * RQ, a request, was posted: answer it if it is about a job that is shown here, or that does not
 * exist; pass it on to the implementation otherwise. A request about a held job that is being
 * launched waits until the job's record is LIVE on disk.
 */
void held_run(void *rq);

/* ERR is 0, or -ETIMEDOUT if the disk does not accept it. */
typedef void (*held_saved_fn)(void *data, int err);
/* Call FN once all conditions that are met are on disk; perhaps from within this call. */
void held_when_saved(struct held *h, held_saved_fn fn, void *data);

/* The store has all other jobs: add the held ones, then call FN(DATA) once. */
void held_begin(struct held *h, loop_fn fn, void *data);
/* The mount is up: launch jobs from now on. */
void held_take_charge(struct held *h);
/*
 * R is SUBMITTING. Its job, which was not held, was sent some time ago, and no reply has arrived:
 * show the job. TEXT is its document.
 */
void held_sent(struct held *h, struct record *r, const char *text, size_t len);
/* The result of such a submission. Plain data. */
struct held_answer {
	int err;    /* 0: launched; -EINPROGRESS: unknown at present; else it was not launched */
	bool heard; /* the submitter is waiting for this answer */
	const char *why;  /* the reason for ERR; may be NULL */
	const char *text; /* the document; not needed when the mount ends */
	size_t len;
};
/*
 * The submission of R is answered now. If it was not launched, the record is removed if HEARD;
 * otherwise it becomes NEVER, and history/ shows the job. If the result is unknown, the job is
 * shown as SUBMITTED until the result is known.
 */
void held_answered(struct held *h, struct record *r, const struct held_answer *answer);

/* See store_events.changed; called for every job. */
void held_changed(struct held *h, const struct spec_job *old, const struct spec_job *now);
/*
 * Launch nothing any more, and call FN(DATA) when no operation is under way. The implementation has
 * already answered all requests.
 */
void held_stop(struct held *h, loop_fn fn, void *data);

/* Like backend_text, for a JOB that is held. Any thread. */
int held_text(const char *state_dir, const struct spec_job *job, enum backend_text which,
	      char **ret, size_t *ret_len);
