/* SPDX-License-Identifier: MIT */
/*
 * Start threads, with all signals blocked, since only the I/O thread's loop receives the process's
 * signals; and wait for a thread. Never wait on the I/O thread.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "spec/base/base.h"

/*
 * Start a thread that runs FN(DATA). The caller joins *RET. If RET is NULL, the thread is detached.
 * Return 0 or a negative errno.
 */
int thread_start(void *(*fn)(void *data), void *data, pthread_t *ret);
/* Wait for SEM, at most SECONDS of the monotonic clock. Return false if nobody has posted it. */
bool wait_for(sem_t *sem, unsigned seconds);
