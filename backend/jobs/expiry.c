/* SPDX-License-Identifier: MIT */
/*
 * Expiry; see expiry.h. kxfs checks all jobs once a minute. It checks earlier if a job is due, or
 * after a job has changed.
 */
#include "backend/jobs/expiry.h"

#include <inttypes.h>

#include "backend/archive/archive.h"
#include "backend/base/diag.h"
#include "backend/output/output.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

#define SOON_MS	  1000
#define SELDOM_MS 60000

struct expiry {
	struct expiry_config config;
	struct loop_timer timer; /* runs until the next check */
	uint64_t at;		 /* when the next check is due, by loop_now_ms */
	bool warned;		 /* kxfs has logged that it can't free space */
	bool failed;		 /* kxfs has logged that the last removal failed */
};

/* Check in DELAY_MS, unless a check is already due earlier. So frequent calls delay no check. */
static void check_in(struct expiry *x, unsigned delay_ms)
{
	uint64_t at = loop_now_ms() + delay_ms;

	if (!x || (loop_timer_is_set(&x->timer) && x->at <= at))
		return;
	x->at = at;
	loop_timer_set(&x->timer, delay_ms);
}

void expiry_soon(struct expiry *x)
{
	check_in(x, SOON_MS);
}

void expiry_now(struct expiry *x)
{
	check_in(x, 0);
}

static bool is_busy(const struct expiry *x)
{
	return x->config.is_busy(x->config.data);
}

static bool may_go(const struct expiry *x, const struct spec_job *job)
{
	return spec_state_is_final(job->state) && x->config.may_go(x->config.data, job);
}

/*
 * If RETIRES is false, JOBS are all jobs in history/. Remove those that have been there for
 * history_keep. If RETIRES is true, JOBS are all jobs in jobs/. Move those whose ttl has passed to
 * history/. Return the time in ms until the next of JOBS is due, but at most about a minute.
 */
static unsigned remove_old(struct expiry *x, const struct store_jobs *jobs, bool retires)
{
	int64_t next = SELDOM_MS * INT64_C(1000000);
	int64_t now = loop_time_ns();

	for (size_t i = 0; i < jobs->n; i++) {
		const struct spec_job *job = jobs->v[i];
		int64_t keep = retires ? job->ttl : x->config.history_keep;
		int64_t left = (retires ? job->finished : job->changed) - now + keep * NS_PER_S;

		if (keep < 0 || !may_go(x, job) ||
		    (!retires && archive_lacks(x->config.archive, job->uid)))
			continue;
		if (left > 0)
			next = min_of(next, left);
		else if (retires)
			x->config.retire(x->config.data, job);
		else
			x->config.remove(x->config.data, job);
	}
	return (unsigned)(next / 1000000 + 1);
}

/*
 * Among the jobs in JOBS whose output may be removed, return the job that has not changed for the
 * longest time, or NULL. If LOST is false, consider only jobs that are archived or need not be
 * archived. If LOST is true, consider only jobs that kxfs can't archive now.
 */
static const struct spec_job *oldest(const struct expiry *x, const struct store_jobs *jobs,
				     bool lost)
{
	const struct spec_job *found = NULL;

	for (size_t i = 0; i < jobs->n; i++) {
		const struct spec_job *job = jobs->v[i];

		if (archive_lacks(x->config.archive, job->uid)
			    ? !lost || !archive_gives_up(x->config.archive, job->uid)
			    : lost)
			continue;
		if (may_go(x, job) && x->config.has_output(x->config.data, job) &&
		    (!found || job->changed < found->changed))
			found = job;
	}
	return found;
}

/* Remove the output of only one job, because the freed space is known only afterwards. */
static void make_room(struct expiry *x, const struct store_jobs *history)
{
	cleanup_jobs struct store_jobs jobs = {0};
	const struct spec_job *job = oldest(x, history, false);

	if (!job)
		store_list(x->config.store, BACKEND_JOBS, &jobs);
	for (int lost = 0; lost < 2 && !job; lost++) {
		job = lost ? oldest(x, history, true) : NULL;
		job = job ? job : oldest(x, &jobs, lost);
		if (job && lost)
			diag(DIAG_WARNING,
			     "%s: kxfs can't write to the archive, so it removes the job's output "
			     "before archiving the job",
			     job->id);
	}
	if (!job && !x->warned)
		diag(DIAG_WARNING,
		     "the spool has %" PRIu64 " bytes, more than its limit of %" PRIu64
		     "; kxfs removes nothing, because all output belongs to jobs that may still "
		     "print%s; mount with a larger -o spool_limit",
		     output_bytes(x->config.output), x->config.spool_limit,
		     x->config.archive ? " or are not archived yet" : "");
	x->warned = !job;
	if (job)
		x->config.drop(x->config.data, job);
}

void expiry_dropped(struct expiry *x, const char *id, int err)
{
	if (!x)
		return;
	if (err == 0)
		diag(DIAG_INFO,
		     "%s: kxfs removed the job's output, which was the oldest, because the "
		     "spool was over its limit of %" PRIu64 " bytes",
		     id, x->config.spool_limit);
	else if (!x->failed)
		diag(DIAG_ERROR,
		     "%s: kxfs can't remove the job's output, although the spool is over its "
		     "limit of %" PRIu64 " bytes: %s; kxfs retries",
		     id, x->config.spool_limit, strerror(-err));
	x->failed = err < 0;
	check_in(x, err < 0 ? SELDOM_MS : 0);
}

static void check(void *data)
{
	struct expiry *x = data;
	cleanup_jobs struct store_jobs history = {0}, shown = {0};
	unsigned next;

	check_in(x, SELDOM_MS);
	if (is_busy(x))
		return;
	store_list(x->config.store, BACKEND_HISTORY, &history);
	next = remove_old(x, &history, false);
	if (x->config.retire) {
		store_list(x->config.store, BACKEND_JOBS, &shown);
		next = min_of(next, remove_old(x, &shown, true));
	}
	if (output_bytes(x->config.output) <= x->config.spool_limit)
		x->warned = false;
	else if (!is_busy(x))
		make_room(x, &history);
	if (!is_busy(x))
		check_in(x, next);
}

struct expiry *expiry_new(const struct expiry_config *config)
{
	struct expiry *x = new0(struct expiry);

	x->config = *config;
	loop_timer_init(&x->timer, config->loop, check, x);
	return x;
}

void expiry_free(struct expiry *x)
{
	if (!x)
		return;
	loop_timer_stop(&x->timer);
	free(x);
}
