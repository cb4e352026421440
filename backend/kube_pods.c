/* SPDX-License-Identifier: MIT */
/*
 * The table of pods, as their watch tells them. A pod finds its job by the uid of its controller, also when it
 * comes before it. One that has gone is kept as long as its job: what it said last (exit codes, logs) is that
 * attempt's end.
 */
#include <utlist.h>

#include "backend/kube.h"

/* Pods of earlier attempts that are remembered of one job; beyond, the oldest are forgotten. */
#define GONE_MAX 4096

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
		job = kube_job_need(k, view->meta.owner_uid);
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

void kube_pod_watched(struct kube *k, const char *json, size_t len, bool gone)
{
	struct spec_pod_view *view;
	struct kube_pod *pod;
	int err = spec_pod_view_parse(k->kind, json, len, &view);

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

void kube_pods_listed(struct kube *k)
{
	struct kube_pod *pod, *next;

	HASH_ITER(hh, k->pods, pod, next) {
		if (pod->round != k->round_pods)
			pod_gone(pod);
	}
}

void kube_pods_free(struct kube_job *job)
{
	struct kube_pod *pod, *next;

	DL_FOREACH_SAFE(job->pods, pod, next)
		pod_free(pod);
}
