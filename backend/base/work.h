/* SPDX-License-Identifier: MIT */
/* Groups of operations in progress (rule A4), and work for the pool. I/O thread only. */
#pragma once

#include "backend/base/loop.h"

/* Counts operations in progress. An owner that shuts down waits until its group is empty. */
struct group {
	struct loop *loop;
	size_t n;
	loop_fn fn; /* NULL if the owner does not wait */
	void *data;
	bool posted; /* a call of FN is posted */
};

static inline void group_init(struct group *g, struct loop *loop)
{
	*g = (struct group){.loop = loop};
}

void group_enter(struct group *g);
void group_leave(struct group *g);
/*
 * When the group is empty, post one call of FN(DATA). If an operation enters the group before FN
 * runs, wait again. FN may free the group. Only one caller may wait at a time.
 */
void group_when_empty(struct group *g, loop_fn fn, void *data);

/*
 * Plain data: a unit of work for the pool, embedded in the object that needs it. Work that must run
 * in order, such as most changes of the disk, goes through a queue:
 *
 *	m->work = (struct work){.run = make_work, .done = make_done, .group = &o->group, .data = m};
 *	work_start(&m->work, o->loop);
 */
struct work {
	/* Runs on the pool. It must not use data that another thread writes. May be NULL. */
	loop_fn run;
	/* Runs on the I/O thread afterwards. It may free or restart the work. May be NULL. */
	loop_fn done;
	void *data; /* argument of RUN and DONE */
	/* May be NULL. The work is in this group from its start until DONE has returned. */
	struct group *group;
	bool of_many; /* run with loop_work_of_many */
	int err;      /* set by RUN for DONE: 0 or a negative errno */
	/* Used only by work.c. */
	struct work_queue *queue;
	struct work *next;
};

/* A zeroed queue is empty. A queue owns no memory. Work of different queues runs in parallel. */
struct work_queue {
	struct loop *loop;
	struct work *first, **last; /* FIRST is running */
};

/* Run W, which must not be in progress. */
void work_start(struct work *w, struct loop *loop);
/*
 * Run W after all work in Q, including its DONE functions. If W has no RUN, only call DONE of W at
 * that time. The DONE of the last work in Q may free Q.
 */
void work_enqueue(struct work *w, struct loop *loop, struct work_queue *q);
