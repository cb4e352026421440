/* SPDX-License-Identifier: MIT */
/*
 * Output: which containers' logs are followed into the spool, and for whom. Those of captured jobs from
 * the moment a container starts; any other from the moment somebody opens it. A log that was opened once
 * is captured from then on.
 */
#include <errno.h>
#include <utlist.h>

#include "backend/kube_stream.h"

#define PREFIX_MAX 300

/* --- which there are --- */

/* Are the bytes from FROM to TO those of NAME? */
static bool is_part(const char *from, const char *to, const char *name)
{
	return strncmp(from, name, (size_t)(to - from)) == 0 && !name[to - from];
}

/* What a key means: a container's run. */
struct run {
	const struct spec_pod_view *pod;
	const struct spec_container_view *container;
	unsigned restart;
};

/* The pod in the cluster that KEY, which begins with its uid, is of; NULL: it is gone. */
static const struct spec_pod_view *find_pod(const struct kube_job *job, const char *key)
{
	const struct kube_pod *pod;

	HASH_FIND(hh, job->k->pods, key, strcspn(key, "."), pod);
	return pod && pod->job == job ? pod->view : NULL;
}

/* KEY is UID.CONTAINER.RESTART, and none of the three holds a dot. */
static bool find_run(const struct kube_job *job, const char *key, struct run *ret)
{
	const char *name = strchr(key, '.'), *restart = strrchr(key, '.');

	if (!name || restart == name)
		return false;
	ret->restart = (unsigned)strtoul(restart + 1, NULL, 10);
	ret->pod = find_pod(job, key);
	for (size_t i = 0; ret->pod && i < ret->pod->n_containers; i++) {
		ret->container = &ret->pod->containers[i];
		if (is_part(name + 1, restart, ret->container->name))
			return true;
	}
	return false;
}

/* Between two runs a container waits, and its count is still that of the run before. */
static bool is_between(const struct run *run)
{
	return run->container->state == SPEC_WAITING && run->container->last_exit_code >= 0;
}

static bool has_begun(const struct run *run)
{
	return run->restart < run->container->restarts || run->container->state != SPEC_WAITING ||
	       is_between(run);
}

/* False: it has not ended. */
static bool has_ended(const struct run *run, enum follow_end *ret)
{
	if (run->restart + 1 < run->container->restarts)
		*ret = FOLLOW_GONE; /* only the run before the present one can still be had */
	else if (run->restart < run->container->restarts)
		*ret = FOLLOW_PREVIOUS;
	else if (run->container->state == SPEC_TERMINATED || is_between(run))
		*ret = FOLLOW_LAST;
	else
		return false;
	return true;
}

/* What tells RUN, which LOG is of, from the next one. */
static void tell_run(struct kube_log *log, const struct run *run)
{
	/* One that could not be started has printed nothing. */
	bool begun = run->container->started || is_between(run);

	log->reruns = run->pod->reruns && begun;
	log->restart = run->restart;
	log->started = run->container->started;
}

/* The spool's part of JOB, opened when it is wanted first. */
static int need_spool(struct kube_job *job)
{
	const char *id = job->view->meta.name;
	int err;

	if (job->spool)
		return 0;
	err = kube_own_claim(job->k, job->view);
	if (err)
		return err;
	job->spool = spool_job_open(job->k->b->spool, id);
	if (!job->spool)
		return -errno;
	kube_mark(job); /* what is known of it is kept from now on */
	return 0;
}

/* Begin to follow; FIRST: since somebody reads it. NULL: it has not begun, or can't be. */
static struct kube_log *follow_key(struct kube_job *job, const char *key, const char *prefix,
				   bool first)
{
	struct kube_log *log;
	enum follow_end end;
	struct run run;
	int err;

	if (!find_run(job, key, &run) || !has_begun(&run))
		return NULL;
	if (has_ended(&run, &end) && end == FOLLOW_GONE)
		return NULL;
	err = need_spool(job);
	if (!err)
		err = spool_log_begin(job->spool, key, prefix, NULL);
	log = err ? NULL
		  : kube_stream_new(job, key, prefix, run.pod->meta.name, run.container->name,
				    first);
	if (!err && !log)
		spool_log_end(job->spool, key, NULL, NULL);
	if (err == -EBUSY)
		return NULL;
	if (!log) {
		diag(DIAG_ERROR, "%s: output of %s can't be captured: %s", job->view->meta.name,
		     run.pod->meta.name, strerror(err ? -err : ENOMEM));
		return NULL;
	}
	tell_run(log, &run);
	if (has_ended(&run, &end))
		kube_stream_end(log, end);
	kube_streams_start(job->k);
	return log;
}

