/* SPDX-License-Identifier: MIT */
/*
 * One replica of a local job: it starts its newest attempt, takes in how that ends, and keeps its log and its part of
 * the record. The job (job.h), which owns it, decides whether it is started again after a failure. I/O thread.
 */
#pragma once

#include "backend/local/record.h"
#include "backend/local/task.h"
#include "backend/output/output.h"

/* The reason of a replica, and of a job, whose output could not be kept. */
#define LOCAL_OUTPUT_LOST "OutputLost"

/* The pause before the first new start after a failure. */
#define LOCAL_DELAY_MIN_MS 100u

struct local_replica;
struct local_replicas; /* what all replicas of a backend share: the queue of those that are to be started */

/* What has happened. No replica may be freed in these. */
struct local_replica_events {
	/* REP is live now, or is not any more: an attempt is being started, runs, or its log is not complete. */
	void (*lives)(void *data, struct local_replica *rep, bool live);
	/*
	 * Its attempt has failed, by its own fault. It stays FAILED, unless the job calls local_replica_restart from
	 * here, for this replica, all of its role, or the whole job.
	 */
	void (*failed)(void *data, struct local_replica *rep);
	/* REP is not live any more, and its log is complete: the job decides what comes next. */
	void (*idle)(void *data, struct local_replica *rep);
};

/* What the replicas of one job have in common; plain data of the job, which outlives them. */
struct local_replica_job {
	struct local_replicas *all;
	struct local_record *record;
	struct output_job *output;
	char *dir; /* the job's folder */
	const struct local_replica_events *events;
	void *data;
};

/* Helpers enter GROUP. A program has GRACE_MS between SIGTERM and SIGKILL. */
struct local_replicas *local_replicas_new(struct loop *loop, struct group *group,
					  unsigned grace_ms);
/* To be called after the loop has stopped, when all replicas are freed. Programs that run go on. */
void local_replicas_free(struct local_replicas *all);
struct tasks *local_replicas_tasks(const struct local_replicas *all);
/* Starts wait in the queue until this is called. */
void local_replicas_begin(struct local_replicas *all);
/* Programs that run are to go on when the backend has stopped. */
void local_replicas_outlive(struct local_replicas *all);
/* For .kxfs/metrics; any thread. */
void local_replicas_metrics(struct local_replicas *all, FILE *out);

/* Replica I of the job's record. */
struct local_replica *local_replica_new(const struct local_replica_job *job, size_t i);
/* Free REP; its program goes on if it runs. */
void local_replica_free(struct local_replica *rep);
/* What the record has of REP. */
const struct spec_replica *local_replica_record(const struct local_replica *rep);
struct spec_plan *local_replica_plan(const struct local_replica *rep);
/* Where the program of REP's newest attempt may leave a structured error. malloc'ed. */
char *local_replica_error_file(const struct local_replica *rep);
bool local_replica_is_idle(const struct local_replica *rep);

/* Start REP, which is idle, or its next attempt, after a pause. */
void local_replica_begin(struct local_replica *rep, unsigned delay_ms);
/* End the program of REP, or its planned start, for good. */
void local_replica_end(struct local_replica *rep);
/*
 * End the program of REP, which is to be started again (local_replica_begin) when it, its role or its job is no longer
 * live.
 */
void local_replica_restart(struct local_replica *rep);
/* Forget the planned start of REP, and let its program run on for a later daemon. */
void local_replica_let_go(struct local_replica *rep);
/* Send SIG to the program of REP, if it runs. */
void local_replica_signal(struct local_replica *rep, int sig);
/*
 * The turn of REP's job has come: its start waits only until the record with that, the job's change number CHANGE, is
 * written.
 */
void local_replica_admit(struct local_replica *rep, uint64_t change);
/* Let REP go on after SIGSTOP, or with a start that was held while the job was suspended. */
void local_replica_resume(struct local_replica *rep);
/* REP has failed again: make the pause before its next start longer, unless it has run for long. Returns the pause. */
unsigned local_replica_slow_down(struct local_replica *rep);
/* The pause before REP's next start, as it is now. */
unsigned local_replica_delay(const struct local_replica *rep);

/* The record is on disk with all changes up to CHANGE: a new attempt may have waited for that. */
void local_replica_recorded(struct local_replica *rep, uint64_t change);
/* The record could not be written, for ERR. True: a new attempt of REP waits for that, and its message says so. */
bool local_replica_is_delayed(struct local_replica *rep, int err);
/* Make the log of REP's newest attempt, empty, before the program is started. */
void local_replica_open_log(struct local_replica *rep);
/* The job is over. If the attempt was never started, it gets an empty log rather than none. */
void local_replica_close_log(struct local_replica *rep);

/* Runs on the pool: what became of the newest attempt of replica I of an earlier daemon, in the job's folder DIR. */
void local_replica_find_attempt(struct local_replicas *all, const char *dir,
				const struct spec_record *rec, size_t i, struct task_found *ret);
/* Go on with the attempt that was found; the descriptor in FOUND is taken over. */
void local_replica_adopt(struct local_replica *rep, const struct task_found *found);
/*
 * The second part of local_replica_adopt, when that was called for all replicas of the job: take in the end of an
 * attempt that is over.
 */
void local_replica_adopted(struct local_replica *rep, const struct task_found *found);
