/* SPDX-License-Identifier: MIT */
/*
 * A count of operations in progress (rule A4). Each operation enters the group at its start and
 * leaves it at its end; an owner that shuts down waits until the group is empty. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"

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
