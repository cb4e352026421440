/* SPDX-License-Identifier: MIT */
/*
 * Decides how long kxfs keeps finished jobs and their output. Jobs remain in history/ for
 * history_keep. While all output together exceeds the spool limit, kxfs removes the output of the
 * oldest jobs in history/, then of the oldest finished jobs in jobs/. The jobs themselves remain.
 *
 * kxfs never removes the output of a job that may still run. It archives a job before it removes
 * the job's output, unless the archive is not available and no other output can be removed. I/O
 * thread only.
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
	struct output *output;
	const struct archive *archive; /* may be NULL */
	uint64_t spool_limit;	       /* largest size of OUTPUT on disk, in bytes */
	int64_t history_keep;	       /* in seconds */
	/* True if kxfs may remove the finished JOB: its data are on disk, and no write runs. */
	bool (*may_go)(void *data, const struct spec_job *job);
	bool (*has_output)(void *data, const struct spec_job *job);
	/* True while a removal is in progress, which delays the next check. */
	bool (*is_busy)(void *data);
	/*
	 * Must move JOB, whose ttl has passed, to history/, then call expiry_soon. NULL if kxfs
	 * never moves jobs because of their ttl.
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

/* CONFIG is copied; its objects are borrowed. Call expiry_soon once all jobs are in the store. */
struct expiry *expiry_new(const struct expiry_config *config);
void expiry_free(struct expiry *x); /* NULL is allowed */

/*
 * Remove the jobs and output that are due. expiry_soon does this one second from now, expiry_now
 * when the loop runs next. Call one after a job has finished, moved to history/, or been removed.
 * X may be NULL.
 */
void expiry_soon(struct expiry *x);
void expiry_now(struct expiry *x);
/*
 * Call this when the removal of job ID's output has ended with ERR. Log the result, but not
 * repeated failures, and check the spool again. X may be NULL.
 */
void expiry_dropped(struct expiry *x, const char *id, int err);
