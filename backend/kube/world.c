/* SPDX-License-Identifier: MIT */
/*
 * Tables of jobs, pods, groups, Workloads and queues by uid (queues by name), and the events of jobs (events.h). A
 * list is compared with the table by its round: an object that the last list did not hold has an older round, and is
 * gone. A queue and a group change only the reason why a job waits, never the job itself. Since a queue changes with
 * each pod that starts in it, the jobs that wait in it count as changed at the next tick. The tick also comes when a
 * job, or its group, has been known for SPEC_PATIENCE, after which `why` may say that something is missing.
 *
 * The file is long because the tables are joined: whatever comes first of a job, its pods, its group and their events
 * waits here for the others. Each table has a section.
 */
#include "backend/kube/world.h"

#include <errno.h>
#include <stdatomic.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "spec/base/mem.h"

/* Pods of earlier attempts that are remembered of one job; beyond, the oldest are forgotten. */
#define GONE_MAX 4096
#define TICK_MS	 5000

struct pod {
	struct spec_pod_view *view;
	struct job *job;
	unsigned round;
	struct pod *prev, *next; /* of the job */
	UT_hash_handle hh;	 /* by uid; only while it is in the cluster */
};

struct job {
	struct world_job j;
	struct world *w;
	struct pod *pods; /* those that are gone stand at the end, the oldest first */
	size_t n_gone;
	unsigned round;
	const struct spec_kind *kind; /* that VIEW was read as */
	unsigned place;		      /* in its queue of Kueue; 0: not known */
	bool waits;		      /* it was shown as one that has not started */
	bool waited;		      /* SPEC_PATIENCE has passed since it was seen first */
	UT_hash_handle hh;	      /* by uid */
};

struct pod_group {
	struct spec_group_view *view;
	unsigned round;
	bool waited;	       /* SPEC_PATIENCE has passed since it was seen first */
	UT_hash_handle hh;     /* by uid */
	UT_hash_handle hh_job; /* by the uid of its job */
};

struct workload {
	struct spec_workload_view *view;
	unsigned round;
	UT_hash_handle hh;     /* by uid */
	UT_hash_handle hh_job; /* by the uid of its job */
};

struct queue {
	struct spec_queue_view *view;
	enum world_sort from; /* which watch has brought it */
	unsigned round;
	bool changed;	   /* the jobs that wait in it have not been reported yet */
	UT_hash_handle hh; /* by name */
};

struct cluster_queue {
	struct spec_cluster_queue_view *view;
	unsigned round;
	UT_hash_handle hh; /* by name */
};

struct world {
	struct loop *loop;
	struct world_events callbacks;
	const struct spec_kind *kind;
	unsigned rounds[WORLD_N_SORTS];
	bool listed[WORLD_N_SORTS]; /* the first list is in: what comes from now on is new */
	bool confirmed[WORLD_N_SORTS];
	struct job *jobs;
	struct pod *pods;
	struct pod_group *groups, *job_groups;
	struct workload *workloads, *job_workloads;
	struct events *events;
	struct loop_timer *tick; /* NULL: nothing has to be reported later */
	bool stopped;
	struct lock lock; /* for the queues, which are changed on the I/O thread alone */
	struct queue *queues;
	struct cluster_queue *cluster_queues;
	atomic_size_t n_pods;
};

static void cant_read(const char *what, int err)
{
	diag(DIAG_WARNING, "%s of the server can't be read: %s", what, strerror(-err));
}

static void changed(struct job *job)
{
	job->w->callbacks.changed(job->w->callbacks.data, &job->j);
}

static void tick_later(struct world *w);

static struct job *find_job(const struct world *w, const char *uid)
{
	struct job *job;

	HASH_FIND_STR(w->jobs, uid, job);
	return job;
}

static struct job *need_job(struct world *w, const char *uid)
{
	struct job *job = find_job(w, uid);

	if (job)
		return job;
	job = new0(struct job);
	job->w = w;
	job->j.uid = text_copy(uid);
	HASH_ADD_KEYPTR(hh, w->jobs, job->j.uid, strlen(job->j.uid), job);
	return job;
}

