/* SPDX-License-Identifier: MIT */
/*
 * struct world has tables of jobs and pods by uid, the events of jobs (events.h), and tables of all
 * other watched objects. types[] has the functions for each type of these other objects.
 *
 * Lists are numbered (rounds), and each object has the number of the last list that contained it.
 * When a list ends, the world removes objects with an older number. The world keeps at most
 * SPEC_MAX_LISTED objects of a type. It passes over (ignores) additional objects. If there is space
 * later, the world adds such an object when it changes or is listed again.
 *
 * Queues and groups change only the reason why a job waits. A queue changes whenever a pod of its
 * jobs starts. So when a queue has changed, the world reports the jobs that wait in it only when
 * the timer TICK fires. Then it also reports each waiting job that has been known for
 * SPEC_SETTLE_NS, or whose group has, because `why` may now report that something is missing.
 *
 * The file is long because the tables depend on each other: pods, objects and events may arrive
 * before their jobs.
 */
#include "backend/kube/world.h"

#include <errno.h>
#include <stdatomic.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "spec/api/object.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"

#define PASSED_MAX 1000 /* the largest size of world.passed */
#define GONE_MAX   4096 /* the largest number of deleted pods of a job; they show how runs ended */
#define TICK_MS	   5000
#define MAX_LINKS  4 /* the largest number of parts between a pod and its job */
/* the largest number of deleted parts, which kxfs keeps because their pods may still change */
#define PAST_MAX 10000

struct pod {
	struct spec_pod_view *view;
	char *json; /* VIEW's JSON, to parse it again when the job becomes known; otherwise NULL */
	struct job *job;
	unsigned round;
	struct pod *prev, *next; /* in the list of the job's pods */
	UT_hash_handle hh;	 /* by uid */
	/* Used while the pod is in the cluster. During a list two pods can have the same name. */
	UT_hash_handle by_name;
};

struct job {
	struct world_job j;
	struct world *w;
	struct pod *pods; /* the job's pods; deleted pods are at the end, the oldest first */
	size_t n_gone;
	size_t n_open;	   /* number of pods in PODS whose job is not known yet */
	unsigned position; /* the job's position in its Kueue queue; 0 if unknown */
	bool waits;	   /* true if the last snapshot shows that the job waits for its start */
	bool waited;	   /* true if SPEC_SETTLE_NS has passed since the job was first seen */
	/*
	 * Normally NULL. J.uid may be the uid of an unknown part of a job. LOG_JOB is then the uid
	 * of the job to which the logs of PODS belong. The caller of world_pod has passed this uid.
	 */
	char *log_job;
	UT_hash_handle hh; /* by uid */
};

/* A watched object other than jobs, pods and events. */
struct object {
	const struct type_ops *type;
	void *view;
	const struct spec_meta *meta; /* the metadata in VIEW */
	unsigned round;
	bool waited;	   /* true for a group that was first seen more than SPEC_SETTLE_NS ago */
	bool changed;	   /* true for a queue if the world must report the jobs that wait in it */
	UT_hash_handle hh; /* by uid; by name if type_ops.by_name is true */
	UT_hash_handle hh_owner; /* by the uid of its owner */
};

struct type_ops {
	const char *what; /* the name of the type, for messages */
	int (*parse)(const char *json, size_t len, void **ret);
	void (*unref)(void *view);
	size_t meta;	       /* the offset of struct spec_meta in the view */
	enum world_type table; /* index in objects[]; some types share a table */
	bool by_name;	       /* true if the key is the name; false if it is the uid */
	bool owned;	       /* true if the world ignores objects without a controller */
	/* True if a job may show a difference between OLD and NOW. NULL if every change counts. */
	bool (*differs)(struct world *w, struct object *now, const struct object *old);
	/* Report the jobs that change. OLD is NULL for a new object, NOW after a deletion. */
	void (*report)(struct world *w, struct object *now, const struct object *old);
};

/* An object that the world does not show, because it can't be parsed or exceeds a limit. */
struct passed {
	char *uid; /* the uid of the object, or its name if the uid can't be read */
	enum world_type type;
	unsigned round;
	UT_hash_handle hh; /* by uid */
};

/* LISTING: the first list of a type is in progress. RELISTING: a later list is in progress. */
enum listing { UNLISTED, LISTING, LISTED, RELISTING };

struct world {
	world_changed_fn changed;
	void *data;
	/* The index of KINDS and REFUSED is the type minus WORLD_JOBS. */
	const struct spec_kind *_Atomic kinds[SPEC_MAX_KINDS];
	const struct spec_kind *refused[SPEC_MAX_KINDS];
	const struct spec_reader *readers[SPEC_MAX_KINDS];
	size_t n_readers;
	const struct spec_part *_Atomic parts[SPEC_MAX_PARTS]; /* index: type minus WORLD_PARTS */
	unsigned settling; /* number of nested calls of settle() */
	unsigned rounds[WORLD_N_TYPES];
	enum listing _Atomic listing[WORLD_N_TYPES];
	enum world_watch_status _Atomic statuses[WORLD_N_TYPES];
	struct job *jobs;
	struct pod *pods, *named;
	struct pod *gone; /* deleted pods, by uid; a deleted Spark driver may own executors */
	struct object *objects[WORLD_N_TYPES]; /* tables, indexed by type_ops.table */
	struct object *owned[WORLD_N_TYPES];   /* objects with type_ops.owned, by owner's uid */
	struct object *past; /* hash table of deleted parts by uid; the oldest is first */
	struct events *events;
	struct passed *passed;
	struct loop_timer tick; /* runs while the world must report a job later */
	bool stopped;
	bool kueue[WORLD_N_KUEUE];
	/* true if a queue was deleted; the tick then reports jobs whose queue is unknown */
	bool queue_gone;
	struct lock lock; /* protects OBJECTS; only the I/O thread changes OBJECTS */
	/*
	 * The index is the type. True if kxfs has logged, since the last list of this type began,
	 * that the world has too many objects of this type.
	 */
	bool full[WORLD_N_TYPES];
	size_t n_live;	     /* number of jobs in the cluster */
	unsigned n_passings; /* number of calls of world_pass_over */
	atomic_size_t n_pods, n_passed;
};

