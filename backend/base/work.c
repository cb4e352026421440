/* SPDX-License-Identifier: MIT */
/* Groups of operations, and work that runs in parallel or in the order of a queue. */
#include "backend/base/work.h"

#include <assert.h>

/* --- groups --- */

/*
 * If an operation has entered the group since this call was posted, do nothing. group_leave posts
 * the call again when the group becomes empty.
 */
static void call_when_empty(void *data)
{
	struct group *g = data;
	loop_fn fn = g->fn;

	g->posted = false;
	if (g->n)
		return;
	g->fn = NULL;
	return fn(g->data);
}

static void check_empty(struct group *g)
{
	if (g->n || !g->fn || g->posted)
		return;
	g->posted = true;
	loop_post(g->loop, call_when_empty, g);
}

void group_enter(struct group *g)
{
	g->n++;
}

void group_leave(struct group *g)
{
	assert(g->n > 0);
	g->n--;
	check_empty(g);
}

void group_when_empty(struct group *g, loop_fn fn, void *data)
{
	assert(!g->fn);
	g->fn = fn;
	g->data = data;
	check_empty(g);
}

/* --- work --- */

static void run(void *data)
{
	struct work *w = data;

	if (w->run)
		w->run(w->data);
}

static void done(void *data);

static void give(struct work *w, struct loop *loop)
{
	(w->of_many ? loop_work_of_many : loop_work)(loop, run, done, w);
}

/*
 * Read W before calling DONE, which may free W. If W is the last work in its queue, DONE may free
 * the queue, too.
 */
static void done(void *data)
{
	struct work *w = data;
	struct group *group = w->group;
	struct work_queue *q = w->queue;
	struct work *next = q ? w->next : NULL;
	struct loop *loop = q ? q->loop : NULL;

	if (q)
		q->first = next;
	if (w->done)
		w->done(w->data);
	if (group)
		group_leave(group);
	if (next)
		give(next, loop);
}

void work_enqueue(struct work *w, struct loop *loop, struct work_queue *q)
{
	bool first = !q || !q->first;

	if (w->group)
		group_enter(w->group);
	w->queue = q;
	w->next = NULL;
	if (q) {
		q->loop = loop;
		*(first ? &q->first : q->last) = w;
		q->last = &w->next;
	}
	if (first)
		give(w, loop);
}

void work_start(struct work *w, struct loop *loop)
{
	work_enqueue(w, loop, NULL);
}
