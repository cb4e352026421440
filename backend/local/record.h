/* SPDX-License-Identifier: MIT */
/*
 * The record of a job that is not over yet, or whose end is not on disk yet: the one place from which the job's state
 * follows, the writing of it, and the job's snapshot in the store, which is made from it.
 *
 * A state that users rely on (the first one, if no program has been started yet, a final one, suspended, or the move
 * to history) is published only after the record is written, so that a crash never takes back what somebody has seen;
 * any other is published at once. When the disk takes nothing more, the state is published all the same, and writing
 * the record is tried again. A new job is not published before each of its replicas has been started once, or could
 * not be; or until some time has passed; but one that came by the queue of the machine is as soon as it has its place
 * there. I/O thread.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/jobs/store.h"
#include "spec/record/record.h"

struct local_record;

struct local_record_events {
	/* The job is seen from now on, though not all of its replicas have been started: all its logs must be there. */
	void (*showing)(void *data);
	/* The store shows SNAP now. */
	void (*published)(void *data, const struct spec_job *snap);
	/* The record is on disk with all changes up to number CHANGE (ERR is 0), or could not be written, for ERR. */
	void (*written)(void *data, int err, uint64_t change);
	/* After that, when no change waits to be written. The record may be freed here. */
	void (*settled)(void *data);
};

/* A record of REC, which is taken over, in the job's folder DIR. */
struct local_record *local_record_new(struct loop *loop, struct store *store, const char *dir,
				      struct spec_record *rec,
				      const struct local_record_events *events, void *data);
/* Nothing is being written. */
void local_record_free(struct local_record *r);

/* What stands in it. The owner and its replicas change it, and call local_record_changed. */
struct spec_record *local_record_spec(const struct local_record *r);
/*
 * Something in it has changed: the job's state and phase follow, it is written after this turn of the loop, and
 * published. Returns the change's number, from 1.
 */
uint64_t local_record_changed(struct local_record *r);
/* The newest change that is on disk; 0: none since the start. */
uint64_t local_record_saved(const struct local_record *r);
/* Is it over, with its final state, and on disk so? */
bool local_record_is_done(const struct local_record *r);
/* Publish it as it is, without waiting for the disk. */
void local_record_publish(struct local_record *r);

/* What its job waits for has changed, which does not stand on disk: publish that, as soon as the job may be seen. */
void local_record_moved(struct local_record *r);

/*
 * What its replicas use has changed: that is published a moment later, with what else has changed so until then. It is
 * written with the next change only, since the helpers tell it again.
 */
void local_record_used(struct local_record *r);

/* The job is to have GOAL. The first one that ends it counts, and gives the reason. */
void local_record_set_goal(struct local_record *r, enum spec_goal goal);
/* Why the job is as it is: a word, and a sentence. */
void local_record_set_reason(struct local_record *r, const char *reason, const char *message);
/* All its replicas are to be started again: its phase says so until local_record_runs. */
void local_record_restart(struct local_record *r);
/* One more of its replicas has been started, or could not be, for the first time. */
void local_record_tried(struct local_record *r);
/* One of its programs was started at TIME, ns; it may have ended since. */
void local_record_started(struct local_record *r, int64_t time);
/* One of its programs runs now. */
void local_record_runs(struct local_record *r);
/* Nothing of the job runs or will run: it is over, and its final state follows from its goal. */
void local_record_finish(struct local_record *r);
bool local_record_is_over(const struct local_record *r);
/* The mount ends: what is to be written is written at once, and not again if that fails. */
void local_record_last(struct local_record *r);