static const struct type_ops types[WORLD_N_TYPES];

static struct job *find_job(const struct world *w, const char *uid)
{
	struct job *job;

	HASH_FIND_STR(w->jobs, uid, job);
	return job;
}

static void changed(struct job *job)
{
	struct world *w = job->w;
	struct job *of = job->log_job && !job->j.view ? find_job(w, job->log_job) : NULL;

	w->changed(w->data, &job->j);
	if (of)
		w->changed(w->data, &of->j);
}

static void tick_later(struct world *w);

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

static size_t n_kept(const struct world *w, enum world_type type)
{
	return world_is_of_jobs(type) ? w->n_live
	       : type == WORLD_PODS   ? HASH_COUNT(w->pods)
				      : HASH_COUNT(w->objects[types[type].table]);
}

static bool is_listing(const struct world *w, enum world_type type)
{
	return w->listing[type] == LISTING || w->listing[type] == RELISTING;
}

/* If W has too many objects of TYPE, pass over the new object in JSON, and return true. */
static bool is_full(struct world *w, enum world_type type, const char *json, size_t len, bool gone)
{
	/* during a list, deleted objects of earlier lists remain, so allow more */
	size_t most = is_listing(w, type) ? 2 * SPEC_MAX_LISTED : SPEC_MAX_LISTED;

	if (n_kept(w, type) < most)
		return false;
	world_pass_over(w, type, json, len, gone, -ENOSPC);
	return true;
}

static struct object *find_object(const struct world *w, enum world_type table, const char *key)
{
	struct object *object;

	HASH_FIND_STR(w->objects[table], key, object);
	return object;
}

static struct object *find_owned(const struct world *w, enum world_type type, const char *owner)
{
	struct object *object;

	HASH_FIND(hh_owner, w->owned[type], owner, strlen(owner), object);
	return object;
}

/* --- owners --- */

/*
 * True if a job of another shown kind owns VIEW. Set *RET_LINK to true if VIEW's pods belong to
 * this other job, otherwise to false.
 */
static bool is_part(const struct world *w, enum world_type type, const struct spec_job_view *view,
		    bool *ret_link)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS], *own = world_kind(w, type);
	size_t n = *view->meta.owner_uid && own ? world_kinds(w, kinds) : 0;
	bool ret = false;

	*ret_link = false;
	for (size_t i = 0; n > 1 && i < n; i++) {
		*ret_link |= spec_kind_links(kinds[i], own, view);
		ret |= *ret_link || spec_kind_makes(kinds[i], view);
	}
	return ret;
}

/*
 * Return the uid of the owner of the object UID. For a pod, return the uid of its job. Return NULL
 * if the object is unknown.
 */
static const char *next_of(const struct world *w, const char *uid)
{
	static const enum world_type tables[] = {WORLD_PARTS, WORLD_GROUPS, WORLD_WORKLOADS};
	const struct object *object = NULL;
	const struct pod *pod;

	HASH_FIND_STR(w->pods, uid, pod);
	if (!pod)
		HASH_FIND_STR(w->gone, uid, pod);
	if (pod)
		return pod->job->j.uid;
	for (size_t i = 0; i < array_size(tables) && !object; i++)
		object = find_object(w, tables[i], uid);
	if (!object)
		HASH_FIND_STR(w->past, uid, object);
	return object ? object->meta->owner_uid : NULL;
}

/*
 * Return the uid of the job to which the object UID belongs. If an owner between them is unknown,
 * return the uid of this owner. If there are too many owners, or they form a circle, return UID.
 */
static const char *resolve(const struct world *w, const char *uid)
{
	const char *at = uid;

	for (int links = 0; links <= MAX_LINKS; links++) {
		const struct job *job = find_job(w, at);
		const char *next;
		bool link;

		if (job && job->j.view && !is_part(w, job->j.type, job->j.view, &link))
			return at;
		next = next_of(w, at);
		if (!next)
			return at;
		at = next;
	}
	return uid;
}

/* Return the reader of the job to which the object UID belongs, or NULL if the job is unknown. */
static const struct spec_reader *reader_of(void *data, const char *uid)
{
	const struct world *w = data;
	const struct job *job = find_job(w, resolve(w, uid));
	bool link;

	return job && job->j.view && !is_part(w, job->j.type, job->j.view, &link)
		       ? job->j.kind->reader
		       : NULL;
}

/* Return the job to which the object ABOUT belongs, or NULL if this job is unknown. */
static struct job *job_about(struct world *w, const char *about)
{
	struct job *job = find_job(w, resolve(w, about));

	return job && !job->n_open ? job : NULL;
}

static bool is_about(void *data, const char *about)
{
	struct job *job = data;

	return job_about(job->w, about) == job;
}

/* Move the waiting events about JOB to JOB. Call this when kxfs has found another object of JOB. */
static void adopt_events(struct job *job)
{
	if (events_adopt(job->w->events, job->j.uid, is_about, job))
		changed(job);
}

static void settle(struct world *w, const char *uid);
static void on_object(struct world *w, enum world_type type, const char *json, size_t len,
		      bool gone);

/* --- jobs --- */

/* Parse JSON as a job of TYPE. Return NULL if that fails, or if TYPE's kind was removed. */
static struct spec_job_view *read_job(struct world *w, enum world_type type, const char *json,
				      size_t len, bool gone)
{
	const struct spec_kind *kind = world_kind(w, type);
	struct spec_job_view *view;
	int err = 0;

	if (!kind)
		return NULL;
	err = spec_job_view_parse(kind->reader, json, len, &view);
	if (err)
		world_pass_over(w, type, json, len, gone, err);
	return err ? NULL : view;
}

static void job_first_seen(struct job *job, const struct spec_job_view *view)
{
	struct world *w = job->w;

	job->j.since = world_has_listed(w, job->j.type) ? loop_time_ns() : view->meta.created;
	job->waits = true;
	tick_later(w);
}

