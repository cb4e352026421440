/* SPDX-License-Identifier: MIT */
/*
 * Streams: more than STREAMS_MAX at once wait for their turn, and so do fetches that only a reader asked
 * for, beyond FIRST_MAX. What is about to be gone goes before the others, and has URGENT_MAX places more, so
 * that it need not wait for programs that run on for days.
 */
#include "backend/kube_stream.h"

#include <errno.h>
#include <utlist.h>

#define STREAMS_MAX 1000
#define URGENT_MAX  64
#define FIRST_MAX   8

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

static void log_over(struct kube_log *log)
{
	struct kube_job *job = log->job;
	struct kube *k = job->k;

	settle(log);
	if (log->step == LOG_FOLLOWING) {
		k->n_following--;
		atomic_fetch_sub(&k->n_streams, 1);
	} else {
		DL_DELETE(k->waiting, log);
		atomic_fetch_sub(&k->n_waiting, 1);
	}
	log->step = LOG_OVER;
	job->n_following--;
}

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
	log->complete = !err || err == -ENODATA;
	log->lost = !log->complete;
	if (log->lost)
		diag(DIAG_WARNING, "%s: %s of %s: %s", job->view->meta.name, log->container,
		     log->pod, text);
	spool_log_end(job->spool, log->key, NULL, NULL);
	log_over(log);
	kube_mark(job);
	kube_job_settle(job);
	kube_streams_start(k);
}

/* 0; or a negative errno: it stays as it is. */
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
		.settled = on_settled,
		.gap = on_gap,
		.done = on_done,
		.data = log,
	};

	log->follow = follow_start(&config);
	if (!log->follow)
		return -ENOMEM;
	DL_DELETE(k->waiting, log);
	atomic_fetch_sub(&k->n_waiting, 1);
	atomic_fetch_add(&k->n_streams, 1);
	log->step = LOG_FOLLOWING;
	k->n_following++;
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
		DL_APPEND(job->k->waiting, log);
		job->n_following++;
		atomic_fetch_add(&job->k->n_waiting, 1);
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
	DL_DELETE(k->waiting, log);
	DL_PREPEND(k->waiting, log);
	kube_streams_start(k);
}

void kube_stream_hurry(struct kube_log *log)
{
	if (log->hurried || log->step == LOG_OVER)
		return;
	log->hurried = true;
	if (log->follow)
		follow_hurry(log->follow);
	if (!log->urgent)
		go_first(log);
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
