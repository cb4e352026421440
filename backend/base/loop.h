/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread: one libuv loop that owns sockets, timers, child processes and watched descriptors
 * (rule T2). Other threads post functions to it. This header shows no libuv type. Code that needs
 * one includes backend/base/uv.h. Public: fs/ also uses this header.
 *
 * Life cycle: loop_new, loop_start (after the fork), loop_stop, loop_free. loop_new creates no
 * thread and no descriptor, so it may be called before the fork.
 *
 * All of backend/ and fs/ use the folder base/. Its files are loop (the I/O thread and its pool),
 * uv.h (the libuv loop), work (groups of operations, and work for the pool), disk (accesses to the
 * state directory), file (whole files), lookup (users' paths and names), lock, thread, process,
 * random, diag (the daemon's own messages), and print (lines of .kxfs/info and .kxfs/metrics).
 */
#pragma once

#include "spec/base/base.h"

struct loop;
struct loop_watch;

typedef void (*loop_fn)(void *data);

/* A timer. Embed it in the object that uses it. Only the loop accesses its fields. */
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
/*
 * Start the I/O thread, which blocks all signals except those of loop_signal. Return 0 or a
 * negative errno.
 */
int loop_start(struct loop *loop);
/*
 * Run all posted functions, wait some seconds for calls on the pool, close the remaining watches,
 * and end the thread. From then on, timers do not expire, and setting or stopping them has no
 * effect. Return false if a call on the pool has not returned, because its disk hangs. Such a call
 * may continue at any time. So do not free memory that it uses, and end the process now.
 */
bool loop_stop(struct loop *loop);
void loop_free(struct loop *loop); /* NULL is allowed */

/*
 * Run FN(DATA) on the I/O thread, after all functions that were posted before. Any thread may call
 * this. On the I/O thread, FN runs after the current callback has returned. Functions posted before
 * loop_start run when the thread has started.
 */
void loop_post(struct loop *loop, loop_fn fn, void *data);

/*
 * Take a reference to LOOP, so that its memory remains valid until loop_unref, and a detached
 * thread can still post. Functions posted after loop_stop are not run. Any thread.
 */
void loop_ref(struct loop *loop);
void loop_unref(struct loop *loop);

/* True on the I/O thread. */
bool loop_is_here(const struct loop *loop);

/* The functions below are for the I/O thread only. */

/*
 * Initialize T to call FN(DATA) whenever T expires. If T is set, stop it before you free its
 * memory. If T is not set, it needs no cleanup. Any thread.
 */
static inline void loop_timer_init(struct loop_timer *t, struct loop *loop, loop_fn fn, void *data)
{
	*t = (struct loop_timer){.loop = loop, .fn = fn, .data = data};
}
/* Set T to expire once, MS from now. This replaces an earlier setting. */
void loop_timer_set(struct loop_timer *t, uint64_t ms);
/* Stop T if it is set, so that FN is not called. After loop_stop, any thread may call this. */
void loop_timer_stop(struct loop_timer *t);
/* True if T is set. Within FN this is false until T is set again. */
static inline bool loop_timer_is_set(const struct loop_timer *t)
{
	return t->position != 0;
}

/*
 * Call FN(DATA) whenever FD is readable. If PRIORITY, call it only when poll(2) reports POLLPRI for
 * FD. /proc/self/mountinfo reports its changes in this way. Return NULL and set errno if FD can't
 * be polled. The caller still owns FD.
 */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, bool priority, loop_fn fn, void *data);
void loop_watch_free(struct loop_watch *watch);

/* Call FN(DATA) on the I/O thread whenever SIG arrives. Return 0 or a negative errno. */
int loop_signal(struct loop *loop, int sig, loop_fn fn, void *data);

/*
 * Run WORK(DATA) on a thread of the pool, then DONE(DATA) on the I/O thread. DONE may be NULL. This
 * is for calls that may wait for a disk; most callers use work.h instead. WORK must not use data
 * that another thread writes. The pool runs a few calls at the same time. If all these calls hang,
 * the pool starts more threads, up to a limit.
 */
void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data);
/*
 * Like loop_work, for work that is done once for each of perhaps ten thousand objects, such as
 * logs. The pool alternates between such work and other work, so that a submission need not wait
 * until all logs are open.
 */
void loop_work_of_many(struct loop *loop, loop_fn work, loop_fn done, void *data);

/*
 * loop_time_ns returns the time in ns since 1970. loop_now_ms returns the time in ms of the
 * monotonic clock. Any thread.
 */
int64_t loop_time_ns(void);
uint64_t loop_now_ms(void);
