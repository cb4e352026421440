/* SPDX-License-Identifier: MIT */
/*
 * Each thread counts the locks that it holds. So a debug build finds a second lock, or a call that must not run
 * under a lock, immediately and not only as an occasional deadlock.
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
