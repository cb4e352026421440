/* SPDX-License-Identifier: MIT */
/*
 * Threads for calls that may wait for a disk. A few serve; when all of them hang, more are made, so that calls which
 * hang hold up nobody else. Private to base/: others use loop_work.
 */
#pragma once

#include "spec/base/base.h"

struct pool;

struct pool_job {
	void (*run)(struct pool_job *job); /* on a thread of the pool; may free JOB */
	struct pool_job *next;		   /* used by the pool alone */
	/* Of a sort of which there may be ten thousands: the pool takes turns between these jobs and all others. */
	bool of_many;
};

void pool_new(struct pool **ret);
/* No job is begun any more, and threads that run none end. This does not wait: a job that hangs is left to itself. */
void pool_end(struct pool *pool);
/*
 * Have JOB, which stays the caller's, run after all earlier jobs of its sort (of many, or not) have begun. Not before a
 * fork.
 */
void pool_add(struct pool *pool, struct pool_job *job);
/*
 * The owner calls this again and again while jobs wait: if none has begun since the last call, all threads hang, and
 * another one is made, up to the bound. False: no job waits.
 */
bool pool_check(struct pool *pool);
