/* SPDX-License-Identifier: MIT */
/*
 * A loop that runs during a test, calls to it, and calls that hang like those of a disk until the
 * test releases them.
 */
#pragma once

#include "tests/unit/waiting.h"

static struct loop *loop;

static int setup(void **state)
{
	loop_new(&loop);
	return 0;
}

static inline int setup_started(void **state)
{
	setup(state);
	return loop_start(loop);
}

static int teardown(void **state)
{
	if (!loop)
		return 0;
	loop_stop(loop);
	loop_free(loop);
	return 0;
}

static inline void call(loop_fn fn, void *data)
{
	run_on(loop, fn, data);
}

static inline void nothing(void *data)
{
}

/* A call that hangs. It posts BEGAN, then waits for GO. */
struct hang {
	sem_t began, go;
};

static inline void hang_init(struct hang *h)
{
	sem_init(&h->began, 0, 0);
	sem_init(&h->go, 0, 0);
}

/* Hang in the pool. */
static inline void hang(void *data)
{
	struct hang *h = data;

	sem_post(&h->began);
	sem_wait_or_fail(&h->go);
}

static inline void post_sem(void *data)
{
	sem_post(data);
}
