/* SPDX-License-Identifier: MIT */
/*
 * How long jobs that are over are kept: those in history for history_keep, and any of them until
 * the spool limit needs the room: the oldest of the history first, then the oldest finished ones
 * in jobs/. A job that may still run is never removed.
 */
#include <inttypes.h>

#include "backend/local.h"

#define SOON_MS	  1000
#define SELDOM_MS 60000

static void keep_look(void *data);

/* Look in DELAY_MS or before: what comes often does not put it off. */
static void look_in(struct local *l, unsigned delay_ms)
{
	uint64_t at = loop_now_ms() + delay_ms;

	if (l->stopping || (l->keep && l->keep_at <= at))
		return;
	loop_timer_free(l->keep);
	l->keep_at = at;
	l->keep = loop_timer_new(l->b->loop, delay_ms, 0, keep_look, l);
}

void local_keep_soon(struct local *l)
{
	look_in(l, SOON_MS);
}

void local_keep_now(struct local *l)
{
	look_in(l, 0);
}

void local_keep_free(struct local *l)
{
	loop_timer_free(take_ptr(l->keep));
}

struct jobs {
	const struct spec_job **v;
	size_t n;
};

static void jobs_clear(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->n; i++)
		spec_job_unref(jobs->v[i]);
	free(jobs->v);
}

static bool may_go(struct local *l, const struct spec_job *job)
{
	return spec_state_is_final(job->state) && !local_job_find(l, job->id);
}

/* Remove what has been in history long enough. When the next of them has: ms from now. */
static unsigned expire(struct local *l, const struct jobs *history)
{
	int64_t keep = l->b->config.history_keep * INT64_C(1000000000);
	int64_t next = SELDOM_MS * INT64_C(1000000);
	int64_t now = loop_time_ns();

	for (size_t i = 0; i < history->n; i++) {
		const struct spec_job *job = history->v[i];
		int64_t left = keep - (now - job->changed);

		if (!may_go(l, job))
			continue;
		if (left <= 0)
			local_cold_add(l, LOCAL_COLD_EXPIRE, job->uid, NULL);
		else
			next = min_of(next, left);
	}
	return (unsigned)(next / 1000000 + 1);
}

static const struct spec_job *oldest(struct local *l, const struct jobs *jobs)
{
	const struct spec_job *found = NULL;

	for (size_t i = 0; i < jobs->n; i++)
		if (may_go(l, jobs->v[i]) && (!found || jobs->v[i]->changed < found->changed))
			found = jobs->v[i];
	return found;
}

/* Make room: one job at a time, since only then the spool knows what it gave. */
static void shrink(struct local *l, const struct jobs *history)
{
	cleanup(jobs_clear) struct jobs finished = {0};
	const struct spec_job *job = oldest(l, history);

	if (!job && store_list(l->b->store, BACKEND_JOBS, &finished.v, &finished.n) == 0)
		job = oldest(l, &finished);
	if (!job)
		return;
	diag(DIAG_INFO,
	     "%s: removed with its output, as the oldest: the spool is over its limit of %" PRIu64
	     " bytes",
	     job->id, l->b->config.spool_limit);
	local_cold_add(l, LOCAL_COLD_EXPIRE, job->uid, NULL);
}

static void keep_look(void *data)
{
	struct local *l = data;
	cleanup(jobs_clear) struct jobs history = {0};
	unsigned next;

	loop_timer_free(take_ptr(l->keep));
	look_in(l, SELDOM_MS);
	/* What is under way leads to another look. */
	if (l->cold || store_list(l->b->store, BACKEND_HISTORY, &history.v, &history.n) < 0)
		return;
	next = expire(l, &history);
	if (!l->cold && spool_bytes(l->b->spool) > l->b->config.spool_limit)
		shrink(l, &history);
	if (!l->cold)
		look_in(l, next);
}
