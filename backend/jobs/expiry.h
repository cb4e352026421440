/* SPDX-License-Identifier: MIT */
/*
 * Decides how long jobs that are over stay: those in history for history_keep; and how long their output does: until
 * the spool limit needs the room. The output of the oldest of the history goes first, then that of the oldest finished
 * ones in jobs/; the jobs themselves stay, with how they have ended. A job that may still run loses nothing, nor does
 * one that is not archived yet, unless the archive takes no jobs and nothing else is left. I/O thread only.
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
	struct output *output;	       /* the output whose bytes count */
	const struct archive *archive; /* jobs stay until they are in it; NULL: there is none */
	uint64_t spool_limit;	       /* in bytes */
	int64_t history_keep;	       /* in seconds */
	/* Is the finished JOB on disk, with nothing being written there any more? */
	bool (*may_go)(void *data, const struct spec_job *job);
	/* Is there output of JOB? */
	bool (*has_output)(void *data, const struct spec_job *job);
	/* Is something being removed? Then nothing else is removed until expiry_now or expiry_soon is called. */
	bool (*is_busy)(void *data);
	/* Begin to move JOB, whose ttl is over, to history; then call expiry_soon. NULL: no job has a ttl. */
	void (*retire)(void *data, const struct spec_job *job);
	/* Begin to remove JOB, or its output alone; call expiry_now, or expiry_dropped, when that is done. */
	void (*remove)(void *data, const struct spec_job *job);
	void (*drop)(void *data, const struct spec_job *job);
	void *data;
};

/* CONFIG is copied, and what it points to is borrowed. The owner calls expiry_soon when all jobs are known. */
struct expiry *expiry_new(const struct expiry_config *config);
void expiry_free(struct expiry *x); /* NULL is allowed */

/*
 * A job has finished, moved to history, or gone: check in a second (soon) or at once (now) what can go; many calls lead
 * to one check. X may be NULL, also in the next function: the mount is ending.
 */
void expiry_soon(struct expiry *x);
void expiry_now(struct expiry *x);
/*
 * The output of job ID was removed (ERR is 0): a message says so, and it is checked whether that was enough. Or it
 * could not be removed, for ERR, which is said once until another one is.
 */
void expiry_dropped(struct expiry *x, const char *id, int err);
