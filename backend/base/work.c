/* SPDX-License-Identifier: MIT */
/* Work that knows its group, run in parallel or in the order of a queue. */
#include "backend/base/work.h"

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

/* DONE may free W and, if W is the last in it, the queue. */
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

static void add(struct work *w, struct loop *loop, struct work_queue *q)
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
	add(w, loop, NULL);
}

void work_enqueue(struct work *w, struct loop *loop, struct work_queue *q)
{
	add(w, loop, q);
}