/* --- what is known of them --- */

static bool is_captured(const struct kube *k, const struct spec_job *snapshot)
{
	switch (k->b->config.capture) {
	case BACKEND_CAPTURE_ALL:
		return true;
	case BACKEND_CAPTURE_OWN:
		return snapshot->own;
	default:
		return false;
	}
}

/* Can what KEY's run has printed no longer be had? Nobody has followed it to its end. */
static bool is_out_of_reach(const struct kube_job *job, const char *key)
{
	enum follow_end end;
	struct run run;

	return !find_run(job, key, &run) || (has_ended(&run, &end) && end == FOLLOW_GONE);
}

static void fill_log(struct kube_job *job, struct spec_log *l, bool dropped, bool captured)
{
	const struct kube_log *log;

	HASH_FIND_STR(job->logs, l->key, log);
	if (!log && dropped) {
		l->complete = false; /* who opens it gets what the cluster still has */
	} else if (log) {
		l->complete |= log->complete;
		l->waiting = kube_stream_waits(log);
		l->gap = max_of(l->gap, kube_stream_gaps(log));
	} else if (captured && !l->complete && is_out_of_reach(job, l->key)) {
		l->gap = max_of(l->gap, (uint64_t)1);
	}
}

void kube_logs_fill(struct kube_job *job, struct spec_job *snapshot)
{
	bool dropped = kube_is_dropped(job->k, job->view);
	bool captured = is_captured(job->k, snapshot);

	for (size_t i = 0; i < snapshot->n_replicas; i++)
		for (size_t j = 0; j < snapshot->replicas[i].n_logs; j++)
			fill_log(job, &snapshot->replicas[i].logs[j], dropped, captured);
}

void kube_logs_left(const struct kube *k, struct spec_job *snapshot)
{
	if (!is_captured(k, snapshot))
		return;
	for (size_t i = 0; i < snapshot->n_replicas; i++) {
		for (size_t j = 0; j < snapshot->replicas[i].n_logs; j++) {
			struct spec_log *l = &snapshot->replicas[i].logs[j];

			if (!l->complete)
				l->gap = max_of(l->gap, (uint64_t)1);
		}
	}
}

/* --- beginning and ending --- */

/* A log that is followed: has its run ended meanwhile? */
static void look_again(struct kube_log *log)
{
	const struct spec_pod_view *pod;
	enum follow_end end;
	struct run run;

	if (log->step == LOG_OVER)
		return;
	pod = find_pod(log->job, log->key);
	if (!pod)
		end = FOLLOW_GONE;
	else if (!find_run(log->job, log->key, &run))
		return;
	if (pod && pod->meta.deleted)
		kube_stream_hurry(log);
	if (!pod || has_ended(&run, &end))
		kube_stream_end(log, end);
}

/* Of how many runs of its container before log I of R nothing is known: between two looks it ran often. */
static unsigned missed_before(const struct spec_replica *r, size_t i)
{
	const char *key = r->logs[i].key, *dot = strrchr(key, '.');
	unsigned long run = dot ? strtoul(dot + 1, NULL, 10) : 0;
	unsigned long first = 0; /* that may be missing */

	if (i > 0 && dot && strncmp(r->logs[i - 1].key, key, (size_t)(dot + 1 - key)) == 0)
		first = strtoul(r->logs[i - 1].key + (dot + 1 - key), NULL, 10) + 1;
	return run > first ? (unsigned)(run - first) : 0;
}

/* What the lines of R's output begin with in the merged log. */
static void prefix_of(const struct spec_job *snapshot, const struct spec_replica *r,
		      char ret[PREFIX_MAX])
{
	snprintf(ret, PREFIX_MAX, "%s/%u ", snapshot->roles[r->role].name, r->id);
}

