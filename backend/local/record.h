/* SPDX-License-Identifier: MIT */
/*
 * The record of a job that is not over yet, or whose end is not on disk yet. The job's state follows from it alone.
 * This object also writes the record to disk, and makes the job's snapshot in the store from it.
 *
 * A state that users rely on is published only after the record is written, so that a crash never takes back what
 * somebody has seen: the first state, if no program was started yet; a final one; suspended; and the move to history.
 * Any other state is published at once. When the disk refuses the record, the state is published all the same, but for
 * the move to history, and records.c retries. A new job is published when the start of each of its
 * replicas was tried, or when some time has passed; but a job that has to wait in the queue of the machine is published
 * as soon as it has its place there. I/O thread.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/jobs/records.h"
#include "backend/jobs/store.h"
#include "spec/record/record.h"

struct local_record;

struct local_record_events {
	/* The job is published from now on, though not all of its replicas were started: all its logs must be there. */
	void (*showing)(void *data);
	/* The store shows SNAP now. */
	void (*published)(void *data, const struct spec_job *snap);
	/*
	 * The record is on disk with all changes up to number CHANGE (ERR is 0), or it could not be written, for ERR.
	 */
	void (*written)(void *data, int err, uint64_t change);
	/* Called after written(), when no change waits to be written. The record may be freed here. */
	void (*settled)(void *data);
};

/*
 * On the pool: read REC's AppDef from the document of its record; HOME as in struct spec_app_rules. If it can't be had,
 * REC's fault has the reason from now on; if the disk is the reason, the errno is returned, too.
 */
int local_record_read_app(const char *state_dir, const char *home, struct spec_record *rec);

/* Make a record of REC, which is taken over, and is written to ENTRY. */
struct local_record *local_record_new(struct loop *loop, struct store *store, struct record *entry,
				      struct spec_record *rec,
				      const struct local_record_events *events, void *data);
/* To be called when nothing is being written. */
void local_record_free(struct local_record *r);

struct record *local_record_entry(const struct local_record *r);
/* The text of PART as it is now, which is about to be written. malloc'ed. */
char *local_record_part(struct local_record *r, enum record_part part);
/* See records_set_written. */
void local_record_written(struct local_record *r, int err);

/* The content of R. The owner and its replicas change it, and call local_record_changed. */
struct spec_record *local_record_spec(const struct local_record *r);
/*
 * The content of R has changed: the job's state and phase follow from it; it is written after this turn of the loop,
 * and published. Returns the change's number, from 1.
 */
uint64_t local_record_changed(struct local_record *r);
/* The newest change that is on disk; 0: none since the start. */
uint64_t local_record_saved(const struct local_record *r);
/* Is R over, with its final state, and on disk so? */
bool local_record_is_done(const struct local_record *r);
/* Publish R as it is, without waiting for the disk. */
void local_record_publish(struct local_record *r);

/* What the job of R waits for, which is not written to disk, has changed: publish it as soon as the job may be seen. */
void local_record_moved(struct local_record *r);

/*
 * The usage of R's replicas has changed: publish it a moment later, with what else changes until then. It is written
 * only together with another change, since helpers tell it again.
 */
void local_record_used(struct local_record *r);

/* Let the job have GOAL. The first goal that ends the job counts, and gives the reason. */
void local_record_set_goal(struct local_record *r, enum spec_goal goal);
/* Set why the job is as it is: a word, and a sentence. */
void local_record_set_reason(struct local_record *r, const char *reason, const char *message);
/* All replicas of R are to be started again: the job's phase says so until local_record_runs. */
void local_record_restart(struct local_record *r);
/* One more replica of R was started for the first time, or could not be. */
void local_record_tried(struct local_record *r);
/* A program of R was started at TIME, ns; it may have ended since. */
void local_record_started(struct local_record *r, int64_t time);
/* A program of R runs now. */
void local_record_runs(struct local_record *r);
/* Nothing of the job runs or will run: it is over, and its final state follows from its goal. */
void local_record_finish(struct local_record *r);
bool local_record_is_over(const struct local_record *r);
/* The mount ends: write at once what is to be written, and do not try again if that fails. */
void local_record_last(struct local_record *r);
