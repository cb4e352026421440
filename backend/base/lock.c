/* SPDX-License-Identifier: MIT */
/*
 * Each thread counts the locks that it holds. Debug builds assert that a thread takes no second
 * lock, because such mistakes would otherwise show only as rare deadlocks.
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
