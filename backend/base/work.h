/* SPDX-License-Identifier: MIT */
/*
 * A piece of work for the pool, a member of what it is about. It knows the group in which it is under way, so nobody
 * enters or leaves one for it (rule A4). What must run in order, as most of what changes the disk, goes through a
 * queue: one piece after the other, while those of other queues go on.
 *
 *	m->work = (struct work){.run = make_work, .done = make_done, .group = &o->group, .data = m};
 *	work_start(&m->work, o->loop);
 *
 * I/O thread only.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/base/loop.h"

/* Plain data. */
struct work {
	/* Runs on the pool and touches nothing that another thread writes; NULL: nothing. */
	loop_fn run;
	/* Runs on the I/O thread afterwards; may free the work, or start it again; NULL: nothing. */
	loop_fn done;
	void *data; /* what RUN and DONE are called with */
	/* The work is under way in it from its start until DONE has returned; NULL: in none. */
	struct group *group;
	bool of_many; /* as with loop_work_of_many */
	int err;      /* set by RUN for DONE: 0 or a negative errno */
	/* Used by work.c alone: the queue that the work is in, and what follows it there. */
	struct work_queue *queue;
	struct work *next;
};

/* All zeros is an empty queue, which holds nothing. */
struct work_queue {
	struct loop *loop;
	struct work *first, **last; /* FIRST is under way */
};

/* Run W, which must not be under way. */
void work_start(struct work *w, struct loop *loop);
/*
 * Run W when all that Q was given before is over, with its DONE; so a W without RUN says "after these are on disk, call
 * DONE". The DONE of the last one may free Q. Work that hangs holds up its own queue alone.
 */
void work_enqueue(struct work *w, struct loop *loop, struct work_queue *q);