static struct pod_group *find_job_group(const struct world *w, const char *job)
{
	struct pod_group *group;

	HASH_FIND(hh_job, w->job_groups, job, strlen(job), group);
	return group;
}

static struct workload *find_job_workload(const struct world *w, const char *job)
{
	struct workload *workload;

	HASH_FIND(hh_job, w->job_workloads, job, strlen(job), workload);
	return workload;
}

/* The object of uid ABOUT has turned out to be a part of JOB: the events about it that waited become JOB's. */
static void adopt_events(struct job *job, const char *about)
{
	if (events_adopt(job->w->events, about, job->j.uid))
		changed(job);
}

/* --- jobs --- */

static const struct spec_job_view *known_view(void *data, const char *uid)
{
	const struct job *job = find_job(data, uid);

	return job && job->kind == job->w->kind ? job->j.view : NULL;
}

/* NULL: it can't be read. */
static struct spec_job_view *read_job(struct world *w, const char *json, size_t len)
{
	struct spec_job_view *view;
	int err = spec_job_view_parse(w->kind->reader, json, len, known_view, w, &view);

	if (!err)
		return view;
	diag(DIAG_WARNING, "a %s of the server can't be read: %s", w->kind->kind, strerror(-err));
	return NULL;
}

static void job_first_seen(struct job *job, const struct spec_job_view *view)
{
	struct world *w = job->w;
	const struct pod_group *group = find_job_group(w, job->j.uid);
	const struct workload *workload = find_job_workload(w, job->j.uid);

	job->j.since = w->listed[WORLD_JOBS] ? loop_time_ns() : view->meta.created;
	job->waits = true;
	adopt_events(job, job->j.uid);
	if (group)
		adopt_events(job, group->view->meta.uid);
	if (workload)
		adopt_events(job, workload->view->meta.uid);
	tick_later(w);
}

/* Put VIEW, which was read from JSON, into the table; it is taken over. NULL: it can't be kept. */
static struct job *take_job(struct world *w, struct spec_job_view *view, const char *json,
			    size_t len)
{
	struct job *job = need_job(w, view->meta.uid);

	if (job->j.view && !streq(job->j.view->meta.name, view->meta.name)) {
		diag(DIAG_WARNING, "the server says that job %s is called %s too: ignored",
		     job->j.view->meta.name, view->meta.name);
		spec_job_view_free(view);
		return NULL;
	}
	if (!job->j.view)
		job_first_seen(job, view);
	spec_job_view_free(job->j.view);
	spec_text_unref(job->j.object);
	job->j.view = view;
	job->kind = w->kind;
	job->j.object = spec_text_new(json, len);
	job->round = w->rounds[WORLD_JOBS];
	job->j.gone = false; /* it may have lost the labels that are shown, and have them again */
	changed(job);
	return job;
}

/* Is version A older than version B, or the same? Versions are numbers that only grow; others are not compared. */
static bool is_up_to(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	if (strspn(a, "0123456789") != n || strspn(b, "0123456789") != m)
		return false;
	return n != m ? n < m : strcmp(a, b) <= 0;
}

const struct world_job *world_reply(struct world *w, const char *json, size_t len)
{
	struct spec_job_view *view = read_job(w, json, len);
	struct job *job = view ? find_job(w, view->meta.uid) : NULL;
	bool known = job && job->j.view;

	if (!view)
		return NULL;
	if (!is_up_to(view->resource_version,
		      known ? job->j.view->resource_version
			    : w->callbacks.watched_version(w->callbacks.data))) {
		job = take_job(w, view, json, len);
		return job ? &job->j : NULL;
	}
	spec_job_view_free(view);
	return known && !job->j.gone ? &job->j : NULL;
}

/*
 * Is VIEW, which came by the watch, older than what a reply has brought already? Then the world ignores it, since the
 * watch will catch up. What comes in a list is never ignored: a server that was restored begins its versions anew.
 */
