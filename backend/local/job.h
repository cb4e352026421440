/* SPDX-License-Identifier: MIT */
/*
 * The local jobs whose end is not on disk yet. A job owns its replicas (replica.h) and its record
 * (record.h). The job decides which replicas kxfs restarts, and when the job is over. When its end
 * is on disk, the struct is freed. Its snapshot and its record remain (saved.h). I/O thread.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/impl/impl.h"
#include "backend/local/task.h"
#include "spec/record/slots.h"

/* the name of this machine's queue */
#define LOCAL_QUEUE "local"

struct local_job;
struct local_jobs;
struct orphan;

struct local_jobs_events {
	/* Called after SNAP has become JOB's snapshot in the store. */
	void (*published)(void *data, struct local_job *job, const struct spec_job *snap);
	/*
	 * Called when a write of the changes up to CHANGE has failed. records.c retries the write.
	 * Not called if the disk is full while JOB ends, because space is reserved for its end.
	 */
	void (*unwritten)(void *data, struct local_job *job, int err, uint64_t change);
	/* Called before JOB is freed, because its end is on disk, or the mount ends. */
	void (*leaving)(void *data, struct local_job *job);
	void *data;
};

/*
 * Each job and each helper enters GROUP. LIMITS is copied. If LIMITS sets any limit, jobs wait in a
 * queue.
 */
struct local_jobs *local_jobs_new(struct backend *b, struct group *group,
				  const struct spec_slots *limits);
/* Call this once, before making a job. */
void local_jobs_set_events(struct local_jobs *jobs, const struct local_jobs_events *events);
/* Begin to start and end jobs. Call this once the mount is up. Until then, only show jobs. */
void local_jobs_take_charge(struct local_jobs *jobs);
/* Call this after the loop has stopped. Programs continue, and the next start takes them over. */
void local_jobs_free(struct local_jobs *jobs);
/*
 * End all jobs, because the mount is ending. If LINGER is true, end only jobs that are being ended
 * already. Before local_jobs_take_charge, end none.
 */
void local_jobs_stop(struct local_jobs *jobs, bool linger);
/* Return the GPUs of all jobs and orphans, one bit for each. Any thread. */
uint64_t local_jobs_gpus(const struct local_jobs *jobs);
/* Take ownership of ORPHAN, which keeps its slot and its GPUs until it ends. */
void local_jobs_add_orphan(struct local_jobs *jobs, struct orphan *orphan);
struct tasks *local_jobs_tasks(const struct local_jobs *jobs);
struct local_job *local_jobs_find(struct local_jobs *jobs, const char *id);
/* for .kxfs/metrics; any thread */
void local_jobs_metrics(struct local_jobs *jobs, FILE *out);

/*
 * Make a job from REC, and take ownership of REC. ENTRY is the job's record on disk. If the job's
 * output can't be opened, leave REC to the caller, return NULL and set errno.
 */
struct local_job *local_job_new(struct local_jobs *jobs, struct record *entry,
				struct spec_record *rec);
/* Launch a new job. */
void local_job_launch(struct local_job *job);

/* Find the newest attempts of a job of an earlier daemon. Return a malloc'ed array. On the pool. */
struct task_found *local_job_find_attempts(struct local_jobs *jobs, const struct spec_record *rec);
/* Continue a job of an earlier daemon. Take ownership of the descriptors in FOUND. */
void local_job_take_over(struct local_job *job, const struct task_found *found);

const struct spec_record *local_job_record(const struct local_job *job);
/* True if JOB is over or is being ended. */
bool local_job_is_ending(const struct local_job *job);

/* The next five functions change the job's record, and return the number of the change. */

/* If JOB is being ended already, it keeps its first goal. */
uint64_t local_job_end(struct local_job *job, enum spec_goal goal);
/* Move JOB to history/, and end it if it is not over. */
uint64_t local_job_cancel(struct local_job *job);
uint64_t local_job_suspend(struct local_job *job);
uint64_t local_job_resume(struct local_job *job);
uint64_t local_job_restart(struct local_job *job);

/* True if JOB's record on disk has the change with the number CHANGE. */
bool local_job_has_saved(const struct local_job *job, uint64_t change);
/* Send SIGKILL to all programs, without a grace period. */
void local_job_kill(struct local_job *job);