/*
 * Put VIEW, which was parsed from JSON, into the table. Take ownership of VIEW. Return NULL if the
 * world ignores VIEW.
 */
static struct job *take_job(struct world *w, enum world_type type, struct spec_job_view *view,
			    const char *json, size_t len)
{
	struct job *job = need_job(w, view->meta.uid);
	bool first = !job->j.view;

	if (job->j.view && !streq(job->j.view->meta.name, view->meta.name)) {
		diag(DIAG_WARNING,
		     "the server reports job %s under a second name, %s; kxfs ignores the second "
		     "name",
		     job->j.view->meta.name, view->meta.name);
		spec_job_view_free(view);
		return NULL;
	}
	w->n_live += !job->j.view || job->j.gone;
	job->j.kind = world_kind(w, type);
	job->j.type = type;
	if (first)
		job_first_seen(job, view);
	else if (!streq(job->j.view->queue, view->queue))
		job->position = 0;
	spec_job_view_free(job->j.view);
	spec_text_unref(job->j.object);
	job->j.view = view;
	job->j.object = spec_text_new(json, len);
	job->j.round = w->rounds[type];
	job->j.gone = false; /* a job is back when its labels match the selector again */
	if (first) {
		settle(w, job->j.uid);
		adopt_events(job);
	}
	changed(job);
	return job;
}

const struct world_job *world_reply(struct world *w, enum world_type type, const char *json,
				    size_t len, const char *watched)
{
	struct spec_job_view *view = read_job(w, type, json, len, false);
	struct job *job = view ? find_job(w, view->meta.uid) : NULL;
	bool known = job && job->j.view;

	if (!view)
		return NULL;
	if (!spec_version_is_up_to(view->resource_version,
				   known ? job->j.view->resource_version : watched)) {
		job = take_job(w, type, view, json, len);
		return job ? &job->j : NULL;
	}
	spec_job_view_free(view);
	return known && !job->j.gone ? &job->j : NULL;
}

/*
 * True if VIEW, from a watch, is older than a version that an earlier reply contained. Never true
 * during a list, because a server that was restored from a backup may use lower versions again.
 */
static bool is_late(struct world *w, enum world_type type, const struct spec_job_view *view)
{
	const struct job *job = find_job(w, view->meta.uid);
	const char *version = view->resource_version;

	return job && job->j.view && !job->j.gone && !is_listing(w, type) &&
	       !streq(version, job->j.view->resource_version) &&
	       spec_version_is_up_to(version, job->j.view->resource_version);
}

static void job_gone(struct job *job)
{
	job->w->n_live -= !job->j.gone;
	job->j.gone = true;
	changed(job);
}

static void on_job(struct world *w, enum world_type type, const char *json, size_t len, bool gone)
{
	struct spec_job_view *view = read_job(w, type, json, len, gone);
	struct job *job;
	bool link = false;

	if (!view)
		return;
	job = find_job(w, view->meta.uid);
	if (is_part(w, type, view, &link) || (!gone && is_late(w, type, view)) ||
	    (!(job && job->j.view && !job->j.gone) && is_full(w, type, json, len, gone))) {
		spec_job_view_free(view);
		if (link)
			on_object(w, type, json, len, gone);
		return;
	}
	job = take_job(w, type, view, json, len);
	if (job && gone)
		job_gone(job);
}

/* --- pods --- */

static void pod_leaves_table(struct pod *pod)
{
	struct world *w = pod->job->w;

	HASH_DEL(w->pods, pod);
	HASH_DELETE(by_name, w->named, pod);
	pod->job->j.n_pods--;
	atomic_store(&w->n_pods, HASH_COUNT(w->pods));
}

static void set_json(struct pod *pod, char *json)
{
	pod->job->n_open += !!json;
	pod->job->n_open -= !!pod->json;
	free(pod->json);
	pod->json = json;
}

static void pod_leaves(struct pod *pod)
{
	struct job *job = pod->job;

	job->n_gone -= pod->view->gone;
	if (pod->view->gone)
		HASH_DEL(job->w->gone, pod);
	else
		pod_leaves_table(pod);
	DL_DELETE(job->pods, pod);
	job->n_open -= !!pod->json;
}

static void pod_free(struct pod *pod)
{
	pod_leaves(pod);
	spec_pod_view_free(pod->view);
	free(pod->json);
	free(pod);
}

static void pod_gone(struct pod *pod)
{
	struct job *job = pod->job;
	struct pod *old, *next;

	pod_leaves_table(pod);
	pod->view->gone = true;
	job->n_gone++;
	HASH_ADD_KEYPTR(hh, job->w->gone, pod->view->meta.uid, strlen(pod->view->meta.uid), pod);
	DL_DELETE(job->pods, pod);
	DL_APPEND(job->pods, pod);
	DL_FOREACH_SAFE(job->pods, old, next) {
		if (job->n_gone <= GONE_MAX && HASH_COUNT(job->w->gone) <= SPEC_MAX_LISTED)
			break;
		if (old->view->gone)
			pod_free(old);
	}
	changed(job);
}

/* Put VIEW, which was parsed from JSON, into the tables. Take ownership of VIEW. */
static struct pod *pod_seen(struct world *w, struct spec_pod_view *view, const char *json)
{
	struct pod *pod;
	bool first;

	HASH_FIND_STR(w->pods, view->meta.uid, pod);
	first = !pod || pod->json;
	if (pod) {
		/* Remove POD first, because strings of the old view are keys in the tables. */
		HASH_DEL(w->pods, pod);
		HASH_DELETE(by_name, w->named, pod);
		spec_pod_view_inherit(view, pod->view);
		spec_pod_view_free(pod->view);
	} else {
		pod = new0(struct pod);
		pod->job = need_job(w, resolve(w, view->meta.owner_uid));
		pod->job->j.n_pods++;
		DL_PREPEND(pod->job->pods, pod);
	}
	pod->view = view;
	pod->round = w->rounds[WORLD_PODS];
	HASH_ADD_KEYPTR(hh, w->pods, view->meta.uid, strlen(view->meta.uid), pod);
	HASH_ADD_KEYPTR(by_name, w->named, view->meta.name, strlen(view->meta.name), pod);
	atomic_store(&w->n_pods, HASH_COUNT(w->pods));
	set_json(pod, view->owner == SPEC_OWNER_OPEN ? text_copy(json) : NULL);
	if (first)
		adopt_events(pod->job);
	changed(pod->job);
	return pod;
}

