/* SPDX-License-Identifier: MIT */
/*
 * How long jobs that are over stay: those in history for history_keep. And how long their output does: until the spool
 * limit needs the room. The output of the oldest of the history goes first, then that of the oldest finished ones in
 * jobs/; the jobs themselves stay, with how they have ended. What may still run loses nothing. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/jobs/store.h"

struct expiry;
struct output;

struct expiry_config {
	struct loop *loop;
	struct store *store;
	struct output *output; /* whose bytes count */
	uint64_t spool_limit;  /* bytes */
	int64_t history_keep;  /* seconds */
	/* Is the finished JOB on disk, and does nothing write there any more? */
	bool (*may_go)(void *data, const struct spec_job *job);
	/* Is there output of it? */
	bool (*has_output)(void *data, const struct spec_job *job);
	/* Is something being removed? Then nothing else is, until expiry_now or expiry_soon. */
	bool (*is_busy)(void *data);
	/* Begin to move JOB, whose ttl is over, to history, and call expiry_soon. NULL: no job has a ttl. */
	void (*retire)(void *data, const struct spec_job *job);
	/* Begin to remove JOB, or its output alone; and call expiry_now, or expiry_dropped, when that is done. */
	void (*remove)(void *data, const struct spec_job *job);
	void (*drop)(void *data, const struct spec_job *job);
	void *data;
};

/* CONFIG is copied, what it points to borrowed. The owner calls expiry_soon when all jobs are known. */
struct expiry *expiry_new(const struct expiry_config *config);
void expiry_free(struct expiry *x); /* NULL is allowed */

/*
 * A job has finished, moved to history, or gone: see in a second or at once what is to go; many calls lead to one
 * check. X may be NULL, also below: the mount ends.
 */
void expiry_soon(struct expiry *x);
void expiry_now(struct expiry *x);
/*
 * The output of job ID is removed (ERR is 0: it is said, and seen whether that was enough); or could not be, for ERR,
 * which is said once until one is removed.
 */
void expiry_dropped(struct expiry *x, const char *id, int err);
