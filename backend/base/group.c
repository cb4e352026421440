/* SPDX-License-Identifier: MIT */
/* Counts operations in progress. */
#include "backend/base/group.h"

#include <assert.h>

/*
 * If an operation has started since this call was posted, the last one that leaves posts it again.
 */
static void call(void *data)
{
	struct group *g = data;
	loop_fn fn = g->fn;

	g->posted = false;
	if (g->n)
		return;
	g->fn = NULL;
	return fn(g->data);
}

static void check(struct group *g)
{
	if (g->n || !g->fn || g->posted)
		return;
	g->posted = true;
	loop_post(g->loop, call, g);
}

void group_enter(struct group *g)
{
	g->n++;
}

void group_leave(struct group *g)
{
	assert(g->n > 0);
	g->n--;
	check(g);
}

void group_when_empty(struct group *g, loop_fn fn, void *data)
{
	assert(!g->fn);
	g->fn = fn;
	g->data = data;
	check(g);
}