/* True if VIEW shows that POD belongs to another job than before. POD may be NULL. */
static bool pod_moves(const struct world *w, const struct pod *pod,
		      const struct spec_pod_view *view)
{
	const char *uid = pod ? resolve(w, view->meta.owner_uid) : NULL;
	const struct job *job = pod ? find_job(w, uid) : NULL;

	if (!pod || streq(uid, pod->job->j.uid))
		return false;
	/* a pod moves from a known job to an unknown one only if its owner has changed */
	return (job && job->j.view) || !pod->job->j.view ||
	       !streq(pod->view->meta.owner_uid, view->meta.owner_uid);
}

static void on_pod(struct world *w, const char *json, size_t len, bool gone)
{
	struct spec_pod_view *view;
	struct pod *pod;
	const struct spec_pod_readers readers = {w->readers, w->n_readers, reader_of, w};
	int err = spec_pod_view_parse(&readers, json, len, &view);

	if (err) {
		world_pass_over(w, WORLD_PODS, json, len, gone, err);
		return;
	}
	HASH_FIND_STR(w->pods, view->meta.uid, pod);
	if (!*view->meta.owner_uid || (gone && !pod) ||
	    (!pod && is_full(w, WORLD_PODS, json, len, gone))) {
		spec_pod_view_free(view);
		return;
	}
	if (pod_moves(w, pod, view))
		pod_gone(pod);
	/* Take VIEW even if the pod was deleted, because VIEW shows how the pod has ended. */
	pod = pod_seen(w, view, json);
	if (gone)
		pod_gone(pod);
	else
		settle(w, view->meta.uid);
}

/* Parse the JSON of OLD again. OLD must not be in any table. */
static void read_again(struct world *w, struct pod *old)
{
	struct pod *pod;

	on_pod(w, old->json, strlen(old->json), false);
	HASH_FIND_STR(w->pods, old->view->meta.uid, pod);
	if (pod) {
		spec_pod_view_inherit(pod->view, old->view);
		pod->round = old->round;
	}
	if (pod && old->view->gone)
		pod_gone(pod);
}

/* Parse the pods stored under UID again, if the job to which UID belongs is known now. */
static void settle(struct world *w, const char *uid)
{
	struct job *job = find_job(w, uid);
	struct pod *pod, *next, *open = NULL;

	if (!job || !job->n_open || w->settling == MAX_LINKS ||
	    (!job->j.view && streq(resolve(w, uid), uid)))
		return;
	DL_FOREACH_SAFE(job->pods, pod, next) {
		if (!pod->json)
			continue;
		pod_leaves(pod);
		DL_APPEND(open, pod);
	}
	changed(job);
	w->settling++;
	DL_FOREACH_SAFE(open, pod, next) {
		read_again(w, pod);
		spec_pod_view_free(pod->view);
		free(pod->json);
		free(pod);
	}
	w->settling--;
}

static struct spec_pod_view *pod_called(void *data, const char *name)
{
	const struct world *w = data;
	struct pod *pod;

	HASH_FIND(by_name, w->named, name, strlen(name), pod);
	return pod ? pod->view : NULL;
}

const struct world_job *world_sample(struct world *w, const char *json, size_t len)
{
	const struct spec_pod_view *view = spec_pod_view_sample(json, len, pod_called, w);
	struct pod *pod = NULL;

	if (view)
		HASH_FIND_STR(w->pods, view->meta.uid, pod);
	return pod ? &pod->job->j : NULL;
}

static void pods_listed(struct world *w)
{
	struct pod *pod, *next;

	HASH_ITER(hh, w->pods, pod, next) {
		if (pod->round != w->rounds[WORLD_PODS])
			pod_gone(pod);
	}
}

/* --- other objects --- */

static const char *key_of(const struct object *object)
{
	return object->type->by_name ? object->meta->name : object->meta->uid;
}

static enum world_type type_of(const struct object *object)
{
	return (enum world_type)(object->type - types);
}

static void object_free(struct object *object)
{
	object->type->unref(object->view);
	free(object);
}

/*
 * If a job has two objects of a type, w->owned has only the object that has arrived later. The
 * cluster will soon delete the other one.
 */
static void enter_table(struct world *w, struct object *object)
{
	struct object **table = &w->objects[object->type->table],
		      **owned = &w->owned[type_of(object)];
	const char *key = key_of(object), *owner = object->meta->owner_uid;
	struct object *other = object->type->owned ? find_owned(w, type_of(object), owner) : NULL;
	lock_scope(&w->lock);

	HASH_ADD_KEYPTR(hh, *table, key, strlen(key), object);
	if (other)
		HASH_DELETE(hh_owner, *owned, other);
	if (object->type->owned)
		HASH_ADD_KEYPTR(hh_owner, *owned, owner, strlen(owner), object);
}

static void leave_table(struct world *w, struct object *object)
{
	struct object **owned = &w->owned[type_of(object)];
	lock_scope(&w->lock);

	HASH_DEL(w->objects[object->type->table], object);
	if (find_owned(w, type_of(object), object->meta->owner_uid) == object)
		HASH_DELETE(hh_owner, *owned, object);
}

static void object_gone(struct world *w, struct object *object)
{
	struct object *oldest = w->past;

	leave_table(w, object);
	object->type->report(w, NULL, object);
	if (object->type->table != WORLD_PARTS) {
		object_free(object);
		return;
	}
	if (HASH_COUNT(w->past) == PAST_MAX) {
		HASH_DEL(w->past, oldest);
		object_free(oldest);
	}
	HASH_ADD_KEYPTR(hh, w->past, object->meta->uid, strlen(object->meta->uid), object);
}

