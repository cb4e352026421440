/* SPDX-License-Identifier: MIT */
/*
 * A clock that the test controls. It defines clock_gettime, which the program, libuv and curl use,
 * so timers of the loop expire when the test says so. It does not affect waits with a timeout in
 * the kernel (pthread_cond_timedwait, idle threads of the pool).
 */
#pragma once

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backend/base/loop.h"

static atomic_llong clock_ahead; /* how far the clock is ahead, in seconds */
static atomic_llong clock_set;	 /* how much further the wall clock is ahead, in seconds */

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

/*
 * Let S seconds pass. The loop OF, which may be waiting, runs the timers that have expired. Any
 * thread may call this.
 */
static inline void clock_pass(struct loop *of, unsigned s)
{
	atomic_fetch_add(&clock_ahead, s);
	loop_post(of, clock_nothing, NULL);
}

/*
 * Let S seconds pass, one second at a time. This is for tests in which each of several waits starts
 * when the previous one has ended.
 */
static inline void clock_pass_slowly(struct loop *of, unsigned s)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	for (unsigned i = 0; i < s; i++) {
		nanosleep(&pause, NULL);
		clock_pass(of, 1);
	}
}
