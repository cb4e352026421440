/* SPDX-License-Identifier: MIT */
/*
 * Functions to start threads, and to wait for the result of another thread (never on the I/O thread). All signals
 * are blocked in these threads, since only the I/O thread receives the signals of the process.
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

/* A result, such as that of starting a backend, which one thread sets once, and for which another thread waits. */
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
 * Wait for the result, at most SECONDS of the monotonic clock. Return its error; -ETIMEDOUT if there is no result
 * in time. If RET_TEXT is not NULL, *RET_TEXT is the result's text, malloc'ed or NULL. Not on the I/O thread.
 */
int wait_get(struct wait *w, unsigned seconds, char **ret_text);
