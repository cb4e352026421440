/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread: one libuv loop that owns sockets, timers, child processes and file watches (rule
 * T2). Other threads post functions to it. This header shows no libuv type: code that needs one
 * includes uv.h. Public: fs/ uses it too.
 *
 * Life cycle: loop_new (at any time, also before a fork, since it creates no thread and no descriptor), loop_start
 * (after the fork), loop_stop, loop_free.
 *
 * All of backend/ and fs/ use the folder base/: the loop (uv.h for direct users of libuv) and its pool of threads,
 * group (operations in progress), work (work for the pool), disk (accesses to the state directory), file (whole
 * files, replaced in one step), lookup (users' files and names), lock, random, diag (the daemon's own messages, the
 * only global), print and tally (lines of .kxfs/info and .kxfs/metrics).
 */
#pragma once

#include "spec/base/base.h"

struct loop;
struct loop_watch;

typedef void (*loop_fn)(void *data);

/* A timer, embedded in the object that it is for. Only the loop uses its fields. */
struct loop_timer {
	struct loop *loop;
	loop_fn fn;
	void *data;
	uint64_t at; /* when the timer expires, by loop_now_ms */
	/* Sequence number; breaks ties between timers that expire at the same time. */
	uint64_t seq;
	size_t position; /* position in the heap of set timers, from 1; 0 if the timer is not set */
};

void loop_new(struct loop **ret);
/* Start the thread. It blocks all signals except those of loop_signal. Return 0 or a negative errno. */
int loop_start(struct loop *loop);
/*
 * Run all posted functions, close the remaining watches, end the thread and wait for it. Timers do not expire any
 * more; setting and stopping them has no effect. Wait some seconds for work on the pool. Return false if some work
 * has not returned because its disk hangs. That work may continue at any time, so its memory may not be freed, and
 * the process must end now.
 */
bool loop_stop(struct loop *loop);
void loop_free(struct loop *loop); /* NULL is allowed */

/*
 * Run FN(DATA) on the I/O thread, after all functions that were posted before. Any thread may call this, including
 * the I/O thread; FN then runs after the current callback. Functions that are posted before loop_start run when the
 * thread has started.
 */
void loop_post(struct loop *loop, loop_fn fn, void *data);

/*
 * Keep the memory of LOOP until loop_unref, so that a detached thread can still post. Functions posted after
 * loop_stop are not run. Any thread.
 */
void loop_ref(struct loop *loop);
void loop_unref(struct loop *loop);

/* True on the I/O thread. */
bool loop_is_here(const struct loop *loop);

/* The functions below are for the I/O thread only. */

/*
 * Prepare T, which calls FN(DATA) whenever it expires. A timer that is not set owns no resources; stop a set timer
 * before you free its memory. Any thread.
 */
static inline void loop_timer_init(struct loop_timer *t, struct loop *loop, loop_fn fn, void *data)
{
	*t = (struct loop_timer){.loop = loop, .fn = fn, .data = data};
}
/* Set T to expire once, MS from now. This replaces an earlier setting. */
void loop_timer_set(struct loop_timer *t, uint64_t ms);
/* Stop T, if it is set: FN is not called any more. After loop_stop any thread may call this. */
void loop_timer_stop(struct loop_timer *t);
/* True if T is set. Within FN this is false until T is set again. */
static inline bool loop_timer_is_set(const struct loop_timer *t)
{
	return t->position != 0;
}

/*
 * Call FN(DATA) whenever FD is readable. With PRIORITY, call it whenever FD has a priority event instead, as
 * /proc/self/mountinfo has. Return NULL and set errno if FD can't be polled. The caller still owns FD.
 */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, bool priority, loop_fn fn, void *data);
void loop_watch_free(struct loop_watch *watch);

/*
 * Call FN on the I/O thread whenever the process receives signal SIG. Return 0 or a negative errno.
 */
int loop_signal(struct loop *loop, int sig, loop_fn fn, void *data);

/*
 * Run WORK(DATA) on a thread of the pool, then DONE(DATA) (may be NULL) on the I/O thread. This is for calls that
 * may wait for a disk; most callers use work.h instead. WORK must not use data that another thread writes. The pool
 * runs a few calls at the same time. While all of them hang it starts more threads, up to a number at which the
 * whole disk must hang.
 */
void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data);
/*
 * Like loop_work, for work that is done once for each of perhaps ten thousand objects, such as logs. The pool
 * alternates between such work and other work, so that a submission does not wait until all logs are opened.
 */
void loop_work_of_many(struct loop *loop, loop_fn work, loop_fn done, void *data);

/* Return the time in ns since 1970; return the time in ms of a clock that never jumps. Any thread. */
int64_t loop_time_ns(void);
uint64_t loop_now_ms(void);
