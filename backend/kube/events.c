/* SPDX-License-Identifier: MIT */
/*
 * An event whose job is known is in two lists: the list of its job, and the list of all events with
 * a known job. An event whose job is unknown is only in the list of waiting events. A repeated
 * event moves to the end of its lists. When a list is full, a new event replaces the event at the
 * front.
 */
#include "backend/kube/events.h"

#include <uthash.h>
#include <utlist.h>

#include "backend/base/lock.h"
#include "spec/base/mem.h"

struct event {
	struct spec_event_view *v;
	struct event_job *job; /* NULL while the job is unknown */
	struct event *prev, *next;
	struct event *all_prev, *all_next;
};

struct event_job {
	char *uid;
	struct event *list;
	size_t n;
	UT_hash_handle hh;
};

struct events {
	struct lock lock; /* protects all members below it */
	struct event_job *jobs;
	struct event *waiting;
	size_t n_waiting;
	struct event *all; /* all events whose job is known */
	size_t n_all;
};

struct events *events_new(void)
{
	struct events *ev = new0(struct events);

	ev->lock = (struct lock)LOCK_INIT;
	return ev;
}

static void unlink_event(struct events *ev, struct event *e)
{
	struct event_job *job = e->job;

	if (!job) {
		DL_DELETE(ev->waiting, e);
		ev->n_waiting--;
		return;
	}
	DL_DELETE(job->list, e);
	job->n--;
	DL_DELETE2(ev->all, e, all_prev, all_next);
	ev->n_all--;
	if (job->n > 0)
		return;
	HASH_DEL(ev->jobs, job);
	free(job->uid);
	free(job);
}

static void drop(struct events *ev, struct event *e)
{
	unlink_event(ev, e);
	spec_event_view_unref(e->v);
	free(e);
}

void events_free(struct events *ev)
{
	if (!ev)
		return;
	while (ev->waiting)
		drop(ev, ev->waiting);
	while (ev->all)
		drop(ev, ev->all);
	free(ev);
}

static struct event_job *find_job(struct events *ev, const char *uid)
{
	struct event_job *job;

	HASH_FIND_STR(ev->jobs, uid, job);
	return job;
}

static struct event_job *need_job(struct events *ev, const char *uid)
{
	struct event_job *job = find_job(ev, uid);

	if (job)
		return job;
	job = new0(struct event_job);
	job->uid = text_copy(uid);
	HASH_ADD_KEYPTR(hh, ev->jobs, job->uid, strlen(job->uid), job);
	return job;
}

static struct event *find_same(struct event *list, const struct spec_event_view *v)
{
	struct event *e;

	DL_FOREACH(list, e)
		if (spec_event_view_same(e->v, v))
			return e;
	return NULL;
}

/*
 * True if V changes the `why` of its job. Compare V with the last event that is about the same
 * object and affects `why`. An event about a mounted volume changes `why` only if the event before
 * reported that a volume can't be mounted. A normal start of a pod has several such events, which
 * therefore change nothing.
 */
static bool is_news(const struct event_job *job, const struct spec_event_view *v, int64_t began)
{
	const struct spec_event_view *last = NULL;
	const struct event *e;

	DL_FOREACH(job->list, e)
		if (streq(e->v->about, v->about) &&
		    (spec_event_view_explains(e->v) || spec_event_view_mounts(e->v) > 0))
			last = e->v;
	if (spec_event_view_mounts(v) > 0)
		return last && spec_event_view_mounts(last) < 0;
	return spec_event_view_explains(v) &&
	       (!last || !spec_event_view_same(last, v) ||
		(spec_event_view_is_old(last, began) && !spec_event_view_is_old(v, began)));
}

/* Add E to the lists of JOB. E must not be in any list. Return true if `why` may change. */
static bool put_event(struct events *ev, struct event_job *job, int64_t began, struct event *e)
{
	struct event *old = find_same(job->list, e->v);
	bool changes = is_news(job, e->v, began);

	if (old) {
		spec_event_view_unref(old->v);
		old->v = e->v;
		DL_DELETE(old->job->list, old);
		DL_APPEND(old->job->list, old);
		DL_DELETE2(ev->all, old, all_prev, all_next);
		DL_APPEND2(ev->all, old, all_prev, all_next);
		free(e);
	} else {
		e->job = job;
		DL_APPEND(job->list, e);
		job->n++;
		DL_APPEND2(ev->all, e, all_prev, all_next);
		ev->n_all++;
		if (job->n > EVENTS_JOB_MAX)
			drop(ev, job->list);
		if (ev->n_all > EVENTS_MAX)
			drop(ev, ev->all);
	}
	return changes;
}

bool events_put(struct events *ev, const char *job, int64_t began, struct spec_event_view *v)
{
	struct event *e = new0(struct event);
	struct event *old;
	lock_scope(&ev->lock);

	e->v = v;
	if (job)
		return put_event(ev, need_job(ev, job), began, e);
	old = find_same(ev->waiting, e->v);
	if (old)
		drop(ev, old);
	DL_APPEND(ev->waiting, e);
	ev->n_waiting++;
	if (ev->n_waiting > EVENTS_WAITING_MAX)
		drop(ev, ev->waiting);
	return false;
}

bool events_adopt(struct events *ev, const char *job, events_is_fn is, void *data)
{
	struct event *e, *next;
	bool changes = false;
	lock_scope(&ev->lock);

	DL_FOREACH_SAFE(ev->waiting, e, next) {
		if (!is(data, e->v->about))
			continue;
		unlink_event(ev, e);
		changes |= put_event(ev, need_job(ev, job), 0, e);
	}
	return changes;
}

void events_forget(struct events *ev, const char *job)
{
	struct event_job *j;
	lock_scope(&ev->lock);

	j = find_job(ev, job);
	for (size_t n = j ? j->n : 0; n > 0; n--)
		drop(ev, j->list);
}

void events_get(struct events *ev, const char *job, struct events_list *ret)
{
	const struct event_job *j;
	const struct event *e;

	*ret = (struct events_list){new0_n(struct spec_event_view *, EVENTS_JOB_MAX), 0};
	lock_scope(&ev->lock);
	j = find_job(ev, job);
	if (j)
		DL_FOREACH(j->list, e)
			ret->v[ret->n++] = spec_event_view_ref(e->v);
}

void events_release(struct events_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		spec_event_view_unref(list->v[i]);
	free(take_ptr(list->v));
	list->n = 0;
}
