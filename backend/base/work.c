/* SPDX-License-Identifier: MIT */
/* A piece of work that knows its group. */
#include "backend/base/work.h"

static void run(void *data)
{
	struct work *w = data;

	if (w->run)
		w->run(w->data);
}

static void done(void *data)
{
	struct work *w = data;
	struct group *group = w->group; /* W may be gone after its end */

	if (w->done)
		w->done(w->data);
	if (group)
		group_leave(group);
}

void work_start(struct work *w, struct loop *loop)
{
	if (w->group)
		group_enter(w->group);
	loop_work(loop, run, done, w);
}
