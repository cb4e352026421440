/* SPDX-License-Identifier: MIT */
/* A thread that no signal reaches: whoever sends one means the process, and its loop takes it. */
#pragma once

#include <pthread.h>

/* The caller joins *RET; if RET is NULL, nobody can wait for the thread. 0 or a negative errno. */
int thread_start(void *(*fn)(void *data), void *data, pthread_t *ret);