/* Begin to follow log I of R, which is captured. */
static void capture(struct kube_job *job, const struct spec_replica *r, size_t i,
		    const char *prefix)
{
	struct kube_log *log = follow_key(job, r->logs[i].key, prefix, false);

	if (!log)
		return;
	log->missed = missed_before(r, i);
	kube_mark(job);
}

/* Logs that are followed may have ended; of a captured job, others may have begun. */
static void each_log(struct kube_job *job, const struct spec_job *snapshot, bool captured)
{
	for (size_t i = 0; i < snapshot->n_replicas; i++) {
		const struct spec_replica *r = &snapshot->replicas[i];
		char prefix[PREFIX_MAX];

		prefix_of(snapshot, r, prefix);
		for (size_t j = 0; j < r->n_logs; j++) {
			struct kube_log *log;

			HASH_FIND_STR(job->logs, r->logs[j].key, log);
			if (log)
				look_again(log);
			else if (captured && !r->logs[j].complete)
				capture(job, r, j, prefix);
		}
	}
}

void kube_logs_look(struct kube_job *job, const struct spec_job *snapshot)
{
	bool over;

	if (job->k->stopping)
		return;
	each_log(job, snapshot,
		 !job->left && !kube_is_dropped(job->k, job->view) &&
			 is_captured(job->k, snapshot));
	over = spec_job_is_over(snapshot) && job->n_following == job->n_resting;
	if (!job->spool || over == job->output_over)
		return;
	job->output_over = over;
	if (over)
		spool_job_end(job->spool);
	else
		spool_job_resume(job->spool);
}

void kube_logs_wait(struct kube_job *job, size_t *n, loop_fn done, void *arg)
{
	for (struct kube_log *log = job->logs; log; log = log->hh.next) {
		++*n;
		kube_stream_wait(log, done, arg);
	}
}

void kube_logs_free(struct kube_job *job)
{
	struct kube_log *log, *next;

	HASH_ITER(hh, job->logs, log, next)
		kube_stream_free(log);
	spool_job_close(job->spool);
	job->spool = NULL;
	kube_streams_start(job->k);
}

void kube_logs_again(struct kube *k)
{
	for (struct kube_job *job = k->jobs; job; job = job->hh.next)
		for (struct kube_log *log = job->logs; log; log = log->hh.next)
			kube_stream_again(log);
}

/* --- readers --- */

/* An open of the merged log waits for all. */
struct open_all {
	size_t n; /* that are awaited, and one for who counts them */
	loop_fn done;
	void *arg;
};

static void one_of_all(void *data)
{
	struct open_all *all = data;

	if (--all->n)
		return;
	all->done(all->arg);
	free(all);
}

/* Follow all of SNAPSHOT's logs, or KEY's alone; ALL waits for them. */
static void open_logs(struct kube_job *job, const struct spec_job *snapshot, const char *key,
		      struct open_all *all)
{
	for (size_t i = 0; i < snapshot->n_replicas; i++) {
		const struct spec_replica *r = &snapshot->replicas[i];
		char prefix[PREFIX_MAX];

		prefix_of(snapshot, r, prefix);
		for (size_t j = 0; j < r->n_logs; j++) {
			struct kube_log *log;

			if (key ? !streq(r->logs[j].key, key) : *r->logs[j].container)
				continue;
			HASH_FIND_STR(job->logs, r->logs[j].key, log);
			if (!log && !r->logs[j].complete)
				log = follow_key(job, r->logs[j].key, prefix, true);
			if (!log)
				continue;
			kube_stream_open(log);
			all->n++;
			kube_stream_wait(log, one_of_all, all);
		}
	}
}

void kube_logs_open(void *data, const char *id, const char *key, loop_fn done, void *arg)
{
	struct kube *k = data;
	const struct spec_job *snapshot cleanup_job = store_get(k->b->store, BACKEND_JOBS, id);
	struct kube_job *job = snapshot ? kube_job_find(k, snapshot->uid) : NULL;
	struct open_all *all = job && !k->stopping ? calloc(1, sizeof(*all)) : NULL;

	if (!all) {
		done(arg);
		return;
	}
	all->n = 1;
	all->done = done;
	all->arg = arg;
	open_logs(job, snapshot, key, all);
	one_of_all(all);
}
