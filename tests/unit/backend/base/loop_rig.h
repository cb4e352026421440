/* SPDX-License-Identifier: MIT */
/* A loop that runs for a test, calls to it, and calls that hang as those of a disk do until the test lets them go. */
#ifndef KXFS_TESTS_UNIT_BACKEND_BASE_LOOP_RIG_H
#define KXFS_TESTS_UNIT_BACKEND_BASE_LOOP_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "backend/base/loop.h"

#define WAIT_S 240

static struct loop *loop;

static inline void sem_wait_or_fail(sem_t *sem)
{
	struct timespec until;

	/* ThreadSanitizer does not know sem_clockwait. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	while (sem_timedwait(sem, &until) < 0)
		assert_int_equal(errno, EINTR);
}

static int setup(void **state)
{
	(void)state;
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
	(void)state;
	if (!loop)
		return 0;
	loop_stop(loop);
	loop_free(loop);
	return 0;
}

/* Run FN(DATA) on the loop and wait for its end. */
struct call {
	loop_fn fn;
	void *data;
	sem_t done;
};

static inline void call_run(void *data)
{
	struct call *c = data;

	c->fn(c->data);
	sem_post(&c->done);
}

static inline void call(loop_fn fn, void *data)
{
	struct call c = {.fn = fn, .data = data};

	sem_init(&c.done, 0, 0);
	loop_post(loop, call_run, &c);
	sem_wait_or_fail(&c.done);
	sem_destroy(&c.done);
}

static inline void nothing(void *data)
{
	(void)data;
}

/* What hangs: how many do so, and what lets one go on. */
struct hang {
	sem_t began, go;
};

static inline void hang_init(struct hang *h)
{
	sem_init(&h->began, 0, 0);
	sem_init(&h->go, 0, 0);
}

/* A piece of work. */
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

#endif
