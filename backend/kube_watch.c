/* SPDX-License-Identifier: MIT */
/*
 * The two watches that a mount can't do without: the jobs of its kind, and their pods. What they tell goes to
 * the two tables (kube_jobs.c, kube_pods.c); when both lists are in, the start is over; their errors say whether
 * what is shown is confirmed.
 */
#include <errno.h>

#include "backend/kube.h"

/* First pages: a pod of a large job has hundreds of KiB. */
#define PAGE_JOBS 100
#define PAGE_PODS 50

/* --- what they tell --- */

static void on_job(void *data, const char *json, size_t len, bool gone)
{
	struct kube *k = data;

	atomic_fetch_add(&k->n_events, 1);
	kube_job_watched(k, json, len, gone);
}

static void on_pod(void *data, const char *json, size_t len, bool gone)
{
	struct kube *k = data;

	atomic_fetch_add(&k->n_events, 1);
	kube_pod_watched(k, json, len, gone);
}

static void on_pods_begin(void *data)
{
	struct kube *k = data;

	k->round_pods++;
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

	kube_jobs_listed(k);
	k->listed_jobs = true;
	lists_in(k);
}

static void on_pods_listed(void *data)
{
	struct kube *k = data;

	kube_pods_listed(k);
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
