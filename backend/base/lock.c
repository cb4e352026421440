/* SPDX-License-Identifier: MIT */
/*
 * Each thread counts the locks that it holds. In a debug build, an assertion fails as soon as a
 * thread takes a second lock, or calls a function that must not run under a lock. Without this,
 * such mistakes would show only as rare deadlocks.
 */
#include "backend/base/lock.h"

#include <assert.h>

_Thread_local int lock_held;

void lock_take(struct lock *l)
{
	assert(lock_held == 0);
	lock_held++;
	pthread_mutex_lock(&l->mutex);
}

void lock_drop(struct lock *l)
{
	pthread_mutex_unlock(&l->mutex);
	lock_held--;
}

void lock_assert_none(void)
{
	assert(lock_held == 0);
}
