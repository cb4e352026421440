/* SPDX-License-Identifier: MIT */
/*
 * Local jobs that are not over, or whose end is not on disk yet. A job owns its replicas
 * (replica.h) and its record (record.h), and decides which replicas are restarted, and when the job
 * is over. Then the object is freed; the job remains as a snapshot in the store and a record on
 * disk (saved.h). I/O thread.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/impl/impl.h"
#include "backend/local/task.h"
#include "spec/record/slots.h"

/* The name of the queue of the machine. */
#define LOCAL_QUEUE "local"

struct local_job;
struct local_jobs;
struct orphan;

struct local_jobs_events {
	/* The store now shows SNAP as the snapshot of JOB. */
	void (*published)(void *data, struct local_job *job, const struct spec_job *snap);
	/*
	 * The record of JOB, with its changes up to number CHANGE, could not be written because of
	 * ERR; the write is retried. Not called for a full disk while JOB's end, which has reserved
	 * space, is still to be written.
	 */
	void (*unwritten)(void *data, struct local_job *job, int err, uint64_t change);
	/*
	 * JOB is about to be freed: either disk and store show that it is over, or it outlives the
	 * mount.
	 */
	void (*leaving)(void *data, struct local_job *job);
	/* A job was freed. */
	void (*left)(void *data);
	void *data;
};

/*
 * Each job, and each helper, enters GROUP. LIMITS is copied; jobs wait in a queue if one of its
 * limits is not 0.
 */
struct local_jobs *local_jobs_new(struct backend *b, struct group *group,
				  const struct spec_slots *limits,
				  const struct local_jobs_events *events);
/*
 * The mount is up: begin with the planned starts and ends. Before this call kxfs shows jobs and
 * follows their output, but does not start or end any.
 */
void local_jobs_take_charge(struct local_jobs *jobs);
/* Call this after the loop has stopped. Running programs continue; the next start takes them over. NULL is allowed. */
void local_jobs_free(struct local_jobs *jobs);
/* The mount ends: end all jobs; with LINGER, only those that are being ended already. */
void local_jobs_stop(struct local_jobs *jobs, bool linger);
/*
 * Stop waiting for the jobs that have not ended in time: they continue, and remain running in their
 * records.
 */
void local_jobs_leave(struct local_jobs *jobs);
/* Return the GPUs of all jobs, a bit each, also of those that are being ended. Any thread. */
uint64_t local_jobs_gpus(const struct local_jobs *jobs);
size_t local_jobs_count(const struct local_jobs *jobs);
/* Take over ORPHAN (task.h), which keeps its slot and its GPUs until it ends. */
void local_jobs_add_orphan(struct local_jobs *jobs, struct orphan *orphan);
struct tasks *local_jobs_tasks(const struct local_jobs *jobs);
struct local_job *local_jobs_find(struct local_jobs *jobs, const char *id);
/* For .kxfs/metrics; any thread. */
void local_jobs_metrics(struct local_jobs *jobs, FILE *out);

/*
 * Make a job of REC, which is taken over and whose record is ENTRY. Return NULL with errno if its output can't be
 * opened.
 */
struct local_job *local_job_new(struct local_jobs *jobs, struct record *entry,
				struct spec_record *rec);
/* Start JOB. */
void local_job_launch(struct local_job *job);

/*
 * Find the states of the newest attempts of a job of an earlier daemon, one for each replica. malloc'ed. On the pool.
 */
struct task_found *local_job_find_attempts(struct local_jobs *jobs, const struct spec_record *rec);
/* Resume a job of an earlier daemon, with FOUND of local_job_find_attempts. Its descriptors are taken over. */
void local_job_take_over(struct local_job *job, const struct task_found *found);

const struct spec_record *local_job_record(const struct local_job *job);
/* True if JOB is over or is being ended. */
bool local_job_is_ending(const struct local_job *job);

/* The next five functions change the job's record, and return the number of that change. */

/* End all processes of JOB, and the job. The first goal counts. */
uint64_t local_job_end(struct local_job *job, enum spec_goal goal);
/* Move JOB to history/; cancel it if it is not over. */
uint64_t local_job_cancel(struct local_job *job);
uint64_t local_job_suspend(struct local_job *job);
uint64_t local_job_resume(struct local_job *job);
/* Restart all of JOB. */
uint64_t local_job_restart(struct local_job *job);

/* True if the record of JOB is on disk with CHANGE. */
bool local_job_has_saved(const struct local_job *job, uint64_t change);
/* Send SIGKILL to all programs of JOB, without waiting for the end of their grace. */
void local_job_kill(struct local_job *job);