static bool is_late(struct world *w, const struct spec_job_view *view)
{
	const struct job *job = find_job(w, view->meta.uid);
	const char *version = view->resource_version;

	return job && job->j.view && !job->j.gone &&
	       *w->callbacks.watched_version(w->callbacks.data) &&
	       !streq(version, job->j.view->resource_version) &&
	       is_up_to(version, job->j.view->resource_version);
}

static void job_gone(struct job *job)
{
	job->j.gone = true;
	changed(job);
}

static void job_told(struct world *w, const char *json, size_t len, bool gone)
{
	struct spec_job_view *view = read_job(w, json, len);
	struct job *job;

	if (!view)
		return;
	if (!gone && is_late(w, view)) {
		spec_job_view_free(view);
		return;
	}
	job = take_job(w, view, json, len);
	if (job && gone)
		job_gone(job);
}

static void jobs_listed(struct world *w)
{
	for (struct job *job = w->jobs; job; job = job->hh.next)
		if (job->j.view && !job->j.gone && job->round != w->rounds[WORLD_JOBS])
			job_gone(job);
}

/* --- pods --- */

static void pod_leaves_table(struct pod *pod)
{
	struct world *w = pod->job->w;

	HASH_DEL(w->pods, pod);
	pod->job->j.n_pods--;
	atomic_store(&w->n_pods, HASH_COUNT(w->pods));
}

static void pod_free(struct pod *pod)
{
	struct job *job = pod->job;

	if (pod->view->gone)
		job->n_gone--;
	else
		pod_leaves_table(pod);
	DL_DELETE(job->pods, pod);
	spec_pod_view_free(pod->view);
	free(pod);
}

static void pod_gone(struct pod *pod)
{
	struct job *job = pod->job;
	struct pod *old, *next;

	pod_leaves_table(pod);
	pod->view->gone = true;
	job->n_gone++;
	DL_DELETE(job->pods, pod);
	DL_APPEND(job->pods, pod);
	DL_FOREACH_SAFE(job->pods, old, next) {
		if (job->n_gone <= GONE_MAX)
			break;
		if (old->view->gone)
			pod_free(old);
	}
	changed(job);
}

/* VIEW is taken over. */
static struct pod *pod_seen(struct world *w, struct spec_pod_view *view)
{
	struct pod *pod;

	HASH_FIND_STR(w->pods, view->meta.uid, pod);
	if (pod) {
		HASH_DEL(w->pods, pod); /* its key is in the view */
		spec_pod_view_inherit(view, pod->view);
		spec_pod_view_free(pod->view);
	} else {
		pod = new0(struct pod);
		pod->job = need_job(w, view->meta.owner_uid);
		pod->job->j.n_pods++;
		DL_PREPEND(pod->job->pods, pod);
		adopt_events(pod->job, view->meta.uid);
	}
	pod->view = view;
	pod->round = w->rounds[WORLD_PODS];
	HASH_ADD_KEYPTR(hh, w->pods, view->meta.uid, strlen(view->meta.uid), pod);
	atomic_store(&w->n_pods, HASH_COUNT(w->pods));
	changed(pod->job);
	return pod;
}

static void pod_told(struct world *w, const char *json, size_t len, bool gone)
{
	struct spec_pod_view *view;
	struct pod *pod;
	int err = spec_pod_view_parse(w->kind->reader, json, len, &view);

	if (err) {
		cant_read("a pod", err);
		return;
	}
	HASH_FIND_STR(w->pods, view->meta.uid, pod);
	if (!*view->meta.owner_uid || (gone && !pod)) {
		spec_pod_view_free(view);
		return;
	}
	/* The pod's last state is news too: it says how the pod has ended. */
	pod = pod_seen(w, view);
	if (gone)
		pod_gone(pod);
}

static void pods_listed(struct world *w)
{
	struct pod *pod, *next;

	HASH_ITER(hh, w->pods, pod, next) {
		if (pod->round != w->rounds[WORLD_PODS])
			pod_gone(pod);
	}
}

