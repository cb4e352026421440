/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread: one libuv loop that owns sockets, timers, child processes and file watches (rule
 * T2). Other threads post functions to it. This header shows no libuv type: code that needs one
 * includes uv.h. Public: fs/ uses it too.
 *
 * Life cycle: loop_new (any time, also before a fork: it makes no thread and no descriptor),
 * loop_start (after the fork), loop_stop, loop_free.
 *
 * All of backend/ and fs/ build on the folder base/: the loop (uv.h for direct users of libuv) and
 * its pool of threads, group (operations in progress), work (work for the pool), disk (owner of the
 * state directory), file (whole files, replaced in one step), lookup (users' files and names), lock
 * (leaves only), random, diag (the daemon's own messages: the one global), print and tally (lines
 * of .kxfs/info and .kxfs/metrics).
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
	uint64_t at; /* when it is due, by loop_now_ms */
	/* Sequence number; breaks ties between timers that expire at the same time. */
	uint64_t seq;
	size_t position; /* position in the heap of active timers, from 1; 0 if it is not set */
};

void loop_new(struct loop **ret);
/*
 * Start the thread. It blocks all signals but those of loop_signal. Return 0 or a negative errno.
 */
int loop_start(struct loop *loop);
/*
 * Run all posted functions, then end the thread and wait for it. Close the remaining watches.
 * Timers will not run any more; setting and stopping them has no effect. Wait some seconds for work
 * on the pool. Return false if some of it has not returned because its disk hangs. That work may
 * resume at any moment, so nothing that it uses may be freed: the process must end now.
 */
bool loop_stop(struct loop *loop);
void loop_free(struct loop *loop); /* NULL is allowed */

/*
 * Run FN(DATA) on the I/O thread, after all that was posted before. Call it on any thread,
 * including the I/O thread (FN then runs after the current callback). Functions posted before
 * loop_start run when the thread has started.
 */
void loop_post(struct loop *loop, loop_fn fn, void *data);

/*
 * Keep the memory of LOOP, so that a detached thread can still post. Functions posted after
 * loop_stop are not run. Any thread.
 */
void loop_ref(struct loop *loop);
void loop_unref(struct loop *loop);

/* True on the I/O thread. */
bool loop_is_here(const struct loop *loop);

/* The functions below are for the I/O thread only. */

/*
 * Have T call FN(DATA) whenever it expires. An unset timer owns no resources, but a set one must be
 * stopped before its memory is freed. Any thread.
 */
static inline void loop_timer_init(struct loop_timer *t, struct loop *loop, loop_fn fn, void *data)
{
	*t = (struct loop_timer){.loop = loop, .fn = fn, .data = data};
}
/* Set T to expire once, in MS from now, replacing any earlier setting. */
void loop_timer_set(struct loop_timer *t, uint64_t ms);
/*
 * Stop T, whether set or not: FN is not called any more. Any thread may call this after loop_stop.
 */
void loop_timer_stop(struct loop_timer *t);
/* True if T is set. Within FN this is false until T is set again. */
static inline bool loop_timer_is_set(const struct loop_timer *t)
{
	return t->position != 0;
}

/*
 * Call FN whenever FD is readable or, with PRIORITY, has a priority event, as /proc/self/mountinfo
 * has. Return NULL and set errno if FD can't be polled. The caller still owns FD.
 */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, bool priority, loop_fn fn, void *data);
void loop_watch_free(struct loop_watch *watch);

/*
 * Call FN on the I/O thread whenever the process receives signal SIG. Return 0 or a negative errno.
 */
int loop_signal(struct loop *loop, int sig, loop_fn fn, void *data);

/*
 * Run WORK on a thread of the pool, then DONE (may be NULL) on the I/O thread: for calls that may
 * wait for a disk. Most callers use work.h instead. WORK must not touch anything that another
 * thread writes. The pool runs a few jobs at the same time. While all of them hang it starts more
 * threads, up to a number at which the whole disk must hang.
 */
void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data);
/*
 * Like loop_work, for work that is done once for each of perhaps ten thousand objects, such as
 * logs. The pool alternates between such work and all other, so that no submission waits until all
 * logs have been opened.
 */
void loop_work_of_many(struct loop *loop, loop_fn work, loop_fn done, void *data);

/* Return the time: in ns since 1970, or in ms of a clock that never jumps. Any thread. */
int64_t loop_time_ns(void);
uint64_t loop_now_ms(void);
