/* SPDX-License-Identifier: MIT */
/*
 * What the watches say becomes two tables of views. Pods find their job by the uid of their
 * controller, also when they come before it. A pod that has gone is kept as long as its job: what it
 * said last (exit codes, logs) is that attempt's end.
 */
#include <errno.h>
#include <utlist.h>

#include "backend/kube.h"

/* Pods of earlier attempts that are remembered of one job; beyond, the oldest are forgotten. */
#define GONE_MAX 4096

/* First pages: a pod of a large job has hundreds of KiB. */
#define PAGE_JOBS 100
#define PAGE_PODS 50

struct kube_job *kube_job_find(struct kube *k, const char *uid)
{
	struct kube_job *job;

	HASH_FIND_STR(k->jobs, uid, job);
	return job;
}

/* The job UID, made if it is not known. NULL: no memory. */
static struct kube_job *need_job(struct kube *k, const char *uid)
{
	struct kube_job *job = kube_job_find(k, uid);

	if (job)
		return job;
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->k = k;
	job->uid = strdup(uid);
	if (job->uid)
		HASH_ADD_KEYPTR(hh, k->jobs, job->uid, strlen(job->uid), job);
	if (!job->hh.tbl) {
		free(job->uid);
		free(job);
		return NULL;
	}
	return job;
}

static void count_pods(struct kube *k)
{
	atomic_store_explicit(&k->n_pods, HASH_COUNT(k->pods), memory_order_relaxed);
}

static void pod_free(struct kube_pod *pod)
{
	struct kube_job *job = pod->job;

	if (pod->view->gone) {
		job->n_gone--;
	} else {
		job->n_pods--;
		if (pod->hh.tbl)
			HASH_DEL(job->k->pods, pod);
		count_pods(job->k);
	}
	DL_DELETE(job->pods, pod);
	spec_pod_view_free(pod->view);
	free(pod);
}

static void job_free(struct kube_job *job)
{
	struct kube_pod *pod, *next;

	if (job->marked)
		DL_DELETE2(job->k->marked, job, mark_prev, mark_next);
	kube_control_gone(job);
	kube_logs_free(job);
	DL_FOREACH_SAFE(job->pods, pod, next)
		pod_free(pod);
	events_forget(job->k->events, job->uid);
	HASH_DEL(job->k->jobs, job);
	spec_job_view_free(job->view);
	spec_text_unref(job->object);
	free(job->uid);
	free(job);
}

void kube_job_settle(struct kube_job *job)
{
	if (job->n_pods || job->n_following || (job->view && !job->gone))
		return;
	/* What it became in the end is still to be told. */
	if (job->marked)
		(void)kube_publish(job);
	job_free(job);
}

/* --- pods --- */

static void pod_gone(struct kube_pod *pod)
{
	struct kube_job *job = pod->job;
	struct kube_pod *old, *next;

	HASH_DEL(job->k->pods, pod);
	count_pods(job->k);
	pod->view->gone = true;
	job->n_pods--;
	job->n_gone++;
	/* To the end of the list, so that the first of those that have gone is the oldest. */
	DL_DELETE(job->pods, pod);
	DL_APPEND(job->pods, pod);
	DL_FOREACH_SAFE(job->pods, old, next) {
		if (job->n_gone <= GONE_MAX)
			break;
		if (old->view->gone)
			pod_free(old);
	}
	kube_mark(job);
	kube_job_settle(job);
}

/* VIEW is taken over. The pod; NULL: no memory. */
static struct kube_pod *pod_seen(struct kube *k, struct spec_pod_view *view)
{
	struct kube_pod *pod;
	struct kube_job *job;

	HASH_FIND_STR(k->pods, view->meta.uid, pod);
	if (pod) {
		HASH_DEL(k->pods, pod); /* its key is in the view */
		spec_pod_view_inherit(view, pod->view);
		spec_pod_view_free(pod->view);
	} else {
		job = need_job(k, view->meta.owner_uid);
		pod = job ? calloc(1, sizeof(*pod)) : NULL;
		if (!pod) {
			diag(DIAG_ERROR, "out of memory; pod %s is not shown", view->meta.name);
			spec_pod_view_free(view);
			return NULL;
		}
		pod->job = job;
		job->n_pods++;
		DL_PREPEND(job->pods, pod);
		kube_adopt_events(job, view->meta.uid);
	}
	pod->view = view;
	pod->round = k->round_pods;
	HASH_ADD_KEYPTR(hh, k->pods, view->meta.uid, strlen(view->meta.uid), pod);
	if (!pod->hh.tbl) {
		diag(DIAG_ERROR, "out of memory; pod %s is not shown", view->meta.name);
		pod_free(pod);
		return NULL;
	}
	count_pods(k);
	kube_mark(pod->job);
	return pod;
}

