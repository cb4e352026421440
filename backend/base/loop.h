/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread: one libuv loop that owns sockets, timers, child processes and file watches
 * (rule T2). Other threads reach it by posting functions. No libuv type shows here: what needs one
 * includes uv.h. Public: fs/ uses it too.
 *
 * Order of life: loop_new (any time, also before a fork: no thread, no descriptor is made yet),
 * loop_start (after the fork), loop_stop, loop_free.
 *
 * The folder base/ is what all of backend/ and fs/ stand on: the loop (uv.h for those who speak to libuv), group
 * (is all over that was under way?), lock (leaves only), file (whole files, whole writes), random, diag (the
 * daemon's own messages: the one global), print and tally (lines of .kxfs/info and .kxfs/metrics).
 */
#ifndef KXFS_BACKEND_BASE_LOOP_H
#define KXFS_BACKEND_BASE_LOOP_H

#include "spec/base/base.h"

struct loop;
struct loop_timer;
struct loop_watch;

typedef void (*loop_fn)(void *data);

void loop_new(struct loop **ret);
/*
 * Start the thread, all signals blocked in it but those of loop_signal and SIGCHLD (by which libuv
 * hears of its children). 0 or a negative errno.
 */
int loop_start(struct loop *loop);
/* Run what is posted, then end the thread and wait for it. Timers and watches that are left are closed. */
void loop_stop(struct loop *loop);
void loop_free(struct loop *loop);

/*
 * Run FN(DATA) on the I/O thread, after all that was posted before. Any thread, also the I/O
 * thread itself (then it runs after the current callback). What is posted before loop_start runs
 * when the thread has begun.
 */
void loop_post(struct loop *loop, loop_fn fn, void *data);

/* Is this the I/O thread? */
bool loop_is_here(const struct loop *loop);

/* Below: I/O thread only. */

/* Call FN every PERIOD_MS (0: once) after DELAY_MS. Whoever made a timer frees it, also one that has fired. */
struct loop_timer *loop_timer_new(struct loop *loop, unsigned delay_ms, unsigned period_ms,
				  loop_fn fn, void *data);
/* NULL is allowed. After this FN is not called again. */
void loop_timer_free(struct loop_timer *timer);

/*
 * Call FN whenever FD is readable, or (PRIORITY) has a priority event, as /proc/self/mountinfo has. NULL, with
 * errno: such a descriptor can't be polled. FD stays the caller's.
 */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, bool priority, loop_fn fn, void *data);
void loop_watch_free(struct loop_watch *watch);

/* Call FN on the I/O thread whenever the process gets signal SIG. 0 or a negative errno. */
int loop_signal(struct loop *loop, int sig, loop_fn fn, void *data);

/*
 * Run WORK on a thread of the pool, then DONE on the I/O thread. For what may wait for a disk.
 * WORK must not touch anything that another thread writes.
 */
void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data);

/* Now, in ns since 1970 and in ms of a clock that never jumps. Any thread. */
int64_t loop_time_ns(void);
uint64_t loop_now_ms(void);

#endif
