/* SPDX-License-Identifier: MIT */
/*
 * Decides how long jobs that are over, and their output, are kept. Jobs remain in history for
 * history_keep. Output remains until the spool limit requires its space: the output of the oldest
 * jobs in history is removed first, then the output of the oldest finished jobs in jobs/. The jobs
 * themselves remain, with their results. The output of a job that may still run is never removed.
 * The output of a job that is not archived yet is removed only if the archive accepts no jobs and
 * there is no other output to remove. I/O thread only.
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
	struct output *output; /* the output whose bytes count */
	/* The archive: a job is kept until it is archived. NULL if there is no archive. */
	const struct archive *archive;
	uint64_t spool_limit; /* in bytes */
	int64_t history_keep; /* in seconds */
	/* Return true if the finished JOB is completely on disk, with no write in progress. */
	bool (*may_go)(void *data, const struct spec_job *job);
	/* Return true if there is output of JOB. */
	bool (*has_output)(void *data, const struct spec_job *job);
	/*
	 * Return true if a removal is in progress. Then no other removal begins until expiry_now or
	 * expiry_soon is called.
	 */
	bool (*is_busy)(void *data);
	/*
	 * Start to move JOB, whose ttl has passed, to history; call expiry_soon at the end. NULL if
	 * no job has a ttl.
	 */
	void (*retire)(void *data, const struct spec_job *job);
	/*
	 * remove: start to remove JOB; call expiry_now at the end. drop: start to remove only JOB's
	 * output; call expiry_dropped at the end.
	 */
	void (*remove)(void *data, const struct spec_job *job);
	void (*drop)(void *data, const struct spec_job *job);
	void *data;
};

/*
 * CONFIG is copied; the objects that it points to are borrowed. The owner calls expiry_soon when
 * all jobs are known.
 */
struct expiry *expiry_new(const struct expiry_config *config);
void expiry_free(struct expiry *x); /* NULL is allowed */

/*
 * A job has finished, moved to history, or been removed: check what can be removed, in a second
 * (soon) or immediately (now). Many calls lead to one check. X may be NULL, in both functions,
 * because the mount is ending.
 */
void expiry_soon(struct expiry *x);
void expiry_now(struct expiry *x);
/*
 * The removal of the output of job ID has ended with ERR. If ERR is 0, log that, and check whether
 * enough space is free. Otherwise log the error, but only once for the same ERR.
 */
void expiry_dropped(struct expiry *x, const char *id, int err);