static void on_pod(void *data, const char *json, size_t len, bool gone)
{
	struct kube *k = data;
	struct spec_pod_view *view;
	struct kube_pod *pod;
	int err = spec_pod_view_parse(k->kind, json, len, &view);

	atomic_fetch_add(&k->n_events, 1);
	if (err < 0) {
		diag(DIAG_WARNING, "a pod of the server can't be read: %s", strerror(-err));
		return;
	}
	HASH_FIND_STR(k->pods, view->meta.uid, pod);
	if (!*view->meta.owner_uid || (gone && !pod)) {
		spec_pod_view_free(view);
		return;
	}
	/* What it was last is news too: how it ended. */
	pod = pod_seen(k, view);
	if (pod && gone)
		pod_gone(pod);
}

static void on_pods_begin(void *data)
{
	struct kube *k = data;

	k->round_pods++;
}

/* --- jobs --- */

static const struct spec_job_view *known_view(void *data, const char *uid)
{
	const struct kube_job *job = kube_job_find(data, uid);

	return job ? job->view : NULL;
}

/* NULL: it can't be read. */
static struct spec_job_view *read_job(struct kube *k, const char *json, size_t len)
{
	struct spec_job_view *view;
	int err = spec_job_view_parse_again(k->kind, json, len, known_view, k, &view);

	if (!err)
		return view;
	diag(DIAG_WARNING, "a %s of the server can't be read: %s", k->kind->kind, strerror(-err));
	return NULL;
}

static void first_seen(struct kube_job *job, const struct spec_job_view *view)
{
	struct kube *k = job->k;
	const struct kube_group *group = kube_group_of(job);

	job->since = k->listed_jobs ? loop_time_ns() : view->meta.created;
	job->waits = true;
	kube_adopt_events(job, job->uid);
	if (group)
		kube_adopt_events(job, group->view->meta.uid);
	kube_tick_later(k);
}

/* VIEW, which JSON says, is taken over. NULL: no memory. */
static struct kube_job *take_job(struct kube *k, struct spec_job_view *view, const char *json,
				 size_t len)
{
	struct spec_text *object = spec_text_new(json, len);
	struct kube_job *job;

	job = object ? need_job(k, view->meta.uid) : NULL;
	if (job && job->view && !streq(job->view->meta.name, view->meta.name)) {
		diag(DIAG_WARNING, "the server says that job %s is called %s too: ignored",
		     job->view->meta.name, view->meta.name);
		spec_text_unref(object);
		spec_job_view_free(view);
		return NULL;
	}
	if (!job) {
		diag(DIAG_ERROR, "out of memory; job %s is not shown", view->meta.name);
		spec_text_unref(object);
		spec_job_view_free(view);
		return NULL;
	}
	if (!job->view)
		first_seen(job, view);
	spec_job_view_free(job->view);
	spec_text_unref(job->object);
	job->view = view;
	job->object = object;
	job->round = k->round_jobs;
	/* It left the labels that are shown, and is back. */
	if (job->gone)
		job->gone = job->left = false;
	kube_mark(job);
	return job;
}

/* Was A made before B, or is it B? Versions are numbers that only grow; others are not compared. */
static bool is_up_to(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	if (strspn(a, "0123456789") != n || strspn(b, "0123456789") != m)
		return false;
	return n != m ? n < m : strcmp(a, b) <= 0;
}

struct kube_job *kube_job_told(struct kube *k, const char *json, size_t len)
{
	struct spec_job_view *view = read_job(k, json, len);
	struct kube_job *job = view ? kube_job_find(k, view->meta.uid) : NULL;
	bool known = job && job->view;

	if (!view)
		return NULL;
	if (!is_up_to(view->meta.resource_version,
		      known ? job->view->meta.resource_version : watch_version(k->watch_jobs)))
		return take_job(k, view, json, len);
	spec_job_view_free(view);
	return known && !job->gone ? job : NULL;
}

