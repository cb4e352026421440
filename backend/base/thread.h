/* SPDX-License-Identifier: MIT */
/*
 * Starts threads, and waits for the result of another thread. The threads block all signals,
 * because only the I/O thread receives signals.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "backend/base/lock.h"

/*
 * Run FN(DATA) on a new thread. The caller joins *RET. If RET is NULL, the thread is detached.
 * Return 0 or a negative errno.
 */
int thread_start(void *(*fn)(void *data), void *data, pthread_t *ret);

/* A result that one thread sets once, and for which another thread waits. */
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
 * Wait at most SECONDS. Return the error of the result, or -ETIMEDOUT. If there is a result, set
 * *RET_TEXT to its text, malloc'ed or NULL. RET_TEXT may be NULL. Not on the I/O thread.
 */
int wait_get(struct wait *w, unsigned seconds, char **ret_text);