static void on_object(struct world *w, enum world_type type, const char *json, size_t len,
		      bool gone)
{
	const struct type_ops *s = &types[type];
	struct object *now, *old;
	void *view;
	int err = s->parse(json, len, &view);

	if (err) {
		world_pass_over(w, type, json, len, gone, err);
		return;
	}
	now = new0(struct object);
	now->type = s;
	now->view = view;
	now->meta = (const struct spec_meta *)((const char *)view + s->meta);
	now->round = w->rounds[type];
	old = find_object(w, s->table, key_of(now));
	if (gone || (s->owned && !*now->meta->owner_uid)) {
		/* If OLD is a newer object with the same name, keep OLD. */
		if (old && streq(old->meta->uid, now->meta->uid))
			object_gone(w, old);
		object_free(now);
	} else if (!old && is_full(w, type, json, len, gone)) {
		object_free(now);
	} else if (s->differs && !s->differs(w, now, old)) {
		old->type = s;
		old->round = now->round;
		object_free(now);
	} else {
		if (old)
			leave_table(w, old);
		enter_table(w, now);
		s->report(w, now, old);
		if (old)
			object_free(old);
	}
}

static void objects_listed(struct world *w, enum world_type type)
{
	struct object *object, *next;

	HASH_ITER(hh, w->objects[types[type].table], object, next) {
		if (type_of(object) == type && object->round != w->rounds[type])
			object_gone(w, object);
	}
}

/* --- the types of other objects --- */

/*
 * Return the time in ns when kxfs first saw OBJECT. If the first list contains OBJECT, return its
 * creation time.
 */
static int64_t first_seen(const struct world *w, const struct object *object)
{
	return world_has_listed(w, type_of(object)) ? loop_time_ns() : object->meta->created;
}

static bool group_differs(struct world *w, struct object *now, const struct object *old)
{
	struct spec_group_view *view = now->view;

	view->seen = old ? ((const struct spec_group_view *)old->view)->seen : first_seen(w, now);
	now->waited = old && old->waited;
	if (!now->waited)
		tick_later(w);
	return true;
}

static void owned_report(struct world *w, struct object *now, const struct object *old)
{
	const char *owner = (now ? now : old)->meta->owner_uid;
	struct job *job = find_job(w, owner);

	/* OWNER may be an object that kxfs does not show. For example, a TrainJob owns a JobSet. */
	for (struct job *other = job ? NULL : w->jobs; other; other = other->hh.next)
		if (other->j.view && streq(other->j.view->meta.owner_uid, owner))
			changed(other);
	if (!job)
		return;
	if (!old)
		adopt_events(job);
	changed(job);
}

static void part_report(struct world *w, struct object *now, const struct object *old)
{
	struct job *job;

	if (!now)
		return;
	settle(w, now->meta->uid);
	job = job_about(w, now->meta->uid);
	if (!old && job)
		adopt_events(job);
}

static bool queue_differs(struct world *w, struct object *now, const struct object *old)
{
	struct spec_queue_view *view = now->view;

	view->changed = first_seen(w, now);
	return !old || !spec_queue_view_same(old->view, view);
}

static void queue_report(struct world *w, struct object *now, const struct object *old)
{
	if (!now)
		w->queue_gone = true;
	else if (old || world_has_listed(w, type_of(now)))
		now->changed = true;
	else
		return;
	tick_later(w);
}

/* Jobs in the LocalQueues of a ClusterQueue may wait because of the ClusterQueue. */
static void cluster_queue_report(struct world *w, struct object *now, const struct object *old)
{
	const char *name = (now ? now : old)->meta->name;

	for (struct object *queue = w->objects[WORLD_LOCAL_QUEUES]; queue; queue = queue->hh.next) {
		const struct spec_queue_view *view = queue->view;

		if (streq(view->kueue->cluster_queue, name)) {
			queue->changed = true;
			tick_later(w);
		}
	}
}

/* Define NAME_parse and NAME_unref for a row of types[] whose views are struct TYPE. */
#define VIEW(name, type, parse, unref)                                                             \
	static int name##_parse(const char *json, size_t len, void **ret)                          \
	{                                                                                          \
		struct type *view = NULL;                                                          \
		int err = parse(json, len, &view);                                                 \
		*ret = view;                                                                       \
		return err;                                                                        \
	}                                                                                          \
	static void name##_unref(void *view)                                                       \
	{                                                                                          \
		unref(view);                                                                       \
	}

VIEW(part, spec_meta, spec_meta_parse, spec_meta_free)
VIEW(group, spec_group_view, spec_group_view_parse, spec_group_view_free)
VIEW(workload, spec_workload_view, spec_workload_view_parse, spec_workload_view_free)
VIEW(queue, spec_queue_view, spec_queue_view_parse, spec_queue_view_unref)
VIEW(kueue_queue, spec_queue_view, spec_kueue_queue_parse, spec_queue_view_unref)

static const struct type_ops types[WORLD_N_TYPES] = {
	[WORLD_GROUPS] = {"PodGroup", group_parse, group_unref,
			  offsetof(struct spec_group_view, meta), WORLD_GROUPS, .owned = true,
			  .differs = group_differs, .report = owned_report},
	[WORLD_WORKLOADS] = {"Workload", workload_parse, workload_unref,
			     offsetof(struct spec_workload_view, meta), WORLD_WORKLOADS,
			     .owned = true, .report = owned_report},
	[WORLD_QUEUES] = {"Queue", queue_parse, queue_unref, offsetof(struct spec_queue_view, meta),
			  WORLD_QUEUES, .by_name = true, .differs = queue_differs,
			  .report = queue_report},
	[WORLD_OWN_QUEUE] = {"Queue", queue_parse, queue_unref,
			     offsetof(struct spec_queue_view, meta), WORLD_QUEUES, .by_name = true,
			     .differs = queue_differs, .report = queue_report},
	[WORLD_LOCAL_QUEUES] = {"LocalQueue", kueue_queue_parse, kueue_queue_unref,
				offsetof(struct spec_queue_view, meta), WORLD_LOCAL_QUEUES,
				.by_name = true, .differs = queue_differs, .report = queue_report},
	[WORLD_CLUSTER_QUEUES] = {"ClusterQueue", kueue_queue_parse, kueue_queue_unref,
				  offsetof(struct spec_queue_view, meta), WORLD_CLUSTER_QUEUES,
				  .by_name = true, .report = cluster_queue_report},
	/* This table also contains the jobs that are parts of other jobs. */
	[WORLD_PARTS... WORLD_N_TYPES - 1] = {"part", part_parse, part_unref, 0, WORLD_PARTS,
					      .owned = true, .report = part_report},
};

