/* SPDX-License-Identifier: MIT */
/*
 * Start threads, with all signals blocked, since only the I/O thread's loop receives the process's
 * signals; and wait for a result of another thread. Never wait on the I/O thread.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "backend/base/lock.h"

/*
 * Start a thread that runs FN(DATA). The caller joins *RET. If RET is NULL, the thread is detached.
 * Return 0 or a negative errno.
 */
int thread_start(void *(*fn)(void *data), void *data, pthread_t *ret);

/* A result that one thread waits for and another one sets, once, such as that of starting a backend. */
struct wait {
	sem_t done;
	struct lock lock; /* protects the members below */
	bool over;
	int err;
	char *text;
};

void wait_init(struct wait *w);
void wait_clear(struct wait *w);
/*
 * Set the result: 0, or a negative errno with TEXT (may be NULL). Only the first call counts. Any
 * thread.
 */
void wait_set(struct wait *w, int err, const char *text);
/*
 * Wait for the result, at most SECONDS of the monotonic clock; after that return -ETIMEDOUT. If
 * RET_TEXT is not NULL, *RET_TEXT is the result's text, malloc'ed or NULL. Not on the I/O thread.
 */
int wait_get(struct wait *w, unsigned seconds, char **ret_text);
