/* SPDX-License-Identifier: MIT */
/*
 * The record of a local job whose end is not on disk yet: the source of the job's state, of its
 * file, and of its snapshot. I/O thread.
 *
 * Most states are published immediately. Some are published only when they are on disk, so that a
 * crash never reverts them: the first state, if no program was started yet; the begin and the end
 * of a suspension; final states; and the move to history/. If the record can't be written, all
 * states except the move to history/ are published anyway, and records.c retries the write.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/jobs/records.h"
#include "backend/jobs/store.h"
#include "spec/record/record.h"

struct local_record;

struct local_record_events {
	/* Called after SNAP has become the job's snapshot in the store. */
	void (*published)(void *data, const struct spec_job *snap);
	/* Called after a write with all changes up to CHANGE. ERR is 0 or a negative errno. */
	void (*written)(void *data, int err, uint64_t change);
	/* Called after written() if no other write will follow. May free the record. */
	void (*settled)(void *data);
};

/*
 * Read REC's AppDef from the job's document on disk. If this fails, set REC's fault. Return 0, also
 * if the AppDef is invalid, or the negative errno of reading the document. On the pool.
 */
int local_record_read_app(const char *state_dir, const char *home, struct spec_record *rec);

/* Take ownership of REC. Changes are written to ENTRY. */
struct local_record *local_record_new(struct loop *loop, struct store *store, struct record *entry,
				      struct spec_record *rec,
				      const struct local_record_events *events, void *data);
/* Call this while no write is in progress. */
void local_record_free(struct local_record *r);

struct record *local_record_entry(const struct local_record *r);
/* Return the text of PART to write, malloc'ed. */
char *local_record_part(struct local_record *r, enum record_part part);
/* See records_set_written. */
void local_record_written(struct local_record *r, int err);

/* Return the contents of R. After changing them, call local_record_changed. */
struct spec_record *local_record_spec(const struct local_record *r);
/*
 * Derive state and phase from the changed contents. Write and publish R after this turn of the
 * loop. Return the number of the change, from 1.
 */
uint64_t local_record_changed(struct local_record *r);
/* Return the number of the newest change on disk; 0 if none was written since the start. */
uint64_t local_record_saved(const struct local_record *r);
/* True if the job is over, and its record on disk shows that. */
bool local_record_is_done(const struct local_record *r);
/* Publish R now, without waiting for the disk. */
void local_record_publish(struct local_record *r);

/*
 * Call this when the job's reason for waiting has changed. Usually publish R immediately. If
 * another change of R must be on disk first, write R before it is published.
 */
void local_record_moved(struct local_record *r);
/* Publish the usage of replicas after a short delay. Write it only with another change. */
void local_record_used(struct local_record *r);

/* Set the job's goal and its reason, unless it already has a goal other than SPEC_GOAL_RUN. */
void local_record_set_goal(struct local_record *r, enum spec_goal goal);
/* REASON is a word, MESSAGE a sentence. */
void local_record_set_reason(struct local_record *r, const char *reason, const char *message);
/* Set the job's phase to Restarting, until local_record_runs is called. */
void local_record_restart(struct local_record *r);
/* Record that the first start of one more replica has succeeded or failed. */
void local_record_tried(struct local_record *r);
/* Record that a program was started at TIME, in ns. It may have ended since. */
void local_record_started(struct local_record *r, int64_t time);
void local_record_runs(struct local_record *r);
/* Set the final state, which follows from the goal. No program runs or will be started. */
void local_record_finish(struct local_record *r);
/* True after local_record_finish. */
bool local_record_is_over(const struct local_record *r);
/* The mount is ending: from now on, write changes immediately, and don't retry. */
void local_record_last(struct local_record *r);
