/* SPDX-License-Identifier: MIT */
/*
 * Local jobs that are not over yet, or whose end is not on disk yet: a job owns its replicas (replica.h) and its record
 * (record.h), and decides what is started again and when it is over. A job that is over is freed, and is then only a
 * snapshot in the store and a folder on disk (saved.h). I/O thread.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/impl/impl.h"
#include "backend/local/task.h"
#include "spec/record/turns.h"

/* The name of the queue of the machine. */
#define LOCAL_QUEUE "local"

struct local_job;
struct local_jobs;
struct orphan;

struct local_jobs_events {
	/* The store now shows SNAP as the snapshot of JOB. */
	void (*published)(void *data, struct local_job *job, const struct spec_job *snap);
	/*
	 * The record of JOB, with its changes up to number CHANGE, could not be written, for ERR, and that is tried
	 * again. Not told of a full disk while the end of JOB, for which room is kept, is still to be written.
	 */
	void (*unwritten)(void *data, struct local_job *job, int err, uint64_t change);
	/* JOB is about to be freed: it is over on disk and in the store, or it outlives the mount. */
	void (*leaving)(void *data, struct local_job *job);
	/* A job was freed. */
	void (*left)(void *data);
	void *data;
};

/*
 * Each job, and each helper, enters GROUP. LIMITS, of which nothing is counted yet, is copied: there is a queue if one
 * of its limits is not 0.
 */
struct local_jobs *local_jobs_new(struct backend *b, struct group *group,
				  const struct spec_turns *limits,
				  const struct local_jobs_events *events);
/*
 * The mount is up: what is planned begins. Before this call jobs are shown and their output is followed, but none is
 * started or ended.
 */
void local_jobs_take_charge(struct local_jobs *jobs);
/*
 * To be called after the loop has stopped. What still runs goes on, and the next start takes it over. NULL is allowed.
 */
void local_jobs_free(struct local_jobs *jobs);
/* The mount ends: end all jobs; or, with LINGER, only those that somebody is ending already. */
void local_jobs_stop(struct local_jobs *jobs, bool linger);
/* The mount has waited long enough: jobs that have not ended run on, as their records say. */
void local_jobs_leave(struct local_jobs *jobs);
/* The GPUs that jobs have, a bit each; those of a job that is being ended too. Any thread. */
uint64_t local_jobs_gpus(const struct local_jobs *jobs);
size_t local_jobs_count(const struct local_jobs *jobs);
/* ORPHAN (orphan.h), which is taken over, has a place and GPUs until it ends. */
void local_jobs_add_orphan(struct local_jobs *jobs, struct orphan *orphan);
struct tasks *local_jobs_tasks(const struct local_jobs *jobs);
struct local_job *local_jobs_find(struct local_jobs *jobs, const char *id);
/* For .kxfs/metrics; any thread. */
void local_jobs_metrics(struct local_jobs *jobs, FILE *out);

/*
 * Make a job of REC, which is taken over and whose parts are in ENTRY on disk. NULL with errno: the job's folder can't
 * be opened.
 */
struct local_job *local_job_new(struct local_jobs *jobs, struct record *entry,
				struct spec_record *rec);
/* Start JOB. */
void local_job_launch(struct local_job *job);

/*
 * Runs on the pool: what became of the attempts of a job of an earlier daemon. Returns new0_n(rec->n_replicas), to be
 * freed.
 */
struct task_found *local_job_find_attempts(struct local_jobs *jobs, const struct spec_record *rec);
/*
 * Go on with a job of an earlier daemon. FOUND is what local_job_find_attempts has found; the descriptors in it are
 * taken over.
 */
void local_job_take_over(struct local_job *job, const struct task_found *found);

const struct spec_record *local_job_record(const struct local_job *job);
/* Has JOB ended, or has somebody decided that it ends? */
bool local_job_is_ending(const struct local_job *job);

/* The next five return the number of the change that they make of the job's record. */

/* End all processes of JOB, and with them the job. The first goal counts. */
uint64_t local_job_end(struct local_job *job, enum spec_goal goal);
/* From now on show JOB in the history; if it still runs, cancel it. */
uint64_t local_job_cancel(struct local_job *job);
uint64_t local_job_suspend(struct local_job *job);
uint64_t local_job_resume(struct local_job *job);
/* Start all of JOB again. */
uint64_t local_job_restart(struct local_job *job);

/* Is the record of JOB on disk with CHANGE? */
bool local_job_has_saved(const struct local_job *job, uint64_t change);
/* Send SIGKILL now to all programs of JOB that were given time to end. */
void local_job_kill(struct local_job *job);
