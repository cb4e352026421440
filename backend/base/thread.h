/* SPDX-License-Identifier: MIT */
/*
 * Starts threads, and waits for the result of another thread. Threads started here block all
 * signals, because only the I/O thread receives the signals of the process. Do not wait for a
 * result on the I/O thread.
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

/*
 * A result that one thread sets once, and for which another thread waits. For example, the result
 * of starting a backend.
 */
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
 * Set the result: 0, or a negative errno with TEXT, which may be NULL. Only the first call has an
 * effect. Any thread.
 */
void wait_set(struct wait *w, int err, const char *text);
/*
 * Wait at most SECONDS for the result. Return the error of the result, or -ETIMEDOUT if there is no
 * result in time. If there is a result and RET_TEXT is not NULL, set *RET_TEXT to the result's
 * text, malloc'ed or NULL. Not on the I/O thread.
 */
int wait_get(struct wait *w, unsigned seconds, char **ret_text);
