/* SPDX-License-Identifier: MIT */
/*
 * Threads for what may wait for a disk. A few serve; when all of them hang, more are made, so that calls which hang
 * hold up nobody else. Private to base/: loop_work is what others use.
 */
#pragma once

#include "spec/base/base.h"

struct pool;

struct pool_job {
	void (*run)(struct pool_job *job); /* on a thread of the pool; may free JOB */
	struct pool_job *next;		   /* the pool's */
	bool of_many; /* there may be ten thousands of its sort: it takes turns with what is of none */
};

void pool_new(struct pool **ret);
/* Threads that run nothing end; a job that hangs is left to itself, and none is begun any more. It waits for none. */
void pool_end(struct pool *pool);
/* JOB, the caller's, runs after those like it, of many or not, that were given before have begun. Not before a fork. */
void pool_add(struct pool *pool, struct pool_job *job);
/*
 * To be called again and again while jobs wait: when none has begun since the last call all threads hang, and another
 * is made, up to the bound. False: none waits.
 */
bool pool_look(struct pool *pool);
