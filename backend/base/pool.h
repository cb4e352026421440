/* SPDX-License-Identifier: MIT */
/*
 * Threads for calls that may wait for a disk. A few threads serve. While all of them hang, more are
 * started, so that a hanging call does not hold up others. Private to base/: others use loop_work.
 */
#pragma once

#include "spec/base/base.h"

struct pool;

struct pool_job {
	void (*run)(struct pool_job *job); /* runs on a thread of the pool; may free JOB */
	struct pool_job *next;		   /* used only by the pool */
	/*
	 * There may be ten thousands of this kind: the pool alternates between these jobs and all
	 * others.
	 */
	bool of_many;
};

void pool_new(struct pool **ret);
/* Start no more jobs, and end idle threads. This does not wait: a job that hangs is abandoned. */
void pool_end(struct pool *pool);
/*
 * Run JOB, which the caller still owns, after all earlier jobs of the same kind (OF_MANY or not)
 * have started. Not before a fork.
 */
void pool_add(struct pool *pool, struct pool_job *job);
/*
 * The owner calls this periodically while jobs wait. If no job has started since the last call, all
 * threads hang, so start another one, up to the limit. Return false if no job waits.
 */
bool pool_check(struct pool *pool);
