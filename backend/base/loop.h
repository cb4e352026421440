/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread: one libuv loop that owns sockets, timers, child processes and watched descriptors
 * (rule T2). Other threads post functions to it. uv.h gives access to the libuv loop. Public: fs/
 * also uses this header.
 *
 * Life cycle: loop_new, loop_start, loop_stop, loop_free. loop_new creates no thread and no
 * descriptor, so it may be called before a fork.
 */
#pragma once

#include "spec/base/base.h"

struct loop;
struct loop_watch;

typedef void (*loop_fn)(void *data);

/* Embedded in the object that uses the timer. Only the loop accesses the fields. */
struct loop_timer {
	struct loop *loop;
	loop_fn fn;
	void *data;
	uint64_t at; /* when the timer expires, by loop_now_ms */
	/* Breaks ties between timers that expire at the same time. */
	uint64_t seq;
	size_t position; /* in the heap of set timers, from 1; 0 if not set */
};

void loop_new(struct loop **ret);
/*
 * Start the I/O thread. It blocks all signals except those of loop_signal. Return 0 or a negative
 * errno.
 */
int loop_start(struct loop *loop);
/*
 * Run all posted functions, wait some seconds for calls on the pool, free the remaining watches,
 * and end the thread. From then on, timers don't expire, and setting or stopping them has no
 * effect. Return false if a call on the pool has not returned, because its disk hangs. Such a call
 * may still continue. So end the process without freeing memory that the call uses.
 */
bool loop_stop(struct loop *loop);
void loop_free(struct loop *loop); /* NULL is allowed */

/*
 * Run FN(DATA) on the I/O thread, after its current callback and all functions posted before. Any
 * thread. Functions posted before loop_start run when the thread starts.
 */
void loop_post(struct loop *loop, loop_fn fn, void *data);
/* If FN can't run because LOOP has stopped, call DROP(DATA) when LOOP is freed, on any thread. */
void loop_post_or_drop(struct loop *loop, loop_fn fn, loop_fn drop, void *data);

/*
 * A reference keeps LOOP's memory valid, so that a detached thread can still post. After loop_stop,
 * posted functions don't run. Any thread.
 */
void loop_ref(struct loop *loop);
void loop_unref(struct loop *loop);

/* True on the I/O thread. */
bool loop_is_here(const struct loop *loop);

/* The functions below are for the I/O thread only. */

/* Initialize T to call FN(DATA) when it expires. Stop T before you free its memory. Any thread. */
static inline void loop_timer_init(struct loop_timer *t, struct loop *loop, loop_fn fn, void *data)
{
	*t = (struct loop_timer){.loop = loop, .fn = fn, .data = data};
}
/* Set T to expire once, MS from now. This replaces an earlier setting. */
void loop_timer_set(struct loop_timer *t, uint64_t ms);
/* Cancel T, so that FN is not called. After loop_stop, any thread may call this. */
void loop_timer_stop(struct loop_timer *t);
/*
 * True if T was set, and has neither expired nor been stopped. False within FN, unless T was set
 * again.
 */
static inline bool loop_timer_is_set(const struct loop_timer *t)
{
	return t->position != 0;
}

/*
 * Call FN(DATA) whenever FD is readable. If PRIORITY, call it instead whenever poll(2) reports
 * POLLPRI, as it does for /proc/self/mountinfo. Return NULL and set errno if FD can't be polled.
 * The caller keeps FD.
 */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, bool priority, loop_fn fn, void *data);
void loop_watch_free(struct loop_watch *watch);

/* Call FN(DATA) whenever SIG arrives. Return 0 or a negative errno. */
int loop_signal(struct loop *loop, int sig, loop_fn fn, void *data);

/*
 * Run WORK(DATA) on a thread of the pool, then DONE(DATA) on the I/O thread. DONE may be NULL. WORK
 * may wait for a disk, and must not use data that another thread writes. Most callers use work.h
 * instead.
 */
void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data);
/*
 * Like loop_work, for work that is done once for each of perhaps ten thousand objects, such as
 * logs. The pool alternates between such work and other work, so that a submission need not wait
 * until all logs are open.
 */
void loop_work_of_many(struct loop *loop, loop_fn work, loop_fn done, void *data);

/* loop_time_ns: ns since 1970. loop_now_ms: ms of the monotonic clock. Any thread. */
int64_t loop_time_ns(void);
uint64_t loop_now_ms(void);
