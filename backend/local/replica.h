/* SPDX-License-Identifier: MIT */
/*
 * One replica of a local job. A replica starts attempts, records how they end, and writes their
 * logs. The job (job.h) owns the replica, and decides whether to restart it after a failure. I/O
 * thread.
 */
#pragma once

#include "backend/local/record.h"
#include "backend/local/task.h"
#include "backend/output/output.h"

/* The reason of a replica or a job whose output could not be written. */
#define LOCAL_OUTPUT_LOST "OutputLost"

/* The pause before the first restart after a failure. */
#define LOCAL_DELAY_MIN_MS 100u

struct local_replica;
/* the data that all replicas of a backend share, such as the queue of starts */
struct local_replicas;

/* Callbacks. They must not free a replica. */
struct local_replica_events {
	/*
	 * Called when REP has become live (LIVE is true), or is no longer live. A replica is live
	 * from the start of an attempt until the attempt has ended and its log is complete.
	 */
	void (*lives)(void *data, struct local_replica *rep, bool live);
	/*
	 * Called when an attempt of REP has failed. In this callback, the job may call
	 * local_replica_restart for REP, for all replicas of its role, or for all replicas of the
	 * job. If the job does not call it, REP remains FAILED.
	 */
	void (*failed)(void *data, struct local_replica *rep);
	/* Called when REP is no longer live. The job decides what REP does next. */
	void (*idle)(void *data, struct local_replica *rep);
};

/* The data that all replicas of a job share. Owned by the job, which outlives them. Plain data. */
struct local_replica_job {
	struct local_replicas *all;
	struct local_record *record;
	struct output_job *output;
	char *dir; /* the job's folder */
	const struct local_replica_events *events;
	void *data;
};

/*
 * Make the data that all replicas of a backend share. GRACE_MS is the time between SIGTERM and
 * SIGKILL.
 */
struct local_replicas *local_replicas_new(struct loop *loop, struct tasks *tasks,
					  unsigned grace_ms);
/* Call this after all replicas are freed. */
void local_replicas_free(struct local_replicas *all);
/* Begin to start the replicas in the queue, and to end programs. */
void local_replicas_begin(struct local_replicas *all);
/* Print metrics for .kxfs/metrics. Any thread. */
void local_replicas_metrics(struct local_replicas *all, FILE *out);

/* Make replica I of the job's record. */
struct local_replica *local_replica_new(const struct local_replica_job *job, size_t i);
/* Free REP; its program continues. */
void local_replica_free(struct local_replica *rep);
/* Return the part of the job's snapshot that describes REP. */
const struct spec_replica *local_replica_record(const struct local_replica *rep);
/*
 * Return the path of the file into which the program of REP's newest attempt may write a structured
 * error, malloc'ed.
 */
char *local_replica_error_file(const struct local_replica *rep);
bool local_replica_is_idle(const struct local_replica *rep);

/*
 * Start an attempt of REP: now, or after the pause that local_replica_restart has set. REP must be
 * idle. If REP's newest attempt was never started, start that attempt; otherwise start a new one.
 */
void local_replica_begin(struct local_replica *rep);
/* End the program of REP, or cancel its planned start. */
void local_replica_end(struct local_replica *rep);
/*
 * End the program of REP, because the job will restart REP after a pause of DELAY_MS. After that,
 * the job must call local_replica_begin. Depending on the retry policy, the job first waits until
 * REP, all replicas of REP's role, or all replicas of the job are no longer live.
 */
void local_replica_restart(struct local_replica *rep, unsigned delay_ms);
/* If REP is to be restarted and its program still runs, end the program. */
void local_replica_go_on(struct local_replica *rep);
/* Drop the planned start of REP. Its program continues, and a later daemon takes it over. */
void local_replica_let_go(struct local_replica *rep);
/* Send SIG to the program of REP, if it runs. */
void local_replica_signal(struct local_replica *rep, int sig);
/*
 * Record that REP's job has got its slot. REP starts when the record on disk has the change number
 * CHANGE.
 */
void local_replica_admit(struct local_replica *rep, uint64_t change);
/*
 * If REP was stopped with SIGSTOP, continue it. If REP was not started because its job was
 * suspended, start it.
 */
void local_replica_resume(struct local_replica *rep);
/*
 * Return the pause before REP's next start, in ms. Call this when REP has failed. Each failure
 * makes the pause longer. An attempt that ran for long resets the pause.
 */
unsigned local_replica_slow_down(struct local_replica *rep);

/*
 * Record that the record on disk has all changes up to number CHANGE. If an attempt of REP waits
 * for one of these changes, start the attempt.
 */
void local_replica_recorded(struct local_replica *rep, uint64_t change);
/*
 * Call this when the record could not be written because of ERR. If an attempt of REP waits for
 * that write, show ERR in REP's message, and return true.
 */
bool local_replica_is_delayed(struct local_replica *rep, int err);
/* Make the log of REP's newest attempt before the program is started. */
void local_replica_open_log(struct local_replica *rep);
/*
 * End the log of REP's newest attempt, because the job is over. If that attempt was never started,
 * first make its log. This log remains empty.
 */
void local_replica_close_log(struct local_replica *rep);

/*
 * Find the state of the newest attempt of replica I, which an earlier daemon has run. DIR is the
 * job's folder. On the pool.
 */
void local_replica_find_attempt(struct tasks *tasks, const char *dir, const struct spec_record *rec,
				size_t i, struct task_found *ret);
/*
 * Continue REP with the attempt FOUND, which an earlier daemon has started. Take ownership of the
 * descriptor in FOUND.
 */
void local_replica_adopt(struct local_replica *rep, const struct task_found *found);
/*
 * If the attempt FOUND is over, record how it ended. Call this after local_replica_adopt was called
 * for all replicas of the job.
 */
void local_replica_adopted(struct local_replica *rep, const struct task_found *found);