/* --- groups --- */

static void group_free(struct world *w, struct pod_group *group)
{
	if (find_job_group(w, group->view->meta.owner_uid) == group)
		HASH_DELETE(hh_job, w->job_groups, group);
	HASH_DELETE(hh, w->groups, group);
	spec_group_view_free(group->view);
	free(group);
}

static void group_gone(struct world *w, struct pod_group *group)
{
	struct job *job = find_job(w, group->view->meta.owner_uid);

	group_free(w, group);
	if (job)
		changed(job);
}

/* VIEW is taken over. */
static void group_seen(struct world *w, struct spec_group_view *view)
{
	const struct spec_meta *meta = &view->meta;
	struct pod_group *group = new0(struct pod_group), *old, *other;
	struct job *job = find_job(w, meta->owner_uid);

	HASH_FIND_STR(w->groups, meta->uid, old);
	view->seen = old		       ? old->view->seen
		     : w->listed[WORLD_GROUPS] ? loop_time_ns()
					       : meta->created;
	if (old) {
		group->waited = old->waited;
		group_free(w, old);
	}
	group->view = view;
	group->round = w->rounds[WORLD_GROUPS];
	HASH_ADD_KEYPTR(hh, w->groups, meta->uid, strlen(meta->uid), group);
	other = find_job_group(w, meta->owner_uid);
	if (other)
		HASH_DELETE(hh_job, w->job_groups, other);
	HASH_ADD_KEYPTR(hh_job, w->job_groups, meta->owner_uid, strlen(meta->owner_uid), group);
	if (!group->waited)
		tick_later(w);
	if (!job)
		return;
	if (!old)
		adopt_events(job, meta->uid);
	changed(job);
}

static void group_told(struct world *w, const char *json, size_t len, bool gone)
{
	struct spec_group_view *view;
	struct pod_group *group;
	int err = spec_group_view_parse(json, len, &view);

	if (err) {
		cant_read("a pod group", err);
		return;
	}
	if (!gone && *view->meta.owner_uid) {
		group_seen(w, view);
		return;
	}
	HASH_FIND_STR(w->groups, view->meta.uid, group);
	if (group)
		group_gone(w, group);
	spec_group_view_free(view);
}

static void groups_listed(struct world *w)
{
	struct pod_group *group, *next;

	HASH_ITER(hh, w->groups, group, next) {
		if (group->round != w->rounds[WORLD_GROUPS])
			group_gone(w, group);
	}
}

/* --- Kueue's Workloads --- */

static void workload_free(struct world *w, struct workload *workload)
{
	if (find_job_workload(w, workload->view->meta.owner_uid) == workload)
		HASH_DELETE(hh_job, w->job_workloads, workload);
	HASH_DELETE(hh, w->workloads, workload);
	spec_workload_view_free(workload->view);
	free(workload);
}

static void workload_gone(struct world *w, struct workload *workload)
{
	struct job *job = find_job(w, workload->view->meta.owner_uid);

	workload_free(w, workload);
	if (job)
		changed(job);
}

/* VIEW is taken over. Of two of one job, Kueue is about to delete the one that came first. */
static void workload_seen(struct world *w, struct spec_workload_view *view)
{
	const struct spec_meta *meta = &view->meta;
	struct workload *workload = new0(struct workload), *old, *other;
	struct job *job = find_job(w, meta->owner_uid);

	HASH_FIND_STR(w->workloads, meta->uid, old);
	if (old)
		workload_free(w, old);
	workload->view = view;
	workload->round = w->rounds[WORLD_WORKLOADS];
	HASH_ADD_KEYPTR(hh, w->workloads, meta->uid, strlen(meta->uid), workload);
	other = find_job_workload(w, meta->owner_uid);
	if (other)
		HASH_DELETE(hh_job, w->job_workloads, other);
	HASH_ADD_KEYPTR(hh_job, w->job_workloads, meta->owner_uid, strlen(meta->owner_uid),
			workload);
	if (!job)
		return;
	if (!old)
		adopt_events(job, meta->uid);
	changed(job);
}

