/* SPDX-License-Identifier: MIT */
/*
 * The local jobs that are not over, or whose end is not on disk yet. A struct local_job owns its
 * replicas (replica.h) and its record (record.h). It decides which of its replicas kxfs restarts,
 * and when the job is over. It is freed when the end of the job is on disk. The job then remains as
 * a snapshot in the store and as a record on disk (saved.h). I/O thread.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/impl/impl.h"
#include "backend/local/task.h"
#include "spec/record/slots.h"

/* The name of this machine's queue. */
#define LOCAL_QUEUE "local"

struct local_job;
struct local_jobs;
struct orphan;

struct local_jobs_events {
	/* Called after SNAP has become the snapshot of JOB in the store. */
	void (*published)(void *data, struct local_job *job, const struct spec_job *snap);
	/*
	 * Called after a write of JOB's record has failed because of ERR. The write had all changes
	 * up to number CHANGE. records.c retries the write. Not called if the disk is full and the
	 * end of JOB must still be written, because kxfs has reserved space for that last write.
	 */
	void (*unwritten)(void *data, struct local_job *job, int err, uint64_t change);
	/*
	 * Called before JOB is freed. Either the job has ended, and its end is on disk and in the
	 * store, or the mount ends and the job continues.
	 */
	void (*leaving)(void *data, struct local_job *job);
	void *data;
};

/*
 * Make the table of jobs. Each job and each helper enters GROUP. LIMITS is copied. If one of the
 * limits is not 0, jobs wait in a queue.
 */
struct local_jobs *local_jobs_new(struct backend *b, struct group *group,
				  const struct spec_slots *limits);
/* Set the callbacks. Call this once, before making a job. */
void local_jobs_set_events(struct local_jobs *jobs, const struct local_jobs_events *events);
/*
 * Start and end jobs from now on. Begin with jobs for which a start or an end is planned. Call this
 * when the mount is up. Before this call, kxfs only shows jobs and follows their output.
 */
void local_jobs_take_charge(struct local_jobs *jobs);
/*
 * Call this after the loop has stopped. Running programs continue, and the next start of kxfs takes
 * them over. NULL is allowed.
 */
void local_jobs_free(struct local_jobs *jobs);
/*
 * End all jobs, because the mount is ending. If LINGER is true, end only the jobs that are being
 * ended already, and let the others continue. Before local_jobs_take_charge, let all jobs continue.
 */
void local_jobs_stop(struct local_jobs *jobs, bool linger);
/*
 * Return the GPUs in use, one bit for each: those of all jobs until they are freed, and of orphans.
 * Any thread.
 */
uint64_t local_jobs_gpus(const struct local_jobs *jobs);
/* Take ownership of ORPHAN (task.h). The orphan keeps its slot and its GPUs until it ends. */
void local_jobs_add_orphan(struct local_jobs *jobs, struct orphan *orphan);
struct tasks *local_jobs_tasks(const struct local_jobs *jobs);
struct local_job *local_jobs_find(struct local_jobs *jobs, const char *id);
/* Print metrics for .kxfs/metrics. Any thread. */
void local_jobs_metrics(struct local_jobs *jobs, FILE *out);

/*
 * Make a job from REC, and take ownership of REC. ENTRY is the job's record on disk. Return NULL
 * and set errno if the job's output can't be opened.
 */
struct local_job *local_job_new(struct local_jobs *jobs, struct record *entry,
				struct spec_record *rec);
/* Launch JOB, which must be new. */
void local_job_launch(struct local_job *job);

/*
 * Find the state of the newest attempt of each replica of REC, a job of an earlier daemon. Return
 * an array, malloc'ed. On the pool.
 */
struct task_found *local_job_find_attempts(struct local_jobs *jobs, const struct spec_record *rec);
/*
 * Resume JOB, which an earlier daemon has started. FOUND is the result of local_job_find_attempts.
 * Take ownership of the descriptors in FOUND.
 */
void local_job_take_over(struct local_job *job, const struct task_found *found);

const struct spec_record *local_job_record(const struct local_job *job);
/* True if JOB is over or is being ended. */
bool local_job_is_ending(const struct local_job *job);

/* The next five functions change the job's record, and return the number of the change. */

/*
 * End JOB and all its processes, with the goal GOAL. If JOB is being ended already, JOB keeps its
 * first goal.
 */
uint64_t local_job_end(struct local_job *job, enum spec_goal goal);
/* Move JOB to history/. If JOB is not over, first cancel JOB. */
uint64_t local_job_cancel(struct local_job *job);
uint64_t local_job_suspend(struct local_job *job);
uint64_t local_job_resume(struct local_job *job);
/* Restart all replicas of JOB. */
uint64_t local_job_restart(struct local_job *job);

/* True if JOB's record on disk has the change with the number CHANGE. */
bool local_job_has_saved(const struct local_job *job, uint64_t change);
/* Send SIGKILL to all programs of JOB immediately, without a grace period. */
void local_job_kill(struct local_job *job);
