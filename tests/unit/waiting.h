/* SPDX-License-Identifier: MIT */
/* Waits for other threads, with a time limit that a correct program never reaches. */
#pragma once

#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "backend/base/loop.h"
#include "tests/unit/unit.h"

#define WAIT_S 240

static inline void sem_wait_or_fail(sem_t *sem)
{
	struct timespec until;

	/* ThreadSanitizer does not know sem_clockwait. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	while (sem_timedwait(sem, &until) < 0)
		assert_int_equal(errno, EINTR);
}

struct waiting_call {
	loop_fn fn;
	void *data;
	sem_t done;
};

static inline void waiting_call(void *data)
{
	struct waiting_call *c = data;

	c->fn(c->data);
	sem_post(&c->done);
}

/* Run FN(DATA) on the thread of LOOP, and wait until it returns. */
static inline void run_on(struct loop *loop, loop_fn fn, void *data)
{
	struct waiting_call c = {.fn = fn, .data = data};

	sem_init(&c.done, 0, 0);
	loop_post(loop, waiting_call, &c);
	sem_wait_or_fail(&c.done);
	sem_destroy(&c.done);
}
