/* SPDX-License-Identifier: MIT */
/*
 * Who waits until a merged log has what the logs held when they asked: then lines that wait for those of
 * others wait no longer than to the next look.
 */
#include <errno.h>
#include <utlist.h>

#include "backend/spool_impl.h"

static bool settle_is_due(const struct spool_job *j, const struct spool_settle *w)
{
	if (!w->targets || j->n_out > 0)
		return false;
	for (size_t i = 0; i < w->n; i++) {
		const struct spool_source *s = j->by_number[i];

		if (s->live && s->seen < w->targets[i])
			return false;
		if (s->place > 0 && j->keys.v[i].indexed < w->targets[i])
			return false;
	}
	return true;
}

static void settle_done(struct spool_settle *w)
{
	w->fn(w->data);
	log_unref(w->log);
	free(w->targets);
	free(w);
}

void spool_settle_check(struct spool_job *j, bool all)
{
	struct spool_settle *w, *next, *done = NULL;

	LL_FOREACH_SAFE(j->settles, w, next)
	{
		if (all || settle_is_due(j, w)) {
			LL_DELETE(j->settles, w);
			LL_APPEND(done, w);
		}
	}
	LL_FOREACH_SAFE(done, w, next)
	{
		settle_done(w);
	}
}

/* What W waits for is what there is now. -ENOMEM. */
static int settle_aim(struct spool_job *j, struct spool_settle *w)
{
	w->targets = calloc(j->keys.n + 1, sizeof(*w->targets));
	if (!w->targets)
		return -ENOMEM;
	w->n = j->keys.n;
	for (size_t i = 0; i < w->n; i++) {
		struct spool_source *s = j->by_number[i];

		if (!s->live || s->opening || spool_pump_size(s, &w->targets[i]) < 0)
			continue;
		if (s->seen < w->targets[i])
			spool_pump_queue(s);
		s->rushed = max_of(s->rushed, w->targets[i]);
		spool_order_rush(s);
	}
	return 0;
}

void spool_settle_loaded(struct spool_job *j)
{
	struct spool_settle *w;

	LL_FOREACH(j->settles, w) {
		if (settle_aim(j, w) < 0) {
			spool_settle_check(j, true);
			return;
		}
	}
	spool_settle_check(j, false);
}

void spool_settle_begin(struct spool_job *j, struct spool_settle *w)
{
	if (j->loaded && settle_aim(j, w) < 0) {
		settle_done(w);
		return;
	}
	LL_APPEND(j->settles, w);
	spool_settle_check(j, false);
}