static void workload_told(struct world *w, const char *json, size_t len, bool gone)
{
	struct spec_workload_view *view;
	struct workload *workload;
	int err = spec_workload_view_parse(json, len, &view);

	if (err) {
		cant_read("a Workload", err);
		return;
	}
	if (!gone && *view->meta.owner_uid) {
		workload_seen(w, view);
		return;
	}
	HASH_FIND_STR(w->workloads, view->meta.uid, workload);
	if (workload)
		workload_gone(w, workload);
	spec_workload_view_free(view);
}

static void workloads_listed(struct world *w)
{
	struct workload *workload, *next;

	HASH_ITER(hh, w->workloads, workload, next) {
		if (workload->round != w->rounds[WORLD_WORKLOADS])
			workload_gone(w, workload);
	}
}

/* --- events --- */

/* The job of which the object of uid ABOUT is a part; NULL: not known. */
static struct job *job_about(struct world *w, const char *about)
{
	struct job *job = find_job(w, about);
	struct workload *workload;
	struct pod_group *group;
	struct pod *pod;

	if (job)
		return job;
	HASH_FIND_STR(w->pods, about, pod);
	if (pod)
		return pod->job;
	HASH_FIND_STR(w->groups, about, group);
	if (group)
		return find_job(w, group->view->meta.owner_uid);
	HASH_FIND_STR(w->workloads, about, workload);
	return workload ? find_job(w, workload->view->meta.owner_uid) : NULL;
}

static void event_told(struct world *w, const char *json, size_t len, bool gone)
{
	struct spec_event_view *view;
	struct job *job;
	int err;

	/* The server forgets an event after an hour; what it said is still true. */
	if (gone)
		return;
	err = spec_event_view_parse(json, len, &view);
	if (err) {
		if (err != -EINVAL) /* -EINVAL: an event about nothing that is shown */
			cant_read("an event", err);
		return;
	}
	job = job_about(w, view->about);
	if (events_put(w->events, job ? job->j.uid : NULL,
		       job && job->j.view ? job->j.view->changed : 0, view))
		changed(job);
}

void world_events_of(struct world *w, const char *uid, struct events_list *ret)
{
	events_get(w->events, uid, ret);
}

/* --- queues --- */

static void queue_gone(struct world *w, struct queue *queue)
{
	{
		lock_scope(&w->lock);
		HASH_DEL(w->queues, queue);
	}
	spec_queue_view_unref(queue->view);
	free(queue);
}

static struct queue *queue_new(struct world *w, struct spec_queue_view *view)
{
	struct queue *queue = new0(struct queue);
	lock_scope(&w->lock);

	queue->view = view;
	HASH_ADD_KEYPTR(hh, w->queues, view->meta.name, strlen(view->meta.name), queue);
	return queue;
}

/* VIEW is taken over. */
static void queue_seen(struct world *w, enum world_sort from, struct spec_queue_view *view)
{
	struct queue *queue;

	view->changed = w->listed[from] ? loop_time_ns() : view->meta.created;
	HASH_FIND_STR(w->queues, view->meta.name, queue);
	if (queue && spec_queue_view_same(queue->view, view)) {
		spec_queue_view_unref(view);
	} else if (queue) {
		queue_gone(w, queue);
		queue = queue_new(w, view);
		queue->changed = true;
		tick_later(w);
	} else {
		queue = queue_new(w, view);
	}
	queue->from = from;
	queue->round = w->rounds[from];
}

static void queue_told(struct world *w, enum world_sort from, const char *json, size_t len,
		       bool gone)
{
	struct spec_queue_view *view;
	struct queue *queue;
	int err = from == WORLD_LOCAL_QUEUES ? spec_local_queue_parse(json, len, &view)
					     : spec_queue_view_parse(json, len, &view);

	if (err) {
		cant_read("a queue", err);
		return;
	}
	if (!gone) {
		queue_seen(w, from, view);
		return;
	}
	HASH_FIND_STR(w->queues, view->meta.name, queue);
	if (queue && streq(queue->view->meta.uid, view->meta.uid))
		queue_gone(w, queue);
	spec_queue_view_unref(view);
}

