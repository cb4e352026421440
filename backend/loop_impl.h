/* SPDX-License-Identifier: MIT */
/*
 * What loop.c and loop_source.c share: the loop itself, and what it waits for, kept in lists, so that
 * loop_stop can release those that nobody has freed.
 */
#ifndef KXFS_BACKEND_LOOP_IMPL_H
#define KXFS_BACKEND_LOOP_IMPL_H

#include "backend/impl.h"
#include "backend/lock.h"
#include "backend/loop.h"

struct loop_post; /* loop.c */

struct loop_timer {
	uv_timer_t uv;
	struct loop *loop;
	loop_fn fn;
	void *data;
	struct loop_timer *prev, *next;
};

struct loop_watch {
	uv_poll_t uv;
	struct loop *loop;
	loop_fn fn;
	void *data;
	struct loop_watch *prev, *next;
};

struct loop_signal_handle {
	uv_signal_t uv;
	loop_fn fn;
	void *data;
	struct loop_signal_handle *prev, *next;
};

struct loop {
	struct lock lock;
	struct loop_post *first; /* under the lock */
	struct loop_post **last; /* under the lock */
	bool awake;		 /* ASYNC may be sent to; under the lock */
	bool stop;		 /* under the lock */

	pthread_t thread;
	bool started;
	uv_loop_t uv;
	uv_async_t async;
	struct loop_timer *timers; /* I/O thread */
	struct loop_watch *watches;
	struct loop_signal_handle *signals;
};

/* Zeroed; never NULL: without memory the program ends. */
void *loop_alloc(size_t size);
void loop_signal_free(struct loop *loop, struct loop_signal_handle *s);

#endif
