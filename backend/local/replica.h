/* SPDX-License-Identifier: MIT */
/*
 * One replica of a local job: the start of its newest attempt, in its turn, and its end; its log, and its part of the
 * record. Whether it is started again after a failure is decided by the job (job.h), which owns it. I/O thread.
 */
#pragma once

#include "backend/local/record.h"
#include "backend/local/task.h"
#include "backend/output/output.h"

/* The reason of a replica, and of a job, whose output could not be kept. */
#define LOCAL_OUTPUT_LOST "OutputLost"

/* The pause before the first start after a failure. */
#define LOCAL_DELAY_MIN_MS 100u

struct local_replica;
struct local_replicas; /* what all replicas of a backend share: the queue of those that are to be started */

/* What has happened. No replica may be freed in these. */
struct local_replica_events {
	/* REP is live now, or is not any more: an attempt is being started, runs, or its log is not complete. */
	void (*lives)(void *data, struct local_replica *rep, bool live);
	/*
	 * Its attempt has failed, by its own fault. It stays FAILED, unless local_replica_restart is called for it
	 * here, or for all of its role or its job.
	 */
	void (*failed)(void *data, struct local_replica *rep);
	/* It is not live any more, and its log is complete: what comes next? */
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

/* GROUP is entered by helpers. A program has GRACE_MS between SIGTERM and SIGKILL. */
struct local_replicas *local_replicas_new(struct loop *loop, struct group *group,
					  unsigned grace_ms);
/* After the loop has stopped, and all replicas are freed. Programs that run go on. */
void local_replicas_free(struct local_replicas *all);
/* Starts wait in the queue until this is called. */
void local_replicas_begin(struct local_replicas *all);
/* Programs that run are to go on when the backend has stopped. */
void local_replicas_outlive(struct local_replicas *all);
/* For .kxfs/metrics; any thread. */
void local_replicas_metrics(struct local_replicas *all, FILE *out);

/* Replica I of the job's record. */
struct local_replica *local_replica_new(const struct local_replica_job *job, size_t i);
/* A program of it that runs goes on. */
void local_replica_free(struct local_replica *rep);
/* What stands of it in the record. */
const struct spec_replica *local_replica_record(const struct local_replica *rep);
struct spec_plan *local_replica_plan(const struct local_replica *rep);
/* Where the program of its newest attempt may leave a structured error. malloc'ed. */
char *local_replica_error_file(const struct local_replica *rep);
bool local_replica_is_idle(const struct local_replica *rep);

/* Start it, or its next attempt, after a pause. It is idle. */
void local_replica_begin(struct local_replica *rep, unsigned delay_ms);
/* End its program, or its planned start, for good. */
void local_replica_end(struct local_replica *rep);
/* End its program, to be started again (local_replica_begin) when it, its role or its job is no longer live. */
void local_replica_restart(struct local_replica *rep);
/* Forget its planned start, and let its program run on for a later daemon. */
void local_replica_let_go(struct local_replica *rep);
/* To its program, if it runs. */
void local_replica_signal(struct local_replica *rep, int sig);
/* Its job's turn has come: its start waits no more, but for the record with that, the job's change number CHANGE. */
void local_replica_admit(struct local_replica *rep, uint64_t change);
/* Go on after SIGSTOP, or with a start that was held while the job was suspended. */
void local_replica_resume(struct local_replica *rep);
/* It has failed again: make the pause before its next start longer, unless it has run for long. Returns it. */
unsigned local_replica_slow_down(struct local_replica *rep);
/* The pause before its next start, as it is now. */
unsigned local_replica_delay(const struct local_replica *rep);

/* The record is on disk with all changes up to CHANGE: a new attempt may have waited for that. */
void local_replica_recorded(struct local_replica *rep, uint64_t change);
/* It could not be written, for ERR. True: a new attempt waits for that, and its message says so. */
bool local_replica_is_delayed(struct local_replica *rep, int err);
/* Make the log of its newest attempt, empty, before the program is started. */
void local_replica_open_log(struct local_replica *rep);
/* The job is over. An attempt that was never started has an empty log, not none. */
void local_replica_close_log(struct local_replica *rep);

/* Pool: what became of the newest attempt of replica I of an earlier daemon, in the job's folder DIR. */
void local_replica_find_attempt(struct local_replicas *all, const char *dir,
				const struct spec_record *rec, size_t i, struct task_found *ret);
/* Go on with that (the descriptor in FOUND is taken over). */
void local_replica_adopt(struct local_replica *rep, const struct task_found *found);
/* The second half of adopting: when all replicas of the job are adopted, take in the end of an attempt that is over. */
void local_replica_adopted(struct local_replica *rep, const struct task_found *found);
