/* SPDX-License-Identifier: MIT */
/*
 * The record of a local job that is not over, or whose end is not on disk yet. The job's state
 * follows from the record. This object writes the record to disk, and publishes the job's snapshot
 * from it.
 *
 * Some states are published only when they are on disk, so that a crash never reverts them: the
 * first state, if no program was started yet; final states; suspended; and the move to history/.
 * All other states are published immediately. If the disk refuses the record, records.c retries the
 * write. Until then, every state except the move to history/ is published anyway. I/O thread.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/jobs/records.h"
#include "backend/jobs/store.h"
#include "spec/record/record.h"

struct local_record;

struct local_record_events {
	/*
	 * Called before the job is published while some of its replicas are not started yet. The
	 * callback makes all logs of the job.
	 */
	void (*showing)(void *data);
	/* Called after SNAP has become the job's snapshot in the store. */
	void (*published)(void *data, const struct spec_job *snap);
	/*
	 * Called after a write of the record. If ERR is 0, the record is on disk with all changes
	 * up to number CHANGE. Otherwise the write has failed because of ERR.
	 */
	void (*written)(void *data, int err, uint64_t change);
	/* Called after written() if no other change must be written. May free the record. */
	void (*settled)(void *data);
};

/*
 * Read the AppDef of REC from the document in the job's record. HOME: see struct spec_app_rules. If
 * the document can't be read or the AppDef is wrong, set the fault of REC. Return 0, or a negative
 * errno if the document can't be read. On the pool.
 */
int local_record_read_app(const char *state_dir, const char *home, struct spec_record *rec);

/*
 * Make a local record from REC, and take ownership of REC. ENTRY is the record on disk to which
 * changes are written.
 */
struct local_record *local_record_new(struct loop *loop, struct store *store, struct record *entry,
				      struct spec_record *rec,
				      const struct local_record_events *events, void *data);
/* Call this while no write is in progress. */
void local_record_free(struct local_record *r);

struct record *local_record_entry(const struct local_record *r);
/* Return the text of PART that must be written to the record, malloc'ed. */
char *local_record_part(struct local_record *r, enum record_part part);
/* See records_set_written. */
void local_record_written(struct local_record *r, int err);

/*
 * Return the contents of R. The job and its replicas may change these contents, and must then call
 * local_record_changed.
 */
struct spec_record *local_record_spec(const struct local_record *r);
/*
 * Derive the job's state and phase from the changed contents of R. After this turn of the loop,
 * write and publish R. Return the number of the change. The first change has the number 1.
 */
uint64_t local_record_changed(struct local_record *r);
/* Return the number of the newest change on disk; 0 if none was written since the start. */
uint64_t local_record_saved(const struct local_record *r);
/* True if the job is over, and its record on disk shows that. */
bool local_record_is_done(const struct local_record *r);
/* Publish R as it is, without waiting for the disk. */
void local_record_publish(struct local_record *r);

/*
 * Publish the new reason why the job waits. Write R to disk only if a change must be on disk before
 * R is published.
 */
void local_record_moved(struct local_record *r);
/*
 * Publish the usage of R's replicas after a short delay. Usage is written only together with
 * another change.
 */
void local_record_used(struct local_record *r);

/*
 * Set the goal of the job, and the reason that follows from the goal. If the job already has a goal
 * other than SPEC_GOAL_RUN, change nothing.
 */
void local_record_set_goal(struct local_record *r, enum spec_goal goal);
/* Set the reason for the job's state: REASON is a word, MESSAGE a sentence. */
void local_record_set_reason(struct local_record *r, const char *reason, const char *message);
/*
 * Record that all replicas will be restarted. From now on, the job's phase is Restarting. This ends
 * when local_record_runs is called.
 */
void local_record_restart(struct local_record *r);
/* Record that the first start of one more replica has succeeded or failed. */
void local_record_tried(struct local_record *r);
/* Record that a program was started at TIME, in ns. The program may have ended since. */
void local_record_started(struct local_record *r, int64_t time);
/* Record that a program runs now. */
void local_record_runs(struct local_record *r);
/*
 * Set the job's final state, which follows from the goal. Call this when no program of the job
 * runs, and none will be started.
 */
void local_record_finish(struct local_record *r);
/* True if local_record_finish was called. */
bool local_record_is_over(const struct local_record *r);
/* Record that the mount is ending: from now on, write changes immediately, and don't retry. */
void local_record_last(struct local_record *r);