static void queues_listed(struct world *w, enum world_sort from)
{
	struct queue *queue, *next;

	HASH_ITER(hh, w->queues, queue, next) {
		if (queue->from == from && queue->round != w->rounds[from])
			queue_gone(w, queue);
	}
}

/* --- Kueue's ClusterQueues --- */

/* What NAME has may be why jobs wait in the queues that belong to it. */
static void cluster_queue_changed(struct world *w, const char *name)
{
	for (struct queue *queue = w->queues; queue; queue = queue->hh.next) {
		if (queue->view->local && streq(queue->view->local->cluster_queue, name)) {
			queue->changed = true;
			tick_later(w);
		}
	}
}

static void cluster_queue_gone(struct world *w, struct cluster_queue *queue)
{
	cluster_queue_changed(w, queue->view->meta.name);
	{
		lock_scope(&w->lock);
		HASH_DEL(w->cluster_queues, queue);
	}
	spec_cluster_queue_view_unref(queue->view);
	free(queue);
}

static struct cluster_queue *find_cluster_queue(struct world *w, const char *name)
{
	struct cluster_queue *queue;

	HASH_FIND_STR(w->cluster_queues, name, queue);
	return queue;
}

/* VIEW is taken over. */
static void cluster_queue_seen(struct world *w, struct spec_cluster_queue_view *view)
{
	struct cluster_queue *queue = find_cluster_queue(w, view->meta.name);

	if (queue)
		cluster_queue_gone(w, queue);
	queue = new0(struct cluster_queue);
	queue->view = view;
	queue->round = w->rounds[WORLD_CLUSTER_QUEUES];
	{
		lock_scope(&w->lock);
		HASH_ADD_KEYPTR(hh, w->cluster_queues, view->meta.name, strlen(view->meta.name),
				queue);
	}
	cluster_queue_changed(w, view->meta.name);
}

static void cluster_queue_told(struct world *w, const char *json, size_t len, bool gone)
{
	struct spec_cluster_queue_view *view;
	struct cluster_queue *queue;
	int err = spec_cluster_queue_view_parse(json, len, &view);

	if (err) {
		cant_read("a ClusterQueue", err);
		return;
	}
	if (!gone) {
		cluster_queue_seen(w, view);
		return;
	}
	queue = find_cluster_queue(w, view->meta.name);
	if (queue && streq(queue->view->meta.uid, view->meta.uid))
		cluster_queue_gone(w, queue);
	spec_cluster_queue_view_unref(view);
}

static void cluster_queues_listed(struct world *w)
{
	struct cluster_queue *queue, *next;

	HASH_ITER(hh, w->cluster_queues, queue, next) {
		if (queue->round != w->rounds[WORLD_CLUSTER_QUEUES])
			cluster_queue_gone(w, queue);
	}
}

struct spec_cluster_queue_view *world_cluster_queue(struct world *w, const char *name)
{
	const struct cluster_queue *queue;
	lock_scope(&w->lock);

	queue = find_cluster_queue(w, name);
	return queue ? spec_cluster_queue_view_ref(queue->view) : NULL;
}

struct spec_queue_view *world_queue(struct world *w, const char *name)
{
	struct queue *queue;
	lock_scope(&w->lock);

	HASH_FIND_STR(w->queues, name, queue);
	return queue ? spec_queue_view_ref(queue->view) : NULL;
}

struct spec_queue_view **world_queues(struct world *w, size_t *ret_n)
{
	struct spec_queue_view **v;
	size_t n = 0;
	lock_scope(&w->lock);

	v = new0_n(struct spec_queue_view *, HASH_COUNT(w->queues));
	for (struct queue *queue = w->queues; queue; queue = queue->hh.next)
		v[n++] = spec_queue_view_ref(queue->view);
	*ret_n = n;
	return v;
}

