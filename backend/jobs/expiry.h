/* SPDX-License-Identifier: MIT */
/*
 * Decides how long kxfs keeps finished jobs and their output. Jobs remain in history/ for
 * history_keep. While all output together exceeds the spool limit, kxfs removes the output of the
 * oldest jobs in history/, then the output of the oldest finished jobs in jobs/. The jobs
 * themselves remain, with their results.
 *
 * kxfs never removes the output of a job that may still run. If there is an archive, kxfs normally
 * archives a job before it removes the job's output. If the archive is not available and no other
 * output can be removed, kxfs removes output that is not archived. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/jobs/store.h"

struct archive;
struct expiry;
struct output;

struct expiry_config {
	struct loop *loop;
	struct store *store;
	struct output *output; /* kxfs compares the size of this output on disk with SPOOL_LIMIT */
	/* NULL if there is no archive. If there is one, each job is kept until it is archived. */
	const struct archive *archive;
	uint64_t spool_limit; /* in bytes */
	int64_t history_keep; /* how many seconds a job remains in history/ */
	/*
	 * Called for a finished JOB. True if kxfs may remove JOB: all its data are on disk, and no
	 * write is in progress.
	 */
	bool (*may_go)(void *data, const struct spec_job *job);
	/* True if output of JOB is on disk. */
	bool (*has_output)(void *data, const struct spec_job *job);
	/* True if a removal is in progress. kxfs then does not start another one. */
	bool (*is_busy)(void *data);
	/*
	 * Called when the ttl of JOB has passed. Must start to move JOB to history/, and call
	 * expiry_soon when the move has ended. NULL if no job has a ttl.
	 */
	void (*retire)(void *data, const struct spec_job *job);
	/*
	 * REMOVE must start to remove JOB, and call expiry_now if this succeeds. DROP must start to
	 * remove only JOB's output, and call expiry_dropped when this has ended.
	 */
	void (*remove)(void *data, const struct spec_job *job);
	void (*drop)(void *data, const struct spec_job *job);
	void *data;
};

/*
 * Create the object. CONFIG is copied; the objects that it points to are borrowed. The caller calls
 * expiry_soon once all jobs are in the store.
 */
struct expiry *expiry_new(const struct expiry_config *config);
void expiry_free(struct expiry *x); /* NULL is allowed */

/*
 * Check what can be removed: in a second (expiry_soon), or immediately (expiry_now). Call this
 * after a job has finished, moved to history/, or been removed. Several calls may lead to one
 * check. If X is NULL, do nothing.
 */
void expiry_soon(struct expiry *x);
void expiry_now(struct expiry *x);
/*
 * Call this when the removal of job ID's output has ended with ERR. If ERR is 0, log the removal,
 * and check whether enough space is free now. Otherwise log the error, unless the previous removal
 * has failed, too.
 */
void expiry_dropped(struct expiry *x, const char *id, int err);