/* --- events --- */

static void on_event(struct world *w, const char *json, size_t len, bool gone)
{
	struct spec_event_view *view;
	struct job *job;
	int err;

	/* the server deletes events after an hour, but they still describe what happened */
	if (gone)
		return;
	err = spec_event_view_parse(json, len, &view);
	if (err) {
		/* -EINVAL: the event is about an object that kxfs does not show */
		if (err != -EINVAL)
			world_pass_over(w, WORLD_EVENTS, json, len, gone, err);
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

enum world_type world_queues_of(const struct spec_kind *kind)
{
	return kind->in_kueue ? WORLD_LOCAL_QUEUES : WORLD_QUEUES;
}

struct spec_queue_view *world_queue(struct world *w, enum world_type type, const char *name)
{
	const struct object *queue;
	lock_scope(&w->lock);

	queue = find_object(w, type, name);
	return queue ? spec_queue_view_ref(queue->view) : NULL;
}

struct spec_queue_view **world_queues(struct world *w, size_t *ret_n)
{
	struct spec_queue_view **v;
	size_t n = 0;
	lock_scope(&w->lock);

	v = new0_n(struct spec_queue_view *, HASH_COUNT(w->objects[WORLD_QUEUES]) +
						     HASH_COUNT(w->objects[WORLD_LOCAL_QUEUES]));
	for (struct object *queue = w->objects[WORLD_QUEUES]; queue; queue = queue->hh.next)
		v[n++] = spec_queue_view_ref(queue->view);
	for (struct object *queue = w->objects[WORLD_LOCAL_QUEUES]; queue; queue = queue->hh.next)
		if (!find_object(w, WORLD_QUEUES, queue->meta->name))
			v[n++] = spec_queue_view_ref(queue->view);
	*ret_n = n;
	return v;
}

/* --- objects that are passed over --- */

static void unpass(struct world *w, struct passed *passed)
{
	HASH_DEL(w->passed, passed);
	atomic_store(&w->n_passed, HASH_COUNT(w->passed));
	free(passed->uid);
	free(passed);
}

/* The new version of an object can't be read. Keep the old version, or, if GONE, remove it. */
static void keep_known(struct world *w, enum world_type type, const char *uid, const char *name,
		       bool gone)
{
	struct job *job = world_is_of_jobs(type) ? find_job(w, uid) : NULL;
	struct object *object = find_object(w, types[type].table, types[type].by_name ? name : uid);
	struct pod *pod = NULL;

	if (type == WORLD_PODS)
		HASH_FIND_STR(w->pods, uid, pod);
	if (job) {
		job->j.round = w->rounds[type];
		if (gone && job->j.view)
			job_gone(job);
	}
	if (pod) {
		pod->round = w->rounds[type];
		if (gone)
			pod_gone(pod);
	}
	if (object && types[type].parse && streq(object->meta->uid, uid)) {
		object->round = w->rounds[type];
		if (gone)
			object_gone(w, object);
	}
}

void world_pass_over(struct world *w, enum world_type type, const char *json, size_t len, bool gone,
		     int wrong)
{
	const struct spec_kind *kind = world_is_of_jobs(type) ? world_kind(w, type) : NULL;
	const char *what = kind			     ? kind->kind
			   : world_is_of_parts(type) ? world_part(w, type)->kind
			   : type == WORLD_PODS	     ? "Pod"
			   : type == WORLD_EVENTS    ? "Event"
						     : types[type].what;
	cleanup_free char *name = spec_object_name(json, len, "name");
	cleanup_free char *uid = spec_object_name(json, len, "uid");
	struct passed *passed;

	w->n_passings++;
	keep_known(w, type, uid, name, gone);
	if (!*uid)
		text_set(&uid, "%s", name);
	HASH_FIND_STR(w->passed, uid, passed);
	if (gone && passed)
		unpass(w, passed);
	if (passed && !gone)
		passed->round = w->rounds[type];
	if (wrong == -ENOSPC && !w->full[type] && !gone) {
		w->full[type] = true;
		diag(DIAG_WARNING,
		     "the cluster has more than %u objects of kind %s: kxfs does not show "
		     "the rest",
		     SPEC_MAX_LISTED, what);
	}
	if (passed || gone || HASH_COUNT(w->passed) >= PASSED_MAX)
		return;
	if (wrong != -ENOSPC)
		diag(DIAG_WARNING, "kxfs does not show the %s %s: %s", what,
		     *name ? name : "(without a name)",
		     wrong == -EFBIG   ? "it is too large"
		     : wrong == -ELOOP ? "it is nested too deeply"
				       : "it can't be read");
	passed = new0(struct passed);
	passed->uid = take_ptr(uid);
	passed->type = type;
	passed->round = w->rounds[type];
	HASH_ADD_KEYPTR(hh, w->passed, passed->uid, strlen(passed->uid), passed);
	atomic_store(&w->n_passed, HASH_COUNT(w->passed));
}

size_t world_n_passed_over(const struct world *w)
{
	return atomic_load(&w->n_passed);
}

/* --- lists and objects --- */

void world_list_begins(struct world *w, enum world_type type)
{
	w->rounds[type]++;
	w->listing[type] = world_has_listed(w, type) ? RELISTING : LISTING;
	w->full[type] = false;
}

unsigned world_rounds(const struct world *w, enum world_type type)
{
	return w->rounds[type];
}

bool world_has_listed(const struct world *w, enum world_type type)
{
	enum listing now = w->listing[type];

	return now == LISTED || now == RELISTING;
}

void world_object(struct world *w, enum world_type type, const char *json, size_t len, bool gone)
{
	cleanup_free char *uid = w->passed ? spec_object_name(json, len, "uid") : NULL;
	unsigned before = w->n_passings;
	struct passed *passed = NULL;

	if (uid)
		HASH_FIND_STR(w->passed, uid, passed);
	if (world_is_of_jobs(type))
		on_job(w, type, json, len, gone);
	else if (type == WORLD_PODS)
		on_pod(w, json, len, gone);
	else if (type == WORLD_EVENTS)
		on_event(w, json, len, gone);
	else
		on_object(w, type, json, len, gone);
	if (passed && w->n_passings == before) /* kxfs could read the object this time */
		unpass(w, passed);
}

void world_list_ends(struct world *w, enum world_type type)
{
	struct passed *passed, *next;

	w->listing[type] = LISTED;
	HASH_ITER(hh, w->passed, passed, next) {
		if (passed->type == type && passed->round != w->rounds[type])
			unpass(w, passed);
	}
	for (struct job *job = world_is_of_jobs(type) ? w->jobs : NULL; job; job = job->hh.next)
		if (job->j.view && job->j.type == type && !job->j.gone &&
		    job->j.round != w->rounds[type])
			job_gone(job);
	if (type == WORLD_PODS)
		return pods_listed(w);
	if (type != WORLD_EVENTS) /* on_event never deletes events */
		return objects_listed(w, type);
}

void world_await_list(struct world *w, enum world_type type)
{
	w->listing[type] = is_listing(w, type) ? LISTING : UNLISTED;
}

void world_forget_type(struct world *w, enum world_type type)
{
	world_list_begins(w, type);
	world_list_ends(w, type);
	w->listing[type] = UNLISTED;
}

/* --- the timer TICK --- */

/*
 * Report waiting jobs if they, or their groups, have been known for SPEC_SETTLE_NS. Return true if
 * more jobs must be reported later.
 */
static bool report_settled(struct world *w)
{
	int64_t before = loop_time_ns() - SPEC_SETTLE_NS;
	bool more = false;

	for (struct job *job = w->jobs; job; job = job->hh.next) {
		struct object *group = job->waits ? find_owned(w, WORLD_GROUPS, job->j.uid) : NULL;
		bool over = false;

		if (job->j.view && !job->waited && job->waits)
			over = job->waited = job->j.since <= before;
		if (group && !group->waited)
			over |= group->waited =
				((const struct spec_group_view *)group->view)->seen <= before;
		if (over)
			changed(job);
		more |= job->waits && (!job->waited || (group && !group->waited));
	}
	return more;
}

static void on_tick(void *data)
{
	struct world *w = data;

	for (struct job *job = w->jobs; job; job = job->hh.next) {
		const struct object *queue = NULL;

		if (!job->j.view || !job->waits)
			continue;
		queue = find_object(w, world_queues_of(job->j.kind), job->j.view->queue);
		if (queue ? queue->changed : w->queue_gone)
			changed(job);
	}
	for (struct object *queue = w->objects[WORLD_QUEUES]; queue; queue = queue->hh.next)
		queue->changed = false;
	for (struct object *queue = w->objects[WORLD_LOCAL_QUEUES]; queue; queue = queue->hh.next)
		queue->changed = false;
	w->queue_gone = false;
	if (report_settled(w))
		tick_later(w);
}

static void tick_later(struct world *w)
{
	if (!loop_timer_is_set(&w->tick) && !w->stopped)
		loop_timer_set(&w->tick, TICK_MS);
}

void world_set_waiting(const struct world_job *job, bool waits)
{
	struct job *it = container_of(job, struct job, j);

	it->waits = waits;
	/* kxfs requests positions only in queues in which jobs wait */
	if (!waits)
		it->position = 0;
}

void world_waiting_changed(struct world *w)
{
	for (struct job *job = w->jobs; job; job = job->hh.next)
		if (job->waits)
			changed(job);
}

/* --- lookups --- */

void world_set_watch_status(struct world *w, enum world_type type, enum world_watch_status status)
{
	w->statuses[type] = status;
}

enum world_watch_status world_watch_status(const struct world *w, enum world_type type)
{
	return w->statuses[type];
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

const struct spec_pod_view *world_pod(struct world *w, const char *job, const char *uid, size_t n)
{
	const struct pod *pod;

	HASH_FIND(hh, w->pods, uid, n, pod);
	if (!pod || streq(pod->job->j.uid, job))
		return pod ? pod->view : NULL;
	if (pod->job->j.view)
		/* the mount shows other kinds than before, so the pod belongs to another job now */
		return NULL;
	text_set(&pod->job->log_job, "%s", job);
	return pod->view;
}

const struct spec_group_view *world_group(const struct world *w, const struct world_job *job)
{
	const struct object *group = find_owned(w, WORLD_GROUPS, job->uid);

	return group ? group->view : NULL;
}

struct spec_kueue_facts world_kueue(const struct world *w, const struct world_job *job)
{
	const char *owner = job->view ? job->view->meta.owner_uid : "";
	const struct object *own = find_owned(w, WORLD_WORKLOADS, job->uid);
	const struct object *object = own || !*owner ? own : find_owned(w, WORLD_WORKLOADS, owner);

	return (struct spec_kueue_facts){
		.known = w->statuses[WORLD_WORKLOADS] == WORLD_CONFIRMED,
		.workload = object ? object->view : NULL,
		.position = container_of(job, const struct job, j)->position,
		.away = w->kueue[WORLD_KUEUE_AWAY],
		.absent = w->kueue[WORLD_KUEUE_ABSENT],
	};
}

void world_set_kueue(struct world *w, enum world_kueue fact, bool now)
{
	if (now == w->kueue[fact])
		return;
	w->kueue[fact] = now;
	for (struct job *job = w->jobs; job; job = job->hh.next)
		if (job->j.view)
			changed(job);
}

const char *world_next_queue(const struct world *w, const char *after)
{
	const char *ret = NULL;

	for (const struct job *job = w->jobs; job; job = job->hh.next) {
		const struct spec_workload_view *workload;
		const char *queue;

		if (!job->j.view || job->j.gone || !job->waits || !job->j.kind->in_kueue)
			continue;
		queue = job->j.view->queue;
		workload = world_kueue(w, &job->j).workload;
		if (!*queue && workload)
			queue = workload->queue;
		if (strcmp(queue, after) > 0 && (!ret || strcmp(queue, ret) < 0))
			ret = queue;
	}
	return ret;
}

void world_set_positions(struct world *w, const char *name, const struct spec_queue_position *v,
			 size_t n)
{
	for (struct job *job = w->jobs; job; job = job->hh.next) {
		unsigned position;

		if (!job->j.view || (name && !streq(job->j.view->queue, name)))
			continue;
		position = spec_queue_positions_find(v, n, job->j.uid);
		if (job->position == position)
			continue;
		job->position = position;
		changed(job);
	}
}

size_t world_n_pods(const struct world *w)
{
	return atomic_load(&w->n_pods);
}

/* --- creation and end --- */

void world_forget(const struct world_job *j)
{
	struct job *job = container_of(j, struct job, j);
	struct pod *pod, *next;

	DL_FOREACH_SAFE(job->pods, pod, next)
		pod_free(pod);
	job->w->n_live -= job->j.view && !job->j.gone;
	events_forget(job->w->events, job->j.uid);
	HASH_DEL(job->w->jobs, job);
	spec_job_view_free(job->j.view);
	spec_text_unref(job->j.object);
	free(job->j.uid);
	free(job->log_job);
	free(job);
}

struct world *world_new(struct loop *loop)
{
	struct world *w = new0(struct world);

	loop_timer_init(&w->tick, loop, on_tick, w);
	w->events = events_new();
	w->lock = (struct lock)LOCK_INIT;
	return w;
}

void world_set_changed(struct world *w, world_changed_fn fn, void *data)
{
	w->changed = fn;
	w->data = data;
}

void world_set_kind(struct world *w, enum world_type type, const struct spec_kind *kind)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];

	w->kinds[type - WORLD_JOBS] = kind;
	w->n_readers = world_kinds(w, kinds);
	for (size_t i = 0; i < w->n_readers; i++)
		w->readers[i] = kinds[i]->reader;
}

void world_set_part(struct world *w, enum world_type type, const struct spec_part *part)
{
	w->parts[type - WORLD_PARTS] = part;
}

const struct spec_part *world_part(const struct world *w, enum world_type type)
{
	return w->parts[type - WORLD_PARTS];
}

enum world_type world_feed(const struct world *w, const struct spec_part *part)
{
	for (enum world_type i = WORLD_PARTS; i < WORLD_JOBS; i++) {
		const struct spec_part *at = world_part(w, i);

		if (at && streq(at->plural, part->plural) &&
		    streq(at->api_version, part->api_version) && w->statuses[i] != WORLD_ABSENT)
			return i;
	}
	for (enum world_type i = WORLD_JOBS; i < WORLD_N_TYPES; i++)
		if (world_kind(w, i) && spec_part_is(part, world_kind(w, i)))
			return i;
	return WORLD_N_TYPES;
}

bool world_hides_pods(const struct world *w, const struct spec_kind *kind)
{
	for (size_t i = 0; i < kind->n_parts; i++) {
		enum world_type feed = world_feed(w, &kind->parts[i]);

		if (feed < WORLD_N_TYPES &&
		    (w->statuses[feed] == WORLD_FORBIDDEN ||
		     (w->statuses[feed] == WORLD_AWAY && !world_has_listed(w, feed))))
			return true;
	}
	return false;
}

bool world_awaits_pods(const struct world *w, const struct spec_kind *kind)
{
	bool ret = !world_has_listed(w, WORLD_PODS);

	for (size_t i = 0; kind && i < kind->n_parts; i++) {
		enum world_type feed = world_feed(w, &kind->parts[i]);

		ret |= feed < WORLD_N_TYPES && !world_has_listed(w, feed) &&
		       w->statuses[feed] != WORLD_FORBIDDEN && w->statuses[feed] != WORLD_ABSENT;
	}
	return ret;
}

void world_set_refused(struct world *w, enum world_type type, const struct spec_kind *kind)
{
	w->refused[type - WORLD_JOBS] = kind;
}

bool world_is_refused(const struct world *w, const char *name)
{
	for (size_t i = 0; i < SPEC_MAX_KINDS; i++)
		if (w->refused[i] && (!name || streq(w->refused[i]->name, name)))
			return true;
	return false;
}

const struct spec_kind *world_kind(const struct world *w, enum world_type type)
{
	return w->kinds[type - WORLD_JOBS];
}

size_t world_kinds(const struct world *w, const struct spec_kind *ret[SPEC_MAX_KINDS])
{
	size_t n = 0;

	for (size_t i = 0; i < SPEC_MAX_KINDS; i++) {
		const struct spec_kind *kind = w->kinds[i];

		if (kind)
			ret[n++] = kind;
	}
	return n;
}

enum world_type world_type_of(const struct world *w, const struct spec_kind *kind)
{
	enum world_type type = WORLD_JOBS;

	while (type < WORLD_N_TYPES && world_kind(w, type) != kind)
		type++;
	return type;
}

void world_stop(struct world *w)
{
	w->stopped = true;
	loop_timer_stop(&w->tick);
}

void world_free(struct world *w)
{
	struct job *job, *next_job;
	struct passed *passed, *next_passed;
	struct object *object, *next;

	if (!w)
		return;
	HASH_ITER(hh, w->passed, passed, next_passed)
		unpass(w, passed);
	HASH_ITER(hh, w->jobs, job, next_job)
		world_forget(&job->j);
	for (size_t i = 0; i < WORLD_N_TYPES; i++) {
		HASH_ITER(hh, w->objects[i], object, next) {
			leave_table(w, object);
			object_free(object);
		}
	}
	HASH_ITER(hh, w->past, object, next) {
		HASH_DEL(w->past, object);
		object_free(object);
	}
	events_free(w->events);
	free(w);
}
