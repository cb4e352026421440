/* SPDX-License-Identifier: MIT */
/*
 * One replica of a local job: it starts attempts, records how they end, and writes their logs. The job (job.h), which
 * owns it, decides whether it is restarted after a failure. I/O thread.
 */
#pragma once

#include "backend/local/record.h"
#include "backend/local/task.h"
#include "backend/output/output.h"

/* The reason of a replica, and of a job, whose output could not be written. */
#define LOCAL_OUTPUT_LOST "OutputLost"

/* The pause before the first restart after a failure. */
#define LOCAL_DELAY_MIN_MS 100u

struct local_replica;
struct local_replicas; /* the data that all replicas of a backend share, such as the queue of starts */

/* Callbacks, which may not free a replica. */
struct local_replica_events {
	/*
	 * REP has become LIVE, or not. It is live while its attempt is being started or runs, and
	 * until the attempt's log is complete.
	 */
	void (*lives)(void *data, struct local_replica *rep, bool live);
	/*
	 * Its attempt has failed. It remains FAILED, unless the job calls local_replica_restart from here, for this
	 * replica, all of its role, or the whole job.
	 */
	void (*failed)(void *data, struct local_replica *rep);
	/* REP is not live any more: the job decides what comes next. */
	void (*idle)(void *data, struct local_replica *rep);
};

/* What the replicas of one job share. Plain data of the job, which outlives them. */
struct local_replica_job {
	struct local_replicas *all;
	struct local_record *record;
	struct output_job *output;
	char *dir; /* the job's folder */
	const struct local_replica_events *events;
	void *data;
};

/* Helpers enter GROUP. GRACE_MS: the time between SIGTERM and SIGKILL. */
struct local_replicas *local_replicas_new(struct loop *loop, struct group *group,
					  unsigned grace_ms);
/* Call this after the loop has stopped and all replicas are freed. Running programs continue. */
void local_replicas_free(struct local_replicas *all);
struct tasks *local_replicas_tasks(const struct local_replicas *all);
/* Start serving the queue of starts. */
void local_replicas_begin(struct local_replicas *all);
/* Let running programs continue after the backend has stopped. */
void local_replicas_outlive(struct local_replicas *all);
/* For .kxfs/metrics; any thread. */
void local_replicas_metrics(struct local_replicas *all, FILE *out);

/* Make replica I of the job's record. */
struct local_replica *local_replica_new(const struct local_replica_job *job, size_t i);
/* Free REP; its program continues. */
void local_replica_free(struct local_replica *rep);
/* Return REP's part of the snapshot, and of the plan, in the record. */
const struct spec_replica *local_replica_record(const struct local_replica *rep);
struct spec_plan *local_replica_plan(const struct local_replica *rep);
/* Return where the program of REP's newest attempt may write a structured error. malloc'ed. */
char *local_replica_error_file(const struct local_replica *rep);
bool local_replica_is_idle(const struct local_replica *rep);

/* Start REP, which is idle, or its next attempt, after a pause. */
void local_replica_begin(struct local_replica *rep, unsigned delay_ms);
/* End REP: its program, or its planned start. */
void local_replica_end(struct local_replica *rep);
/* End the program of REP, to restart it (local_replica_begin) when it, its role or its job is no longer live. */
void local_replica_restart(struct local_replica *rep);
/* Drop the planned start of REP. Its program continues, and a later daemon takes it over. */
void local_replica_let_go(struct local_replica *rep);
/* Send SIG to the program of REP, if it runs. */
void local_replica_signal(struct local_replica *rep, int sig);
/* REP's job got its slot: start REP when the record is on disk with that change, number CHANGE. */
void local_replica_admit(struct local_replica *rep, uint64_t change);
/* Continue REP after SIGSTOP, or start it if it waited because the job was suspended. */
void local_replica_resume(struct local_replica *rep);
/*
 * REP has failed: return the pause before its next start, in ms. It grows with each failure, and is
 * reset after a long run.
 */
unsigned local_replica_slow_down(struct local_replica *rep);
/* Return the last result of local_replica_slow_down. */
unsigned local_replica_delay(const struct local_replica *rep);

/* The record is on disk with all changes up to CHANGE: start an attempt that waits for that. */
void local_replica_recorded(struct local_replica *rep, uint64_t change);
/*
 * The record could not be written, because of ERR. If an attempt of REP waits for that, show ERR in
 * REP's message, and return true.
 */
bool local_replica_is_delayed(struct local_replica *rep, int err);
/* Make the log of REP's newest attempt before the program is started. */
void local_replica_open_log(struct local_replica *rep);
/* The job is over: end the logs, and make that of an attempt that was never started. */
void local_replica_close_log(struct local_replica *rep);

/* Find the state of the newest attempt of replica I, of an earlier daemon, in the job's folder DIR. On the pool. */
void local_replica_find_attempt(struct local_replicas *all, const char *dir,
				const struct spec_record *rec, size_t i, struct task_found *ret);
/* Continue with the attempt that was found; the descriptor in FOUND is taken over. */
void local_replica_adopt(struct local_replica *rep, const struct task_found *found);
/* After local_replica_adopt for all replicas of the job: record the end of an attempt that is over. */
void local_replica_adopted(struct local_replica *rep, const struct task_found *found);
