/* SPDX-License-Identifier: MIT */
/*
 * The only type of lock in kxfs. A thread holds at most one lock, and meanwhile calls nothing that
 * may wait, reply or call back (rule T4). Public: fs/ also uses this header.
 *
 *	struct lock l = LOCK_INIT;
 *	{
 *		lock_scope(&l);
 *		...
 *	}	// released here
 */
#pragma once

#include <assert.h>
#include <pthread.h>

#include "spec/base/base.h"

struct lock {
	pthread_mutex_t mutex;
};

#define LOCK_INIT                                                                                  \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER                                                          \
	}

/* The number of locks that this thread holds. Only lock.c writes it. */
extern _Thread_local int lock_held;

void lock_take(struct lock *l);
void lock_drop(struct lock *l);
/* Functions that must not run under a lock call this to assert that this thread holds no lock. */
void lock_assert_none(void);

static inline void lock_scope_end(struct lock **l)
{
	lock_drop(*l);
}

#define lock_scope(l)                                                                              \
	struct lock *lock_scope_ cleanup(lock_scope_end) = (l);                                    \
	lock_take(lock_scope_)
