/* SPDX-License-Identifier: MIT */
/*
 * Start threads with all signals blocked: only the I/O thread's loop receives the process's
 * signals.
 */
#pragma once

#include <pthread.h>

/*
 * Start a thread that runs FN(DATA). The caller joins *RET. If RET is NULL, the thread is detached.
 * Return 0 or a negative errno.
 */
int thread_start(void *(*fn)(void *data), void *data, pthread_t *ret);
