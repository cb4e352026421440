/* SPDX-License-Identifier: MIT */
/*
 * Pod groups, queues and events, as their watches tell. They change what is said of why a job waits, and
 * never the job. A group finds its job by the uid of its controller, an event by the uid of what it is
 * about: the job, its group, one of its pods.
 */
#include <errno.h>

#include "backend/kube.h"

static void cant_read(const char *what, int err)
{
	diag(DIAG_WARNING, "%s of the server can't be read: %s", what, strerror(-err));
}

void kube_adopt_events(struct kube_job *job, const char *about)
{
	if (events_adopt(job->k->events, about, job->uid))
		kube_mark(job);
}

/* --- groups --- */

struct kube_group *kube_group_of(const struct kube_job *job)
{
	struct kube_group *group;

	HASH_FIND(hh_job, job->k->job_groups, job->uid, strlen(job->uid), group);
	return group;
}

static void group_free(struct kube *k, struct kube_group *group)
{
	struct kube_group *current;

	HASH_FIND(hh_job, k->job_groups, group->view->meta.owner_uid,
		  strlen(group->view->meta.owner_uid), current);
	if (current == group)
		HASH_DELETE(hh_job, k->job_groups, group);
	if (group->hh.tbl)
		HASH_DELETE(hh, k->groups, group);
	spec_group_view_free(group->view);
	free(group);
}

/* GROUP, whose keys stand in its view, into the tables. False: no memory. */
static bool group_enter(struct kube *k, struct kube_group *group)
{
	const struct spec_meta *meta = &group->view->meta;
	struct kube_group *other;

	HASH_ADD_KEYPTR(hh, k->groups, meta->uid, strlen(meta->uid), group);
	if (!group->hh.tbl)
		return false;
	HASH_FIND(hh_job, k->job_groups, meta->owner_uid, strlen(meta->owner_uid), other);
	if (other)
		HASH_DELETE(hh_job, k->job_groups, other);
	HASH_ADD_KEYPTR(hh_job, k->job_groups, meta->owner_uid, strlen(meta->owner_uid), group);
	return group->hh_job.tbl;
}

static void group_leave(struct kube *k, struct kube_group *group)
{
	struct kube_job *job = kube_job_find(k, group->view->meta.owner_uid);

	group_free(k, group);
	if (job)
		kube_mark(job);
}

/* VIEW is taken over. */
static void group_seen(struct kube_extra *x, struct spec_group_view *view)
{
	struct kube *k = x->k;
	struct kube_group *group = calloc(1, sizeof(*group));
	struct kube_group *old;
	struct kube_job *job;

	HASH_FIND_STR(k->groups, view->meta.uid, old);
	view->seen = old ? old->view->seen : x->listed ? loop_time_ns() : view->meta.created;
	if (group && old)
		group->waited = old->waited;
	if (old)
		group_free(k, old);
	if (group) {
		group->view = view;
		group->round = x->round;
	}
	if (!group || !group_enter(k, group)) {
		diag(DIAG_ERROR, "out of memory; why may not tell all");
		if (group)
			group_free(k, group);
		else
			spec_group_view_free(view);
		return;
	}
	job = kube_job_find(k, view->meta.owner_uid);
	if (job && !old)
		kube_adopt_events(job, view->meta.uid);
	if (!group->waited)
		kube_tick_later(k);
	if (job)
		kube_mark(job);
}

void kube_group_told(struct kube_extra *x, const char *json, size_t len, bool gone)
{
	struct spec_group_view *view;
	struct kube_group *group;
	int err = spec_group_view_parse(json, len, &view);

	if (err) {
		cant_read("a pod group", err);
		return;
	}
	if (!gone && *view->meta.owner_uid) {
		group_seen(x, view);
		return;
	}
	HASH_FIND_STR(x->k->groups, view->meta.uid, group);
	if (group)
		group_leave(x->k, group);
	spec_group_view_free(view);
}

void kube_groups_listed(struct kube_extra *x)
{
	struct kube_group *group, *next;

	HASH_ITER(hh, x->k->groups, group, next) {
		if (group->round != x->round)
			group_leave(x->k, group);
	}
}

/* --- events --- */

/* The job of which the object ABOUT is a part; NULL: not known. */
static struct kube_job *job_about(struct kube *k, const char *about)
{
	struct kube_job *job = kube_job_find(k, about);
	struct kube_group *group;
	struct kube_pod *pod;

	if (job)
		return job;
	HASH_FIND_STR(k->pods, about, pod);
	if (pod)
		return pod->job;
	HASH_FIND_STR(k->groups, about, group);
	return group ? kube_job_find(k, group->view->meta.owner_uid) : NULL;
}

void kube_event_told(struct kube_extra *x, const char *json, size_t len, bool gone)
{
	struct kube *k = x->k;
	struct spec_event_view *view;
	struct kube_job *job;
	int err;

	/* The server forgets events after an hour; what they told is still how it was. */
	if (gone)
		return;
	err = spec_event_view_parse(json, len, &view);
	if (err) {
		if (err != -EINVAL) /* one that is about nothing that is shown */
			cant_read("an event", err);
		return;
	}
	job = job_about(k, view->about);
	if (events_put(k->events, job ? job->uid : NULL, job && job->view ? job->view->changed : 0,
		       view))
		kube_mark(job);
}