/* --- objects that come --- */

void world_list_begins(struct world *w, enum world_sort sort)
{
	w->rounds[sort]++;
}

void world_told(struct world *w, enum world_sort sort, const char *json, size_t len, bool gone)
{
	switch (sort) {
	case WORLD_JOBS:
		return job_told(w, json, len, gone);
	case WORLD_PODS:
		return pod_told(w, json, len, gone);
	case WORLD_GROUPS:
		return group_told(w, json, len, gone);
	case WORLD_EVENTS:
		return event_told(w, json, len, gone);
	case WORLD_WORKLOADS:
		return workload_told(w, json, len, gone);
	case WORLD_CLUSTER_QUEUES:
		return cluster_queue_told(w, json, len, gone);
	default:
		return queue_told(w, sort, json, len, gone);
	}
}

void world_list_ends(struct world *w, enum world_sort sort)
{
	w->listed[sort] = true;
	switch (sort) {
	case WORLD_JOBS:
		return jobs_listed(w);
	case WORLD_PODS:
		return pods_listed(w);
	case WORLD_GROUPS:
		return groups_listed(w);
	case WORLD_EVENTS:
		return; /* events do not go (event_told) */
	case WORLD_WORKLOADS:
		return workloads_listed(w);
	case WORLD_CLUSTER_QUEUES:
		return cluster_queues_listed(w);
	default:
		return queues_listed(w, sort);
	}
}

void world_forget_sort(struct world *w, enum world_sort sort)
{
	world_list_begins(w, sort);
	world_list_ends(w, sort);
	w->listed[sort] = false;
}

/* --- what follows from time alone --- */

/* Report jobs that have waited for SPEC_PATIENCE as changed. True: some have not waited so long yet. */
static bool tell_patience(struct world *w)
{
	int64_t before = loop_time_ns() - SPEC_PATIENCE;
	bool more = false;

	for (struct job *job = w->jobs; job; job = job->hh.next) {
		struct pod_group *group = job->waits ? find_job_group(w, job->j.uid) : NULL;
		bool over = false;

		if (job->j.view && !job->waited && job->waits)
			over = job->waited = job->j.since <= before;
		if (group && !group->waited)
			over |= group->waited = group->view->seen <= before;
		if (over)
			changed(job);
		more |= job->waits && (!job->waited || (group && !group->waited));
	}
	return more;
}

/* Report the jobs that wait in a queue that has changed. */
static void tell_queues(struct world *w)
{
	for (struct job *job = w->jobs; job; job = job->hh.next) {
		struct queue *queue = NULL;

		if (job->j.view && job->waits)
			HASH_FIND_STR(w->queues, job->j.view->queue, queue);
		if (queue && queue->changed)
			changed(job);
	}
	for (struct queue *queue = w->queues; queue; queue = queue->hh.next)
		queue->changed = false;
}

static void on_tick(void *data)
{
	struct world *w = data;

	loop_timer_free(take_ptr(w->tick));
	tell_queues(w);
	if (tell_patience(w))
		tick_later(w);
}

static void tick_later(struct world *w)
{
	if (!w->tick && !w->stopped)
		w->tick = loop_timer_new(w->loop, TICK_MS, 0, on_tick, w);
}

void world_set_waiting(const struct world_job *job, bool waits)
{
	container_of(job, struct job, j)->waits = waits;
}

void world_waiting_changed(struct world *w)
{
	for (struct job *job = w->jobs; job; job = job->hh.next)
		if (job->waits)
			changed(job);
}

/* --- what is known --- */

void world_set_confirmed(struct world *w, enum world_sort sort, bool confirmed)
{
	w->confirmed[sort] = confirmed;
}

bool world_is_confirmed(const struct world *w, enum world_sort sort)
{
	return w->confirmed[sort];
}

const struct world_job *world_find(const struct world *w, const char *uid)
{
	const struct job *job = find_job(w, uid);

	return job ? &job->j : NULL;
}

