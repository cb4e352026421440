/* SPDX-License-Identifier: MIT */
/*
 * A look at all that is over, now and then, and soon after something has changed.
 */
#include "backend/keep.h"

#include <inttypes.h>

#include "backend/diag.h"

#define SOON_MS	  1000
#define SELDOM_MS 60000

struct keep {
	struct backend *b;
	const struct keep_ops *ops;
	struct loop_timer *timer; /* the next look */
	uint64_t at;		  /* when, as loop_now_ms */
	bool said;		  /* that there is no room to be made */
};

static void keep_look(void *data);

/* Look in DELAY_MS or before: what comes often does not put it off. */
static void look_in(struct keep *keep, unsigned delay_ms)
{
	uint64_t at = loop_now_ms() + delay_ms;

	if (!keep || (keep->timer && keep->at <= at))
		return;
	loop_timer_free(keep->timer);
	keep->at = at;
	keep->timer = loop_timer_new(keep->b->loop, delay_ms, 0, keep_look, keep);
}

void keep_soon(struct keep *keep)
{
	look_in(keep, SOON_MS);
}

void keep_now(struct keep *keep)
{
	look_in(keep, 0);
}

struct keep *keep_new(struct backend *b, const struct keep_ops *ops)
{
	struct keep *keep = calloc(1, sizeof(*keep));

	if (keep) {
		keep->b = b;
		keep->ops = ops;
	}
	return keep;
}

void keep_free(struct keep *keep)
{
	if (!keep)
		return;
	loop_timer_free(keep->timer);
	free(keep);
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

static bool may_go(struct keep *keep, const struct spec_job *job)
{
	return spec_state_is_final(job->state) && keep->ops->may_go(keep->b, job);
}

/* Remove what has been in history long enough. When the next of them has: ms from now. */
static unsigned expire(struct keep *keep, const struct jobs *history)
{
	int64_t time = keep->b->config.history_keep * INT64_C(1000000000);
	int64_t next = SELDOM_MS * INT64_C(1000000);
	int64_t now = loop_time_ns();

	for (size_t i = 0; i < history->n; i++) {
		const struct spec_job *job = history->v[i];
		int64_t left = time - (now - job->changed);

		if (!may_go(keep, job))
			continue;
		if (left <= 0)
			keep->ops->remove(keep->b, job);
		else
			next = min_of(next, left);
	}
	return (unsigned)(next / 1000000 + 1);
}

static const struct spec_job *oldest(struct keep *keep, const struct jobs *jobs)
{
	const struct spec_job *found = NULL;

	for (size_t i = 0; i < jobs->n; i++)
		if (may_go(keep, jobs->v[i]) && (!found || jobs->v[i]->changed < found->changed))
			found = jobs->v[i];
	return found;
}

/* Make room: one job at a time, since only then the spool knows what it gave. */
static void shrink(struct keep *keep, const struct jobs *history)
{
	cleanup(jobs_clear) struct jobs finished = {0};
	const struct spec_job *job = oldest(keep, history);

	if (!job && store_list(keep->b->store, BACKEND_JOBS, &finished.v, &finished.n) == 0)
		job = oldest(keep, &finished);
	if (!job && !keep->said)
		diag(DIAG_WARNING,
		     "the spool has %" PRIu64 " bytes, more than its limit of %" PRIu64
		     ", and all of it is of jobs that may still print; nothing is removed",
		     spool_bytes(keep->b->spool), keep->b->config.spool_limit);
	keep->said = !job;
	if (!job)
		return;
	diag(DIAG_INFO,
	     "%s: removed with its output, as the oldest: the spool is over its limit of %" PRIu64
	     " bytes",
	     job->id, keep->b->config.spool_limit);
	keep->ops->remove(keep->b, job);
}

static void keep_look(void *data)
{
	struct keep *keep = data;
	struct backend *b = keep->b;
	cleanup(jobs_clear) struct jobs history = {0};
	unsigned next;

	loop_timer_free(take_ptr(keep->timer));
	look_in(keep, SELDOM_MS);
	/* What is under way leads to another look. */
	if (keep->ops->is_busy(b) ||
	    store_list(b->store, BACKEND_HISTORY, &history.v, &history.n) < 0)
		return;
	next = expire(keep, &history);
	if (spool_bytes(b->spool) <= b->config.spool_limit)
		keep->said = false;
	else if (!keep->ops->is_busy(b))
		shrink(keep, &history);
	if (!keep->ops->is_busy(b))
		look_in(keep, next);
}
