/* SPDX-License-Identifier: MIT */
/*
 * A loop that runs during a test, calls to it, and calls that hang like those of a disk until the
 * test releases them.
 */
#pragma once

#include "spec/base/mem.h"
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
	if (loop)
		loop_stop(loop);
	loop_free(take_ptr(loop));
	return 0;
}

static inline void call(loop_fn fn, void *data)
{
	run_on(loop, fn, data);
}

static inline void nothing(void *data)
{
}

static inline void post_sem(void *data)
{
	sem_post(data);
}

/* Calls that hang in the pool until the test releases them. */
struct hang {
	sem_t began, go;
};

static inline void hang_init(struct hang *h)
{
	sem_init(&h->began, 0, 0);
	sem_init(&h->go, 0, 0);
}

static inline void hang(void *data)
{
	struct hang *h = data;

	sem_post(&h->began);
	sem_wait_or_fail(&h->go);
}

/* Wait until N calls hang. */
static inline void hang_wait(struct hang *h, int n)
{
	while (n-- > 0)
		sem_wait_or_fail(&h->began);
}

static inline void hang_release(struct hang *h, int n)
{
	while (n-- > 0)
		sem_post(&h->go);
}
