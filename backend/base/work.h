/* SPDX-License-Identifier: MIT */
/*
 * Groups, which count operations in progress (rule A4), and work for the pool, which knows the
 * group that counts it. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"

/*
 * Each operation enters the group at its start and leaves it at its end. An owner that shuts down
 * waits until the group is empty.
 */
struct group {
	struct loop *loop;
	size_t n;
	loop_fn fn; /* NULL if nobody waits */
	void *data;
	bool posted; /* the call of FN is posted */
};

static inline void group_init(struct group *g, struct loop *loop)
{
	*g = (struct group){.loop = loop};
}

void group_enter(struct group *g);
void group_leave(struct group *g);
/*
 * Call FN(DATA) once, posted to the loop, when the group is empty and stays so until that call. FN
 * may free the group. Only one caller may wait at a time.
 */
void group_when_empty(struct group *g, loop_fn fn, void *data);

/*
 * A unit of work for the pool, embedded in the object that it is for. Its callers need not enter or
 * leave the group. Work that must run in order, such as most changes of the disk, goes through a
 * queue. Work of different queues runs in parallel.
 *
 *	m->work = (struct work){.run = make_work, .done = make_done, .group = &o->group, .data = m};
 *	work_start(&m->work, o->loop);
 *
 * Plain data.
 */
struct work {
	/* Runs on the pool. It must not touch anything that another thread writes. May be NULL. */
	loop_fn run;
	/*
	 * Runs on the I/O thread afterwards. It may free the work, or start it again. May be NULL.
	 */
	loop_fn done;
	void *data; /* the argument of RUN and DONE */
	/* The work is in this group from its start until DONE has returned; NULL: in no group. */
	struct group *group;
	bool of_many; /* as with loop_work_of_many */
	int err;      /* set by RUN for DONE: 0 or a negative errno */
	/* Used only by work.c: the work's queue, and the next work in it. */
	struct work_queue *queue;
	struct work *next;
};

/* All zeros is an empty queue, which owns no memory. */
struct work_queue {
	struct loop *loop;
	struct work *first, **last; /* FIRST is running */
};

/* Run W, which must not be in progress. */
void work_start(struct work *w, struct loop *loop);
/*
 * Run W after everything that Q was given before, including their DONE. A W without RUN only calls
 * DONE after the earlier work is on disk. The DONE of the last work may free Q. Work that hangs
 * holds up only its own queue.
 */
void work_enqueue(struct work *w, struct loop *loop, struct work_queue *q);
