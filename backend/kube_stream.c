/* SPDX-License-Identifier: MIT */
/*
 * Streams: more than STREAMS_MAX at once wait for their turn, and so do fetches that only a reader asked
 * for, beyond FIRST_MAX. What is about to be gone goes before the others, and has URGENT_MAX places more, so
 * that it need not wait for programs that run on for days. A run that has ended, and whose output is refused,
 * rests between two tries, longer and longer, and has no place meanwhile. It is given up when its pod is gone. For its
 * readers it has ended, unless it is the server that is away, for which all wait.
 */
#include "backend/kube_stream.h"

#include <errno.h>
#include <utlist.h>

#include "backend/random.h"

#define STREAMS_MAX 1000
#define URGENT_MAX  64
#define FIRST_MAX   8
#define AGAIN_MAX   8 /* logs that have rested, and are not about to be gone */
#define REST_MS	    2000
#define REST_MAX_MS 45000
#define REST_ALL_MS 100 /* a log: so often is one of all those that rest asked for */

/* --- who waits --- */

static void settle(struct kube_log *log)
{
	struct log_wait *w, *next;

	if (log->first && log->step == LOG_FOLLOWING)
		log->job->k->n_first--;
	log->first = false;
	log->settled = true;
	if (log->job->spool)
		spool_log_hold(log->job->spool, log->key, false);
	for (w = take_ptr(log->waits); w; w = next) {
		next = w->next;
		w->done(w->arg);
		free(w);
	}
}

/* --- a stream --- */

static void wait_for_turn(struct kube_log *log)
{
	struct kube *k = log->job->k;

	log->step = LOG_WAITING;
	if (log->urgent)
		DL_PREPEND(k->waiting, log);
	else
		DL_APPEND(k->waiting, log);
	atomic_fetch_add(&k->n_waiting, 1);
}

/* The step that it is in is over; the caller says which is next. */
static void leave_step(struct kube_log *log)
{
	struct kube *k = log->job->k;

	if (log->step == LOG_FOLLOWING) {
		k->n_following--;
		k->n_again -= log->refused;
		atomic_fetch_sub(&k->n_streams, 1);
	} else if (log->step == LOG_WAITING) {
		DL_DELETE(k->waiting, log);
		atomic_fetch_sub(&k->n_waiting, 1);
	} else {
		loop_timer_free(take_ptr(log->rest));
		k->n_resting--;
		log->job->n_resting -= log->refused;
	}
}

static void log_over(struct kube_log *log)
{
	settle(log);
	leave_step(log);
	log->step = LOG_OVER;
	log->job->n_following--;
}

/* Nothing more can be had, for TEXT. May free the job. */
static void give_up(struct kube_log *log, const char *text)
{
	struct kube_job *job = log->job;
	struct kube *k = job->k;

	log->lost = true;
	diag(DIAG_WARNING, "%s: %s of %s: %s", job->view->meta.name, log->container, log->pod,
	     text);
	log_over(log);
	kube_mark(job);
	kube_job_settle(job);
	kube_streams_start(k);
}

/* --- what is refused --- */

static void on_rested(void *data)
{
	struct kube_log *log = data;

	if (log->end != FOLLOW_GONE) {
		kube_stream_again(log);
		return;
	}
	if (!log->refused)
		spool_log_end(log->job->spool, log->key, NULL, NULL);
	give_up(log, "the pod is gone, or the run, and what it printed was refused");
}

static void rest_for(struct kube_log *log, unsigned ms)
{
	loop_timer_free(log->rest);
	log->rest = loop_timer_new(log->job->k->b->loop, ms, 0, on_rested, log);
}

/* It was refused, or can't be asked for. */
static void rest(struct kube_log *log)
{
	struct kube_job *job = log->job;
	struct kube *k = job->k;
	unsigned doubled = min_of(log->rests, 8u);
	unsigned ms = min_of(REST_MS << doubled, REST_MAX_MS);
	bool away = (k->err_jobs || k->err_pods) && !log->refused;

	settle(log);
	leave_step(log);
	log->step = LOG_RESTING;
	log->rested = true;
	k->n_resting++;
	if (!away) {
		spool_log_end(job->spool, log->key, NULL, NULL);
		log->refused = true;
		log->rests++;
		job->n_resting++;
	}
	rest_for(log, random_about(max_of(ms, (unsigned)k->n_resting * REST_ALL_MS)));
	kube_mark(job);
}

void kube_stream_again(struct kube_log *log)
{
	if (log->step != LOG_RESTING || log->end == FOLLOW_GONE)
		return;
	leave_step(log);
	wait_for_turn(log);
	kube_streams_start(log->job->k);
}

void kube_stream_open(struct kube_log *log)
{
	if (log->step != LOG_RESTING || log->end == FOLLOW_GONE)
		return;
	log->settled = false;
	kube_stream_again(log);
}

bool kube_stream_waits(const struct kube_log *log)
{
	return log->step == LOG_WAITING || log->step == LOG_RESTING ||
	       (log->step == LOG_FOLLOWING && log->refused);
}

/* --- its stream --- */

static void on_settled(void *data)
{
	struct kube_log *log = data;
	struct kube *k = log->job->k;

	settle(log);
	kube_streams_start(k); /* it may be the turn of another first fetch */
}

