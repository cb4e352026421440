/* SPDX-License-Identifier: MIT */
/*
 * The record of a local job that is not over, or whose end is not on disk yet. The job's state
 * follows from the record. This object writes the record to disk, and publishes the job's snapshot
 * from it. Some states are published only when they are on disk, so that a crash never reverts
 * them: the first state, if no program was started yet; final states; suspended; and the move to
 * history/. All other states are published immediately. If the disk refuses the record, the state
 * is published nevertheless, except the move to history/, and records.c retries. I/O thread.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/jobs/records.h"
#include "backend/jobs/store.h"
#include "spec/record/record.h"

struct local_record;

struct local_record_events {
	/* The job is about to be published although not all replicas were started: all its logs must exist. */
	void (*showing)(void *data);
	/* The store shows SNAP now. */
	void (*published)(void *data, const struct spec_job *snap);
	/*
	 * If ERR is 0, the record is on disk with all changes up to number CHANGE; else ERR is why
	 * it could not be written.
	 */
	void (*written)(void *data, int err, uint64_t change);
	/*
	 * Called after written() if no other change must be written. The record may be freed here.
	 */
	void (*settled)(void *data);
};

/*
 * Read the AppDef of REC from the document of its record; HOME as in struct spec_app_rules. If it can't be read, set
 * the fault of REC. Return an errno if the disk is the reason. On the pool.
 */
int local_record_read_app(const char *state_dir, const char *home, struct spec_record *rec);

/* Make a record of REC, which is taken over and is written to ENTRY. */
struct local_record *local_record_new(struct loop *loop, struct store *store, struct record *entry,
				      struct spec_record *rec,
				      const struct local_record_events *events, void *data);
/* Call this while no write is in progress. */
void local_record_free(struct local_record *r);

struct record *local_record_entry(const struct local_record *r);
/* Return the text of PART, which is about to be written. malloc'ed. */
char *local_record_part(struct local_record *r, enum record_part part);
/* See records_set_written. */
void local_record_written(struct local_record *r, int err);

/* Return the contents of R. The owner and its replicas change it, and then call local_record_changed. */
struct spec_record *local_record_spec(const struct local_record *r);
/*
 * Derive the job's state and phase from the changed contents of R; write and publish it after this turn of the loop.
 * Return the number of the change, from 1.
 */
uint64_t local_record_changed(struct local_record *r);
/* Return the newest change that is on disk; 0 if none was written since the start. */
uint64_t local_record_saved(const struct local_record *r);
/* True if the job is over, and its record on disk shows that. */
bool local_record_is_done(const struct local_record *r);
/* Publish R as it is, without waiting for the disk. */
void local_record_publish(struct local_record *r);

/*
 * The reason why the job waits has changed. Publish the new one as soon as the job may be shown,
 * but do not write it to disk.
 */
void local_record_moved(struct local_record *r);
/*
 * Publish the usage of R's replicas after a short delay. Usage is written only together with
 * another change.
 */
void local_record_used(struct local_record *r);

/* Set the goal of the job. The first goal that ends the job counts, and gives the reason. */
void local_record_set_goal(struct local_record *r, enum spec_goal goal);
/* Set why the job is in its state: a word and a sentence. */
void local_record_set_reason(struct local_record *r, const char *reason, const char *message);
/* All replicas will be restarted: the job's phase is Restarting until local_record_runs. */
void local_record_restart(struct local_record *r);
/* The first start of one more replica was tried, and succeeded or failed. */
void local_record_tried(struct local_record *r);
/* A program was started at TIME, ns; it may have ended since. */
void local_record_started(struct local_record *r, int64_t time);
/* A program runs now. */
void local_record_runs(struct local_record *r);
/* No program of the job runs or will run: set the final state, which follows from the goal. */
void local_record_finish(struct local_record *r);
/* True after local_record_finish. */
bool local_record_is_over(const struct local_record *r);
/* The mount ends: write changes immediately, and do not wait for retries. */
void local_record_last(struct local_record *r);
