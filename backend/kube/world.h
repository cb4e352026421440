/* SPDX-License-Identifier: MIT */
/*
 * A cache of the cluster's objects: jobs, their pods, pod groups, events, queues, and Kueue's
 * Workloads. The world finds out which objects belong to which job, in whatever order they arrive.
 * A pod, a group or a Workload belongs to the job that owns it. The job owns it directly, or owns
 * other objects in between, which are called parts of the job. An event belongs to the job of the
 * object that it is about. The world reports which jobs have changed. I/O thread, unless noted
 * otherwise.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/kube/events.h"
#include "spec/kinds/kinds.h"
#include "spec/view/kueue.h"

struct world;

/* The types of objects. Each type has its own watch. */
enum world_type {
	WORLD_PODS,
	WORLD_GROUPS,
	WORLD_EVENTS,
	WORLD_QUEUES,	 /* all of Volcano's queues */
	WORLD_OWN_QUEUE, /* only the mount's queue, if the user has no right to list all queues */
	WORLD_WORKLOADS, /* objects of Kueue, like the next two types */
	WORLD_LOCAL_QUEUES,
	WORLD_CLUSTER_QUEUES,
	WORLD_PARTS, /* objects between jobs and pods; there is one type for each resource */
	WORLD_JOBS = WORLD_PARTS + SPEC_MAX_PARTS, /* jobs; there is one type for each kind */
	WORLD_N_TYPES = WORLD_JOBS + SPEC_MAX_KINDS
};

static inline bool world_is_of_parts(enum world_type type)
{
	return type >= WORLD_PARTS && type < WORLD_JOBS;
}

static inline bool world_is_of_jobs(enum world_type type)
{
	return type >= WORLD_JOBS;
}

/*
 * The entry of a job. The world creates it when the job's object, or one of the job's pods, first
 * arrives. The entry exists until world_forget is called. It also keeps deleted pods, because their
 * last state shows how they ended. Only world.c writes the members.
 */
struct world_job {
	char *uid;
	/* NULL while only pods of the job are known; KIND and TYPE are set with VIEW */
	struct spec_job_view *view;
	const struct spec_kind *kind;
	enum world_type type;
	struct spec_text *object; /* the JSON from which VIEW was parsed */
	bool gone;		  /* true if the job's object was deleted */
	unsigned round;		  /* the value of world_rounds when the job's object last arrived */
	size_t n_pods;		  /* number of the job's pods in the cluster */
	/* in ns: the creation time if the first list had the job, else when kxfs first saw it */
	int64_t since;
};

/* Called while JOB is changing, so it must not call functions of world. */
typedef void (*world_changed_fn)(void *data, const struct world_job *job);

struct world *world_new(struct loop *loop);
/* Call this once, before any object arrives. */
void world_set_changed(struct world *w, world_changed_fn fn, void *data);
/*
 * Make KIND the kind of the jobs of TYPE. If KIND is NULL, TYPE then has no jobs. Call this before
 * objects of TYPE arrive. After adding a kind, relist all jobs, because some of them may be parts
 * of jobs of the new kind.
 */
void world_set_kind(struct world *w, enum world_type type, const struct spec_kind *kind);
/* Record that the user has no right to list KIND, the kind of TYPE. If KIND is NULL, clear this. */
void world_set_refused(struct world *w, enum world_type type, const struct spec_kind *kind);
/* True if the user has no right to list the kind NAME (or some kind, if NAME is NULL). */
bool world_is_refused(const struct world *w, const char *name);
/* Return the kind of the jobs of TYPE, or NULL. Any thread. */
const struct spec_kind *world_kind(const struct world *w, enum world_type type);
/* Put all kinds into RET, in the order of their types. Return their number. Any thread. */
size_t world_kinds(const struct world *w, const struct spec_kind *ret[SPEC_MAX_KINDS]);
/* Return the type of the jobs of KIND, or WORLD_N_TYPES if KIND has no type. */
enum world_type world_type_of(const struct world *w, const struct spec_kind *kind);
/* Make PART the resource of TYPE, a type of parts. The resource of a type never changes. */
void world_set_part(struct world *w, enum world_type type, const struct spec_part *part);
/* Return the resource of TYPE, or NULL if TYPE has none yet. Any thread. */
const struct spec_part *world_part(const struct world *w, enum world_type type);
/*
 * Return the type whose watch returns all objects of PART. This is a type of parts or, if a shown
 * kind has these objects as its jobs, the type of this kind. Return WORLD_N_TYPES if there is no
 * such type. Any thread.
 */
enum world_type world_feed(const struct world *w, const struct spec_part *part);
/* True if pods of KIND's jobs may be missing, because a part of these jobs can't be listed. */
bool world_hides_pods(const struct world *w, const struct spec_kind *kind);
/*
 * True if pods of KIND's jobs may be missing, because the first list of pods, or the first list of
 * a part, has not arrived. If KIND is NULL, check only the list of pods.
 */
bool world_awaits_pods(const struct world *w, const struct spec_kind *kind);
void world_stop(struct world *w);
void world_free(struct world *w); /* NULL is allowed */

/* --- lists and objects --- */

/* Begin a list of TYPE. Objects that do not arrive before world_list_ends count as deleted. */
void world_list_begins(struct world *w, enum world_type type);
/* Add or update the object in JSON. If GONE, the object was deleted; JSON is its last version. */
void world_object(struct world *w, enum world_type type, const char *json, size_t len, bool gone);
/*
 * Ignore JSON, a version of an object. WRONG is the reason, as in spec_split_fn, or another errno.
 * The world keeps the last readable version of the object. If GONE is true, it removes the object.
 */