int kube_events_text(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		     int64_t *ret_changed)
{
	struct kube *k = kube_of(b);
	struct events_list events cleanup(events_release) = {0};
	int err;

	if (!kube_extra_known(k, KUBE_EVENTS))
		return -ENOENT;
	err = events_get(k->events, job->uid, &events);
	return err ? err : spec_event_view_text(events.v, events.n, ret, ret_len, ret_changed);
}

/* --- queues --- */

static void queue_leave(struct kube *k, struct kube_queue *queue)
{
	{
		lock_scope(&k->lock);
		HASH_DEL(k->queues, queue);
	}
	spec_queue_view_unref(queue->view);
	free(queue);
}

/* A queue of this name, not entered yet. NULL: no memory. */
static struct kube_queue *queue_new(struct kube *k, struct spec_queue_view *view)
{
	struct kube_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->view = view;
	{
		lock_scope(&k->lock);
		HASH_ADD_KEYPTR(hh, k->queues, view->meta.name, strlen(view->meta.name), queue);
	}
	if (queue->hh.tbl)
		return queue;
	free(queue);
	return NULL;
}

/* OLD's place is taken by VIEW, whose name is the same. NULL: no memory; there is none then. */
static struct kube_queue *queue_renew(struct kube *k, struct kube_queue *old,
				      struct spec_queue_view *view)
{
	bool same = spec_queue_view_same(old->view, view);
	struct kube_queue *queue;

	if (same) {
		spec_queue_view_unref(view);
		return old;
	}
	queue_leave(k, old);
	queue = queue_new(k, view);
	if (!queue)
		return NULL;
	queue->changed = true;
	kube_tick_later(k);
	return queue;
}

/* VIEW is taken over. */
static void queue_seen(struct kube_extra *x, struct spec_queue_view *view)
{
	struct kube *k = x->k;
	struct kube_queue *queue;

	view->changed = x->listed ? loop_time_ns() : view->meta.created;
	HASH_FIND_STR(k->queues, view->meta.name, queue);
	queue = queue ? queue_renew(k, queue, view) : queue_new(k, view);
	if (!queue) {
		diag(DIAG_ERROR, "out of memory; queue %s is not shown", view->meta.name);
		spec_queue_view_unref(view);
		return;
	}
	queue->from = x;
	queue->round = x->round;
}

void kube_queue_told(struct kube_extra *x, const char *json, size_t len, bool gone)
{
	struct spec_queue_view *view;
	struct kube_queue *queue;
	int err = spec_queue_view_parse(json, len, &view);

	if (err) {
		cant_read("a queue", err);
		return;
	}
	if (!gone) {
		queue_seen(x, view);
		return;
	}
	HASH_FIND_STR(x->k->queues, view->meta.name, queue);
	if (queue && streq(queue->view->meta.uid, view->meta.uid))
		queue_leave(x->k, queue);
	spec_queue_view_unref(view);
}

void kube_queues_listed(struct kube_extra *x)
{
	struct kube_queue *queue, *next;

	HASH_ITER(hh, x->k->queues, queue, next) {
		if (queue->from == x && queue->round != x->round)
			queue_leave(x->k, queue);
	}
}

struct spec_queue_view *kube_queue(struct backend *b, const char *name)
{
	struct kube *k = kube_of(b);
	struct kube_queue *queue;

	lock_scope(&k->lock);
	HASH_FIND_STR(k->queues, name, queue);
	return queue ? spec_queue_view_ref(queue->view) : NULL;
}

/* References to all queues; their number in *RET_N. */
static int all_queues(struct kube *k, struct spec_queue_view ***ret, size_t *ret_n)
{
	struct spec_queue_view **v;
	size_t n = 0;

	lock_scope(&k->lock);
	v = calloc(HASH_COUNT(k->queues) + 1, sizeof(struct spec_queue_view *));
	if (!v)
		return -ENOMEM;
	for (struct kube_queue *queue = k->queues; queue; queue = queue->hh.next)
		v[n++] = spec_queue_view_ref(queue->view);
	*ret = v;
	*ret_n = n;
	return 0;
}

int kube_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n)
{
	struct kube *k = kube_of(b);

	if (!kube_extra_known(k, KUBE_QUEUES) && !kube_extra_known(k, KUBE_OWN_QUEUE))
		return -ENOENT;
	return all_queues(k, ret, ret_n);
}

/* --- the end --- */

void kube_groups_free(struct kube *k)
{
	struct kube_group *group, *next;
	struct kube_queue *queue, *next_queue;

	HASH_ITER(hh, k->groups, group, next)
		group_free(k, group);
	HASH_ITER(hh, k->queues, queue, next_queue)
		queue_leave(k, queue);
}
