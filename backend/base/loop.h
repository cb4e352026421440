/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread: one libuv loop that owns sockets, timers, child processes and file watches
 * (rule T2). Other threads reach it by posting functions. No libuv type shows here: what needs one
 * includes uv.h. Public: fs/ uses it too.
 *
 * Order of life: loop_new (any time, also before a fork: no thread, no descriptor is made yet),
 * loop_start (after the fork), loop_stop, loop_free.
 *
 * The folder base/ is what all of backend/ and fs/ stand on: the loop (uv.h for those who speak to libuv) and its
 * pool of threads, group (is all over that was under way?), work (what the pool is given), disk (the owner of the
 * state directory), file (its whole files, in one step), lookup (what belongs to users), lock (leaves only), random,
 * diag (the daemon's own messages: the one global), print and tally (lines of .kxfs/info and .kxfs/metrics).
 */
#pragma once

#include "spec/base/base.h"

struct loop;
struct loop_watch;

typedef void (*loop_fn)(void *data);

/* A timer: a member of the object that it is for. Only the loop uses its fields. */
struct loop_timer {
	struct loop *loop;
	loop_fn fn;
	void *data;
	uint64_t at; /* when it is due, by loop_now_ms */
	/* Counts timers as they are set: of two that are due at the same time the earlier one runs first. */
	uint64_t seq;
	size_t place; /* in the heap of timers that are set, from 1; 0: it is not set */
};

void loop_new(struct loop **ret);
/* Start the thread. All signals are blocked in it but those of loop_signal. 0 or a negative errno. */
int loop_start(struct loop *loop);
/*
 * Run what is posted, then end the thread and wait for it. Watches that are left are closed; timers that are set will
 * not run, and may still be set and stopped to no effect. Work on the pool is waited for, but no longer than some
 * seconds. False: some of it has not returned, since its disk hangs. It may go on at any moment, so nothing that it
 * uses may be freed: the process must end now.
 */
bool loop_stop(struct loop *loop);
void loop_free(struct loop *loop); /* NULL is allowed */

/*
 * Run FN(DATA) on the I/O thread, after all that was posted before. Any thread, also the I/O
 * thread itself (then it runs after the current callback). What is posted before loop_start runs
 * when the thread has begun.
 */
void loop_post(struct loop *loop, loop_fn fn, void *data);

/*
 * Keep the memory of LOOP, so that a thread for which nobody may wait can still post; what it posts after loop_stop is
 * not run. Any thread.
 */
void loop_ref(struct loop *loop);
void loop_unref(struct loop *loop);

/* Is this the I/O thread? */
bool loop_is_here(const struct loop *loop);

/* The functions below are for the I/O thread only. */

/*
 * Have T call FN(DATA) whenever it is due. A timer that is not set holds nothing, but one that is set must be stopped
 * before its memory goes. Any thread.
 */
static inline void loop_timer_init(struct loop_timer *t, struct loop *loop, loop_fn fn, void *data)
{
	*t = (struct loop_timer){.loop = loop, .fn = fn, .data = data};
}
/* Let T be due once, in MS from now, whatever it was set to before. */
void loop_timer_set(struct loop_timer *t, uint64_t ms);
/* FN is not called any more; T need not be set. Any thread may call this when the loop has been stopped. */
void loop_timer_stop(struct loop_timer *t);
/* Within FN this is false until T is set again. */
static inline bool loop_timer_is_set(const struct loop_timer *t)
{
	return t->place != 0;
}

/*
 * Call FN whenever FD is readable or, with PRIORITY, has a priority event, as /proc/self/mountinfo has. NULL, with
 * errno: such a descriptor can't be polled. The caller still owns FD.
 */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, bool priority, loop_fn fn, void *data);
void loop_watch_free(struct loop_watch *watch);

/* Call FN on the I/O thread whenever the process gets signal SIG. 0 or a negative errno. */
int loop_signal(struct loop *loop, int sig, loop_fn fn, void *data);

/*
 * Run WORK on a thread of the pool, then DONE (NULL: nothing) on the I/O thread: for calls that may wait for a disk.
 * Most callers use work.h instead. WORK must not touch anything that another thread writes. A few pieces of work run
 * side by side; when all of them hang, more threads are begun, up to a number at which the disk as a whole must be what
 * hangs.
 */
void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data);
/*
 * Like loop_work, for work that is done once for each of perhaps ten thousand things, such as logs. The pool takes
 * turns between such work and all other, so that no submission waits until all logs have been opened.
 */
void loop_work_of_many(struct loop *loop, loop_fn work, loop_fn done, void *data);

/* Now: in ns since 1970, and in ms of a clock that never jumps. Any thread. */
int64_t loop_time_ns(void);
uint64_t loop_now_ms(void);