void kube_job_gone(struct kube_job *job)
{
	job->gone = true;
	kube_leave(job);
	kube_job_settle(job);
}

/*
 * Has a reply brought what is newer than VIEW, which the watch tells? It comes to that yet. Not so of a list:
 * a server that was set back begins its versions anew.
 */
static bool is_late(struct kube *k, const struct spec_job_view *view)
{
	const struct kube_job *job = kube_job_find(k, view->meta.uid);
	const char *version = view->meta.resource_version;

	return job && job->view && !job->gone && *watch_version(k->watch_jobs) &&
	       !streq(version, job->view->meta.resource_version) &&
	       is_up_to(version, job->view->meta.resource_version);
}

static void on_job(void *data, const char *json, size_t len, bool gone)
{
	struct kube *k = data;
	struct spec_job_view *view = read_job(k, json, len);
	struct kube_job *job;

	atomic_fetch_add(&k->n_events, 1);
	if (!view)
		return;
	if (!gone && is_late(k, view)) {
		spec_job_view_free(view);
		return;
	}
	job = take_job(k, view, json, len);
	if (job && gone)
		kube_job_gone(job);
}

static void on_jobs_begin(void *data)
{
	struct kube *k = data;

	k->round_jobs++;
}

/* --- lists --- */

static void lists_in(struct kube *k)
{
	if (k->started || !k->listed_jobs || !k->listed_pods)
		return;
	kube_files_settle(k);
	for (struct kube_job *job = k->jobs; job; job = job->hh.next)
		(void)kube_publish(job);
	keep_soon(k->keep);
	kube_started(k, 0, NULL);
	kube_extra_start(k);
}

static void on_jobs_listed(void *data)
{
	struct kube *k = data;
	struct kube_job *job, *next;

	HASH_ITER(hh, k->jobs, job, next) {
		if (job->view && !job->gone && job->round != k->round_jobs)
			kube_job_gone(job);
	}
	k->listed_jobs = true;
	lists_in(k);
}

static void on_pods_listed(void *data)
{
	struct kube *k = data;
	struct kube_pod *pod, *next;

	HASH_ITER(hh, k->pods, pod, next) {
		if (pod->round != k->round_pods)
			pod_gone(pod);
	}
	k->listed_pods = true;
	lists_in(k);
}

/* --- is it confirmed? --- */

/* A watch's word. Before the first lists are in, the first error ends the start. */
static void on_state(struct kube *k, int *mine, char **why, int err, const char *text)
{
	*mine = err;
	free(*why);
	*why = strdup(text);
	if (!k->started && err) {
		kube_started(k, err, text);
		return;
	}
	if (!k->listed_jobs || !k->listed_pods)
		return; /* the start is under way, or it has failed and that was said */
	kube_confirm(k);
}

static void on_jobs_state(void *data, int err, const char *text)
{
	struct kube *k = data;

	on_state(k, &k->err_jobs, &k->text_jobs, err, text);
}

static void on_pods_state(void *data, int err, const char *text)
{
	struct kube *k = data;

	on_state(k, &k->err_pods, &k->text_pods, err, text);
}

/* --- life --- */

int kube_watch_start(struct kube *k)
{
	struct watch_config jobs = {
		.loop = k->b->loop,
		.http = k->http,
		.path = k->jobs_path,
		.selector = k->b->config.selector,
		.resource = k->resource,
		.namespace = k->connection.namespace,
		.page = PAGE_JOBS,
		.ends = &k->watch_ends,
		.begin = on_jobs_begin,
		.object = on_job,
		.listed = on_jobs_listed,
		.state = on_jobs_state,
		.data = k,
	};
	struct watch_config pods = jobs;

	pods.resource = "pods";
	pods.path = k->pods_path;
	pods.selector = k->kind->pod_selector;
	pods.page = PAGE_PODS;
	pods.drop_env = true;
	pods.begin = on_pods_begin;
	pods.object = on_pod;
	pods.listed = on_pods_listed;
	pods.state = on_pods_state;
	k->watch_jobs = watch_new(&jobs);
	k->watch_pods = watch_new(&pods);
	return k->watch_jobs && k->watch_pods ? 0 : -ENOMEM;
}

void kube_objects_free(struct kube *k)
{
	struct kube_job *job, *next;

	HASH_ITER(hh, k->jobs, job, next)
		job_free(job);
}