static void on_gap(void *data, unsigned total)
{
	struct kube_log *log = data;

	log->gap = total;
	kube_mark(log->job);
}

static void on_done(void *data, int err, const char *text)
{
	struct kube_log *log = data;
	struct kube_job *job = log->job;
	struct kube *k = job->k;

	log->follow = NULL;
	if (err == -EAGAIN && log->end != FOLLOW_GONE) {
		rest(log);
		kube_streams_start(k);
		return;
	}
	spool_log_end(job->spool, log->key, NULL, NULL);
	log->complete = !err || err == -ENODATA;
	if (!log->complete) {
		give_up(log, text);
		return;
	}
	log_over(log);
	kube_mark(job);
	kube_job_settle(job);
	kube_streams_start(k);
}

/* 0; or -ENOMEM: it stays as it is. */
static int start(struct kube_log *log)
{
	struct kube_job *job = log->job;
	struct kube *k = job->k;
	const struct follow_config config = {
		.loop = k->b->loop,
		.http = k->http,
		.spool = job->spool,
		.key = log->key,
		.prefix = log->prefix,
		.namespace = k->connection.namespace,
		.pod = log->pod,
		.container = log->container,
		.reruns = log->reruns,
		.restart = log->restart,
		.started = log->started,
		.first = log->first,
		.said = log->rested,
		.again = log->rests > 0,
		.settled = on_settled,
		.gap = on_gap,
		.done = on_done,
		.data = log,
	};

	if (log->refused && spool_log_begin(job->spool, log->key, log->prefix, NULL) < 0) {
		rest(log);
		return 0;
	}
	log->follow = follow_start(&config);
	if (!log->follow)
		return -ENOMEM;
	leave_step(log);
	atomic_fetch_add(&k->n_streams, 1);
	log->step = LOG_FOLLOWING;
	k->n_following++;
	k->n_again += log->refused;
	if (log->first)
		k->n_first++;
	if (log->hurried)
		follow_hurry(log->follow);
	if (log->ended)
		follow_ended(log->follow, log->end);
	kube_mark(job); /* it waits no more */
	return 0;
}

void kube_streams_start(struct kube *k)
{
	struct kube_log *log, *next;

	DL_FOREACH_SAFE(k->waiting, log, next) {
		size_t max = log->urgent ? STREAMS_MAX + URGENT_MAX : STREAMS_MAX;

		if (k->stopping || k->n_following >= max)
			return; /* urgent ones come first */
		if (log->first && k->n_first >= FIRST_MAX)
			continue;
		if (log->refused && !log->hurried && k->n_again >= AGAIN_MAX)
			continue;
		if (start(log) < 0)
			return;
	}
}

void kube_stream_free(struct kube_log *log)
{
	if (log->step == LOG_FOLLOWING)
		follow_stop(log->follow);
	if (log->step != LOG_OVER)
		log_over(log);
	HASH_DEL(log->job->logs, log);
	free(log->key);
	free(log->prefix);
	free(log->pod);
	free(log->container);
	free(log);
}

struct kube_log *kube_stream_new(struct kube_job *job, const char *key, const char *prefix,
				 const char *pod, const char *container, bool first)
{
	struct kube_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->job = job;
	log->first = first;
	log->key = strdup(key);
	log->prefix = strdup(prefix);
	log->pod = strdup(pod);
	log->container = strdup(container);
	if (log->key && log->prefix && log->pod && log->container)
		HASH_ADD_KEYPTR(hh, job->logs, log->key, strlen(log->key), log);
	if (log->hh.tbl) {
		spool_log_hold(job->spool, key, true);
		job->n_following++;
		wait_for_turn(log);
		return log;
	}
	free(log->key);
	free(log->prefix);
	free(log->pod);
	free(log->container);
	free(log);
	return NULL;
}

/* Go before those that can wait. */
static void go_first(struct kube_log *log)
{
	struct kube *k = log->job->k;

	log->urgent = true;
	if (log->step != LOG_WAITING)
		return;
	leave_step(log);
	wait_for_turn(log);
	kube_streams_start(k);
}

void kube_stream_hurry(struct kube_log *log)
{
	if (log->hurried || log->step == LOG_OVER)
		return;
	log->hurried = true;
	log->rests = 0;
	if (log->follow)
		follow_hurry(log->follow);
	if (!log->urgent)
		go_first(log);
	kube_stream_again(log);
}

uint64_t kube_stream_gaps(const struct kube_log *log)
{
	return (uint64_t)log->missed + log->gap + log->lost;
}

void kube_stream_end(struct kube_log *log, enum follow_end end)
{
	/* What has ended once may become harder to get: restarted, then gone. */
	if (log->ended && log->end == end)
		return;
	log->ended = true;
	log->end = end;
	if (log->follow)
		follow_ended(log->follow, end);
	if (!log->urgent)
		go_first(log);
	if (log->step != LOG_RESTING)
		return;
	log->rests = 0;
	if (end == FOLLOW_GONE)
		rest_for(log, 0); /* not from within the caller's own work */
	else
		kube_stream_again(log);
}

void kube_stream_wait(struct kube_log *log, loop_fn done, void *arg)
{
	struct log_wait *w = log->settled ? NULL : calloc(1, sizeof(*w));

	if (!w) {
		done(arg);
		return;
	}
	w->done = done;
	w->arg = arg;
	w->next = log->waits;
	log->waits = w;
}
