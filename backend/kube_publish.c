/* SPDX-License-Identifier: MIT */
/*
 * From views to snapshots. A job may change many times in one turn of the loop (each pod of a gang
 * starts): it is marked, and published once. Publishing is cheap but not free, so a turn publishes
 * only so long, and requests of the FUSE thread are served between turns.
 */
#include <errno.h>
#include <utlist.h>

#include "backend/kube.h"

#define PUBLISH_MS 20

static int64_t stale_since(struct kube *k)
{
	lock_scope(&k->lock);
	return k->stale_since;
}

/* JOB's pods as an array (malloc'ed; *RET_N 0: none). -ENOMEM. */
static int list_pods(const struct kube_job *job, const struct spec_pod_view ***ret, size_t *ret_n)
{
	const struct kube_pod *pod;
	size_t n = 0;

	DL_COUNT(job->pods, pod, n);
	*ret = calloc(max_of(n, (size_t)1), sizeof(struct spec_pod_view *));
	*ret_n = n;
	if (!*ret)
		return -ENOMEM;
	n = 0;
	DL_FOREACH(job->pods, pod)
		(*ret)[n++] = pod->view;
	return 0;
}

static void queue_unrefp(struct spec_queue_view **queue)
{
	spec_queue_view_unref(*queue);
}

/* The snapshot of JOB as it is now. NULL: no memory. */
static struct spec_job *snapshot(struct kube_job *job, bool history)
{
	struct kube *k = job->k;
	const struct spec_job *before cleanup_job = store_get_uid(k->b->store, job->uid);
	const struct spec_pod_view **pods cleanup_free = NULL;
	const struct kube_group *group = kube_group_of(job);
	struct spec_queue_view *queue cleanup(queue_unrefp) = kube_queue(k->b, job->view->queue);
	struct events_list events cleanup(events_release) = {0};
	struct spec_view_context ctx = {
		.kind = k->kind,
		.namespace = k->connection.namespace,
		.now = loop_time_ns(),
		.stale_since = history ? 0 : stale_since(k),
		.own = kube_is_own(k, job->view),
		.history = history,
		.since = job->since,
		.group = group ? group->view : NULL,
		.queue = queue,
		.events_known = kube_extra_confirmed(k, KUBE_EVENTS),
		.before = before,
	};
	struct spec_job *snap;
	size_t n;

	if (list_pods(job, &pods, &n) < 0 || events_get(k->events, job->uid, &events) < 0)
		return NULL;
	ctx.events = events.v;
	ctx.n_events = events.n;
	snap = spec_view_job(job->view, pods, n, &ctx);
	if (!snap)
		return NULL;
	snap->object = spec_text_ref(job->object);
	snap->pending = history ? 0 : kube_command_pending(job);
	snap->ignored = history ? 0 : job->ignored;
	kube_logs_fill(job, snap);
	return snap;
}

static void unmark(struct kube_job *job)
{
	if (job->marked)
		DL_DELETE2(job->k->marked, job, mark_prev, mark_next);
	job->marked = false;
}

int kube_publish(struct kube_job *job)
{
	struct spec_job *snap;

	if (job->view)
		kube_own_bind(job->k, job->view);
	/* What has left jobs/ without a byte of output is no longer shown. */
	if (!job->view || (job->left && !kube_has_output(job->k, job->view))) {
		unmark(job);
		return 0;
	}
	kube_command_look(job);
	snap = snapshot(job, job->left);
	if (!snap)
		return -ENOMEM;
	unmark(job);
	job->waits = snap->state == SPEC_PENDING || snap->state == SPEC_SUBMITTED;
	kube_logs_look(job, snap);
	if (store_put(job->k->b->store, snap) < 0) {
		spec_job_unref(snap);
		kube_mark(job);
		return -ENOMEM;
	}
	if (job->spool || job->left)
		kube_keep(job->k, job->uid, job->left);
	kube_command_shown(job);
	return 0;
}

static void publish_marked(void *data)
{
	struct kube *k = data;
	uint64_t until = loop_now_ms() + PUBLISH_MS;

	k->publishing = false;
	if (k->stopping)
		return;
	while (k->marked && kube_publish(k->marked) == 0 && loop_now_ms() < until)
		;
	if (k->marked) {
		k->publishing = true;
		loop_post(k->b->loop, publish_marked, k);
	}
}

void kube_mark(struct kube_job *job)
{
	struct kube *k = job->k;

	if (!job->marked)
		DL_APPEND2(k->marked, job, mark_prev, mark_next);
	job->marked = true;
	/* Until the first lists are in, a job without its pods would be told as news. */
	if (k->publishing || !k->started)
		return;
	k->publishing = true;
	loop_post(k->b->loop, publish_marked, k);
}

void kube_leave(struct kube_job *job)
{
	if (job->left)
		return;
	job->left = true;
	kube_command_gone(job);
	/* Output may be of an earlier mount. */
	if (kube_has_output(job->k, job->view) && kube_publish(job) == 0)
		return;
	store_remove(job->k->b->store, job->uid);
	if (kube_own_of(job->k, job->view) && !kube_has_output(job->k, job->view))
		kube_folder_remove(job->k, job->view->meta.name, NULL, NULL);
}

void kube_confirm(struct kube *k)
{
	const char *text = k->err_jobs ? k->text_jobs : k->err_pods ? k->text_pods : NULL;
	bool stale = k->err_jobs || k->err_pods;
	cleanup_free char *copy = text ? strdup(text) : NULL;
	bool changed;

	{
		lock_scope(&k->lock);
		changed = stale != (k->stale_since != 0);
		if (changed)
			k->stale_since = stale ? loop_time_ns() : 0;
		if (copy || !stale) {
			char *old = k->stale_text;

			k->stale_text = take_ptr(copy);
			copy = old;
		}
	}
	if (!changed)
		return;
	diag(DIAG_INFO, stale ? "what is shown is no longer confirmed: %s" : "connected%s",
	     text ? text : "");
	for (struct kube_job *job = k->jobs; job; job = job->hh.next)
		kube_mark(job);
	if (!stale)
		kube_logs_again(k);
}
