/* SPDX-License-Identifier: MIT */
/*
 * Runs lookups on their own threads. The thread and the loop share a struct asked. If the lookup
 * hangs, the thread frees the struct; otherwise the loop does. One global table has all lookups
 * whose thread exists, because a thread that hangs may outlive its loop.
 *
 *	state  | what is in progress       | what ends it            | next
 *	asked  | the thread, and the timer | the thread has answered | over; call DONE with QUESTION
 *	       |                           | MS ms have passed       | hangs; call DONE with NULL
 *	hangs  | the thread                | the thread has answered | over; free the struct asked
 */
#include "backend/base/lookup.h"

#include <utlist.h>

#include "backend/base/lock.h"
#include "backend/base/thread.h"
#include "spec/base/mem.h"

/* The largest number of threads. Each costs memory. */
#define LOOKUP_MAX 256

enum lookup_state {
	ASKED,
	HANGS,
	OVER,
};

struct asked {
	struct lookup l;
	struct loop *loop;
	char *key;
	struct loop_timer timer;
	enum lookup_state state; /* protected by LOCK */
	struct asked *prev, *next;
};

static struct lock lock = LOCK_INIT;
/* The lookups that have a thread. LOCK protects ALL and N_ALL. */
static struct asked *all;
static unsigned n_all;

static void asked_free(void *data)
{
	struct asked *a = data;

	if (a->l.question)
		a->l.free(a->l.question);
	free(a->key);
	free(a);
}

/* End a lookup. QUESTION has the answer; NULL if there is none. */
static void finish(const struct lookup *l, void *question)
{
	l->done(l->data, question);
	if (l->group)
		group_leave(l->group);
}

static void on_looked(void *data)
{
	struct asked *a = data;

	loop_timer_stop(&a->timer);
	finish(&a->l, a->l.question);
	asked_free(a);
}

static void on_late(void *data)
{
	struct asked *a = data;
	struct lookup l = a->l; /* once STATE is HANGS, the thread may free A */

	{
		lock_scope(&lock);
		if (a->state == OVER)
			return; /* on_looked is posted, and frees A */
		a->state = HANGS;
	}
	finish(&l, NULL);
}

static void *look(void *data)
{
	struct asked *a = data;
	struct loop *loop = a->loop;
	bool hung;

	a->l.look(a->l.question);
	{
		lock_scope(&lock);
		hung = a->state == HANGS;
		a->state = OVER;
		DL_DELETE(all, a);
		n_all--;
	}
	if (hung)
		asked_free(a);
	else
		loop_post_or_drop(loop, on_looked, asked_free, a);
	loop_unref(loop);
	return NULL;
}

/* Add A to the table. Return false if the table is full, or a lookup of the same key hangs. */
static bool admit(struct asked *a)
{
	struct asked *other;

	lock_scope(&lock);
	DL_FOREACH(all, other)
		if (other->state == HANGS && streq(other->key, a->key))
			return false;
	if (n_all == LOOKUP_MAX)
		return false;
	DL_APPEND(all, a);
	n_all++;
	return true;
}

void lookup_start(struct loop *loop, const struct lookup *l)
{
	struct asked *a = new0(struct asked);

	a->l = *l;
	a->loop = loop;
	a->key = text_copy(l->key);
	if (l->group)
		group_enter(l->group);
	loop_timer_init(&a->timer, loop, on_late, a);
	if (admit(a)) {
		loop_ref(loop); /* for the thread */
		if (thread_start(look, a, NULL) == 0)
			return loop_timer_set(&a->timer, l->ms);
		loop_unref(loop);
		lock_scope(&lock);
		DL_DELETE(all, a);
		n_all--;
	}
	a->l.free(take_ptr(a->l.question));
	loop_post(loop, on_looked, a);
}
