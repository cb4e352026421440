/* SPDX-License-Identifier: MIT */
/*
 * A count of what is under way, for "is all of it over?" (rule A4): whoever begins something enters the group,
 * and leaves it when that is over; who wants to end waits until the group is empty. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"

struct group {
	struct loop *loop;
	size_t n;
	loop_fn fn; /* NULL: nobody waits */
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
 * Call FN(DATA) once, posted to the loop, when nothing is under way any more, nor has begun before that call. FN may
 * free the group. Only one may wait at a time.
 */
void group_when_empty(struct group *g, loop_fn fn, void *data);
