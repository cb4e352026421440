/* SPDX-License-Identifier: MIT */
/*
 * One replica of a local job. It starts attempts, records their ends, and writes their logs. The
 * job (job.h) owns the replica, and decides whether to restart it. I/O thread.
 */
#pragma once

#include "backend/local/record.h"
#include "backend/local/task.h"
#include "backend/output/output.h"

/* the reason of a replica or a job whose output could not be written */
#define LOCAL_OUTPUT_LOST "OutputLost"

/* the pause before the first restart after a failure */
#define LOCAL_DELAY_MIN_MS 100u

struct local_replica;
/* data that all replicas of a backend share, such as the queue of starts */
struct local_replicas;

/* Callbacks. They must not free a replica. */
struct local_replica_events {
	/*
	 * Called when REP has become live (LIVE is true), or is no longer live. A replica is live
	 * from the start of an attempt until the attempt has ended and its log is complete.
	 */
	void (*lives)(void *data, struct local_replica *rep, bool live);
	/*
	 * Called when an attempt of REP has failed. The job may now call local_replica_restart for
	 * any of its replicas. If the job does not call it for REP, REP remains FAILED.
	 */
	void (*failed)(void *data, struct local_replica *rep);
	/* Called when REP is no longer live. The job decides what REP does next. */
	void (*idle)(void *data, struct local_replica *rep);
};

/* Data that all replicas of a job share. Owned by the job, which outlives them. Plain data. */
struct local_replica_job {
	struct local_replicas *all;
	struct local_record *record;
	struct output_job *output;
	char *dir; /* the job's folder */
	const struct local_replica_events *events;
	void *data;
};

/* GRACE_MS is the time from SIGTERM to SIGKILL. */
struct local_replicas *local_replicas_new(struct loop *loop, struct tasks *tasks,
					  unsigned grace_ms);
/* Call this after all replicas are freed. */
void local_replicas_free(struct local_replicas *all);
/* Begin to start replicas and to end programs. */
void local_replicas_begin(struct local_replicas *all);
/* for .kxfs/metrics; any thread */
void local_replicas_metrics(struct local_replicas *all, FILE *out);

/* Make replica I of the job's record. */
struct local_replica *local_replica_new(const struct local_replica_job *job, size_t i);
/* Free REP. Its program continues. */
void local_replica_free(struct local_replica *rep);
/* Return the part of the job's snapshot that describes REP. */
const struct spec_replica *local_replica_record(const struct local_replica *rep);
/* Return the path of the file for a structured error of the newest attempt, malloc'ed. */
char *local_replica_error_file(const struct local_replica *rep);
bool local_replica_is_idle(const struct local_replica *rep);

/*
 * Start an attempt of REP, which must be idle, after the pause that local_replica_restart has set.
 * If the newest attempt was never started, start that attempt. Otherwise make a new one.
 */
void local_replica_begin(struct local_replica *rep);
/* End the program of REP, or cancel its planned start. */
void local_replica_end(struct local_replica *rep);
/*
 * End the program of REP, because the job will restart REP after a pause of DELAY_MS. The job must
 * call local_replica_begin when all replicas that it restarts are no longer live.
 */
void local_replica_restart(struct local_replica *rep, unsigned delay_ms);
/* If kxfs has decided to restart REP, and its program still runs, end the program. */
void local_replica_go_on(struct local_replica *rep);
/*
 * Drop the planned start of REP. If its program already runs, the program continues, and a later
 * daemon takes it over.
 */
void local_replica_let_go(struct local_replica *rep);
void local_replica_signal(struct local_replica *rep, int sig);
/* REP's job has got its slot. Start REP when the change number CHANGE is on disk. */
void local_replica_admit(struct local_replica *rep, uint64_t change);
/* Continue REP after SIGSTOP. If the suspension has prevented its start, start it now. */
void local_replica_resume(struct local_replica *rep);
/*
 * Return the pause before a restart of REP, which has failed, in ms. Each failure makes the pause
 * longer. An attempt that ran for long resets it.
 */
unsigned local_replica_slow_down(struct local_replica *rep);

/* All changes up to CHANGE are on disk. If an attempt of REP waits for one of them, start it. */
void local_replica_recorded(struct local_replica *rep, uint64_t change);
/*
 * The record could not be written because of ERR. If an attempt of REP waits for this write, show
 * ERR in REP's message, and return true.
 */
bool local_replica_is_delayed(struct local_replica *rep, int err);
/* Make the log of REP's newest attempt. Call this before the first start. */
void local_replica_open_log(struct local_replica *rep);
/* End the log of REP's newest attempt, because the job is over. */
void local_replica_close_log(struct local_replica *rep);

/* Find the newest attempt of replica I, from an earlier daemon. On the pool. */
void local_replica_find_attempt(struct tasks *tasks, const char *dir, const struct spec_record *rec,
				size_t i, struct task_found *ret);
/* Continue REP with the attempt FOUND. Take ownership of the descriptor in FOUND. */
void local_replica_adopt(struct local_replica *rep, const struct task_found *found);
/* Call this when all replicas of the job are adopted. If FOUND is over, record its end. */
void local_replica_adopted(struct local_replica *rep, const struct task_found *found);