void world_each(struct world *w, void (*fn)(void *data, const struct world_job *job), void *data)
{
	struct job *job, *next;

	HASH_ITER(hh, w->jobs, job, next)
		fn(data, &job->j);
}

const struct spec_pod_view **world_pods(const struct world_job *job, size_t *ret_n)
{
	const struct job *of = container_of(job, struct job, j);
	const struct spec_pod_view **v =
		new0_n(const struct spec_pod_view *, of->j.n_pods + of->n_gone);
	const struct pod *pod;
	size_t n = 0;

	DL_FOREACH(of->pods, pod)
		v[n++] = pod->view;
	*ret_n = n;
	return v;
}

const struct spec_pod_view *world_pod(const struct world *w, const char *job, const char *uid,
				      size_t n)
{
	const struct pod *pod;

	HASH_FIND(hh, w->pods, uid, n, pod);
	return pod && streq(pod->job->j.uid, job) ? pod->view : NULL;
}

const struct spec_group_view *world_group(const struct world *w, const struct world_job *job)
{
	const struct pod_group *group = find_job_group(w, job->uid);

	return group ? group->view : NULL;
}

struct spec_kueue_facts world_kueue(const struct world *w, const struct world_job *job)
{
	const struct workload *workload = find_job_workload(w, job->uid);
	const struct world_job *by = workload ? world_find(w, workload->view->preemptor) : NULL;

	return (struct spec_kueue_facts){
		.known = world_is_confirmed(w, WORLD_WORKLOADS),
		.workload = workload ? workload->view : NULL,
		.preemptor = by && by->view ? by->view->meta.name : NULL,
		.place = container_of(job, const struct job, j)->place,
	};
}

void world_set_places(struct world *w, const char *name, const struct spec_place *v, size_t n)
{
	for (struct job *job = w->jobs; job; job = job->hh.next) {
		unsigned place;

		if (!job->j.view || !streq(job->j.view->queue, name))
			continue;
		place = spec_places_find(v, n, job->j.uid);
		if (job->place == place)
			continue;
		job->place = place;
		changed(job);
	}
}

size_t world_n_pods(const struct world *w)
{
	return atomic_load(&w->n_pods);
}

/* --- life --- */

void world_forget(const struct world_job *j)
{
	struct job *job = container_of(j, struct job, j);
	struct pod *pod, *next;

	DL_FOREACH_SAFE(job->pods, pod, next)
		pod_free(pod);
	events_forget(job->w->events, job->j.uid);
	HASH_DEL(job->w->jobs, job);
	spec_job_view_free(job->j.view);
	spec_text_unref(job->j.object);
	free(job->j.uid);
	free(job);
}

struct world *world_new(struct loop *loop, const struct world_events *events)
{
	struct world *w = new0(struct world);

	w->loop = loop;
	w->callbacks = *events;
	w->events = events_new();
	w->lock = (struct lock)LOCK_INIT;
	return w;
}

void world_set_kind(struct world *w, const struct spec_kind *kind)
{
	w->kind = kind;
}

const struct spec_kind *world_kind(const struct world *w)
{
	return w->kind;
}

void world_stop(struct world *w)
{
	w->stopped = true;
	loop_timer_free(take_ptr(w->tick));
}

void world_free(struct world *w)
{
	struct job *job, *next_job;
	struct pod_group *group, *next_group;
	struct workload *workload, *next_workload;
	struct cluster_queue *cluster, *next_cluster;
	struct queue *queue, *next_queue;

	if (!w)
		return;
	HASH_ITER(hh, w->jobs, job, next_job)
		world_forget(&job->j);
	HASH_ITER(hh, w->groups, group, next_group)
		group_free(w, group);
	HASH_ITER(hh, w->workloads, workload, next_workload)
		workload_free(w, workload);
	HASH_ITER(hh, w->queues, queue, next_queue)
		queue_gone(w, queue);
	HASH_ITER(hh, w->cluster_queues, cluster, next_cluster)
		cluster_queue_gone(w, cluster);
	events_free(w->events);
	free(w);
}
