/* SPDX-License-Identifier: MIT */
/*
 * A clock that a test moves on: it defines clock_gettime, which the program, libuv and curl all read, so that timers of
 * the loop are due when the test says so. Only what sleeps until a time that the kernel keeps (pthread_cond_timedwait,
 * the pool when it is idle) knows nothing of this clock.
 */
#pragma once

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backend/base/loop.h"

static atomic_llong clock_ahead; /* how far the clock is ahead, s */
static atomic_llong clock_set;	 /* how far the time of day is set ahead of that, s */

int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_REALTIME)
		ret->tv_sec += atomic_load(&clock_ahead);
	if (id == CLOCK_REALTIME)
		ret->tv_sec += atomic_load(&clock_set);
	return r;
}

static inline void clock_nothing(void *data)
{
}

/* Let S seconds pass. The loop OF, which may be in the middle of a wait, sees what is due by now. Any thread. */
static inline void clock_pass(struct loop *of, unsigned s)
{
	atomic_fetch_add(&clock_ahead, s);
	loop_post(of, clock_nothing, NULL);
}

/*
 * Let S seconds pass, a second at a time, for a test that waits for several things of which each begins when the last
 * is over.
 */
static inline void clock_pass_slowly(struct loop *of, unsigned s)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	for (unsigned i = 0; i < s; i++) {
		nanosleep(&pause, NULL);
		clock_pass(of, 1);
	}
}
