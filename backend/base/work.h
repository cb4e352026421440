/* SPDX-License-Identifier: MIT */
/*
 * Groups, which count operations in progress (rule A4), and work, which runs on the pool and can be
 * counted in a group. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"

/*
 * A group of operations. Each operation enters the group when it begins, and leaves it when it
 * ends. An owner that shuts down waits until the group is empty.
 */
struct group {
	struct loop *loop;
	size_t n;
	loop_fn fn; /* NULL if the owner does not wait */
	void *data;
	bool posted; /* true if the call of FN is posted */
};

static inline void group_init(struct group *g, struct loop *loop)
{
	*g = (struct group){.loop = loop};
}

void group_enter(struct group *g);
void group_leave(struct group *g);
/*
 * When the group is empty, post a call of FN(DATA). If an operation enters the group before FN is
 * called, wait until the group is empty again. FN is called once, and may free the group. Only one
 * caller may wait at a time.
 */
void group_when_empty(struct group *g, loop_fn fn, void *data);

/*
 * A unit of work for the pool, embedded in the object that needs it. It enters and leaves its
 * group automatically. Work that must run in order, such as most changes of the disk, goes through
 * a queue. Work of different queues runs in parallel.
 *
 *	m->work = (struct work){.run = make_work, .done = make_done, .group = &o->group, .data = m};
 *	work_start(&m->work, o->loop);
 *
 * Plain data.
 */
struct work {
	/* Runs on the pool. It must not use data that another thread writes. May be NULL. */
	loop_fn run;
	/* Runs on the I/O thread afterwards. It may free or restart the work. May be NULL. */
	loop_fn done;
	void *data; /* the argument of RUN and DONE */
	/* May be NULL. The work is in this group from its start until DONE has returned. */
	struct group *group;
	bool of_many; /* true to run this work with loop_work_of_many */
	int err;      /* set by RUN for DONE: 0 or a negative errno */
	/* Used only by work.c: the work's queue, and the next work in it. */
	struct work_queue *queue;
	struct work *next;
};

/* A queue of work. A zeroed queue is empty. A queue owns no memory. */
struct work_queue {
	struct loop *loop;
	struct work *first, **last; /* FIRST is running */
};

/* Run W, which must not be in progress. */
void work_start(struct work *w, struct loop *loop);
/*
 * Run W after all work that is already in Q, and after the DONE functions of that work. If W has no
 * RUN, only call its DONE at that time. The DONE of the last work in Q may free Q. Work that hangs
 * delays only its own queue.
 */
void work_enqueue(struct work *w, struct loop *loop, struct work_queue *q);