void world_pass_over(struct world *w, enum world_type type, const char *json, size_t len, bool gone,
		     int wrong);
void world_list_ends(struct world *w, enum world_type type);
/* Return how many lists of TYPE have begun. */
unsigned world_rounds(const struct world *w, enum world_type type);
/* True if the world has the objects of TYPE from a list, perhaps outdated ones. Any thread. */
bool world_has_listed(const struct world *w, enum world_type type);
/*
 * Treat TYPE as not listed until its next list has ended, because earlier lists may lack objects of
 * kinds that the mount shows now.
 */
void world_await_list(struct world *w, enum world_type type);
/* Forget all objects of TYPE, because the mount no longer lists them. */
void world_forget_type(struct world *w, enum world_type type);
/*
 * Update a job of TYPE from JSON, a reply that may be older than the cache. WATCHED is the resource
 * version up to which the watch of these jobs has reported all events, or "" while it relists.
 * Return the job as it is now. Return NULL if JSON can't be parsed, or if the job was deleted.
 */
const struct world_job *world_reply(struct world *w, enum world_type type, const char *json,
				    size_t len, const char *watched);

/*
 * Add the sample in JSON, a PodMetrics object, to its pod. Return the job of the pod. Return NULL
 * if the sample is not new, or if there is no such pod.
 */
const struct world_job *world_sample(struct world *w, const char *json, size_t len);

/* --- lookups --- */

enum world_watch_status {
	WORLD_UNCONFIRMED, /* the watch has not reported anything yet */
	WORLD_CONFIRMED,   /* the world has all objects that exist */
	WORLD_FORBIDDEN,   /* the user has no right to list such objects */
	WORLD_AWAY,	   /* the server can't be reached, or it returns errors */
	WORLD_ABSENT,	   /* the server does not serve such objects, or kxfs does not watch them */
};
void world_set_watch_status(struct world *w, enum world_type type, enum world_watch_status status);
enum world_watch_status world_watch_status(const struct world *w, enum world_type type);
const struct world_job *world_find(const struct world *w, const char *uid);
/* Call FN for each job. FN may forget the job that it is called for. */
void world_each(struct world *w, void (*fn)(void *data, const struct world_job *job), void *data);
/* Return JOB's pods, also deleted ones, in a malloc'ed array. The views are borrowed. */
const struct spec_pod_view **world_pods(const struct world_job *job, size_t *ret_n);
/*
 * Return the pod whose uid is UID (N bytes). JOB is the uid of the job to which the pod belongs
 * according to this or an earlier mount. Return NULL if the cluster no longer has the pod, or if
 * the pod belongs to another job now. If the parts between the pod and JOB are unknown, the world
 * from now on also reports JOB when the pod changes.
 */
const struct spec_pod_view *world_pod(struct world *w, const char *job, const char *uid, size_t n);
/* Return the pod group of JOB, or NULL. */
const struct spec_group_view *world_group(const struct world *w, const struct world_job *job);
/* Return the facts about JOB that come from Kueue, except those about the ClusterQueue. */
struct spec_kueue_facts world_kueue(const struct world *w, const struct world_job *job);
/*
 * Return the LocalQueue in which jobs wait and whose name follows AFTER in alphabetical order. Return
 * NULL if there is none. The name is borrowed until control returns to the loop.
 */
const char *world_next_queue(const struct world *w, const char *after);
/*
 * Set the positions of the jobs in LocalQueue NAME, or in all queues if NAME is NULL. Jobs that are
 * not in V have no position.
 */
void world_set_positions(struct world *w, const char *name, const struct spec_queue_position *v,
			 size_t n);
/* Facts about Kueue that any job may show. */
enum world_kueue {
	WORLD_KUEUE_AWAY,   /* the API server could not reach Kueue when it last replied about it */
	WORLD_KUEUE_ABSENT, /* the server does not serve Kueue's API */
	WORLD_N_KUEUE
};
/* Record whether FACT is true now. Initially no fact is true. */
void world_set_kueue(struct world *w, enum world_kueue fact, bool now);
/*
 * Record whether JOB waits for its start according to its published snapshot (WAITS). While it
 * waits, the world also reports JOB when its queue changes, and when JOB, or its group, has been
 * known for SPEC_SETTLE_NS.
 */
void world_set_waiting(const struct world_job *job, bool waits);
/* Report each waiting job, because a fact about all queues or groups has changed. */
void world_waiting_changed(struct world *w);
/* Free JOB and its pods. */
void world_forget(const struct world_job *job);

/* Get the events of job UID. Release them with events_release. Any thread. */
void world_events_of(struct world *w, const char *uid, struct events_list *ret);
/* Return a new reference to the queue NAME of TYPE, or NULL. Any thread. */
struct spec_queue_view *world_queue(struct world *w, enum world_type type, const char *name);
/* Return the type of the queues that jobs of KIND use: WORLD_QUEUES or WORLD_LOCAL_QUEUES. */
enum world_type world_queues_of(const struct spec_kind *kind);
/*
 * Return new references to all queues, in a malloc'ed array. If two queues have the same name,
 * return only Volcano's queue. Any thread.
 */
struct spec_queue_view **world_queues(struct world *w, size_t *ret_n);
/* Any thread may call the functions below. */
size_t world_n_pods(const struct world *w); /* in the cluster */
size_t world_n_passed_over(const struct world *w);
