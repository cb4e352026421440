/* SPDX-License-Identifier: MIT */
/*
 * A cache of the cluster's objects, as watches and replies have returned them: jobs, their pods,
 * the scheduler's pod groups, events, queues, and Kueue's Workloads. The world joins these objects.
 * A pod, a group or a Workload belongs to the job that controls it, directly or through other
 * objects, the parts of the job. An event belongs to the same job as the object that it is about.
 * Objects may arrive in any order. The world reports only which jobs have changed. I/O thread,
 * unless noted otherwise.
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
	WORLD_QUEUES, /* all queues of the cluster */
	/* only the queue of the mount; used if the user is not allowed to list all queues */
	WORLD_OWN_QUEUE,
	WORLD_WORKLOADS, /* objects of Kueue; so are the next two types */
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
 * The entry of a job. It exists from the time when the job's object or one of its pods is first
 * seen until world_forget is called. Only world.c writes the members. The world keeps deleted pods
 * as long as this entry, since the last state of a pod shows how its run has ended.
 */
struct world_job {
	char *uid;
	/* NULL while only pods of the job are known. KIND and TYPE are set with VIEW. */
	struct spec_job_view *view;
	const struct spec_kind *kind; /* VIEW was parsed as a job of this kind */
	enum world_type type;
	struct spec_text *object; /* the JSON from which VIEW was parsed */
	bool gone;		  /* true if the job's object was deleted */
	unsigned round;		  /* the value of world_rounds when the job's object last arrived */
	size_t n_pods;		  /* number of the job's pods in the cluster */
	/* when kxfs first saw the job, in ns; if the first list had the job, when it was created */
	int64_t since;
};

/* Called while JOB is changing, so it must not call functions of world. */
typedef void (*world_changed_fn)(void *data, const struct world_job *job);

struct world *world_new(struct loop *loop);
/* Call this once, before any object arrives. */
void world_set_changed(struct world *w, world_changed_fn fn, void *data);
/*
 * Set the kind of the jobs of TYPE; NULL if TYPE has no jobs, as initially. Call this before any
 * object of TYPE arrives. Call it again when the cluster serves another kind instead; the next list
 * then shows which jobs remain. After adding a kind, the caller must relist all jobs, because some
 * of them may be parts of jobs of the new kind.
 */
void world_set_kind(struct world *w, enum world_type type, const struct spec_kind *kind);
/*
 * Record that the user has no right to list the jobs of KIND, which would have the type TYPE. If
 * KIND is NULL, record that there is no such kind; this is the initial state.
 */
void world_set_refused(struct world *w, enum world_type type, const struct spec_kind *kind);
/*
 * True if the user has no right to list the jobs of the kind NAME. If NAME is NULL, true if there
 * is any such kind.
 */
bool world_is_refused(const struct world *w, const char *name);
/* Return the kind of the jobs of TYPE. Return NULL if TYPE has no kind. Any thread. */
const struct spec_kind *world_kind(const struct world *w, enum world_type type);
/* Put all kinds into RET, in the order of their types. Return their number. Any thread. */
size_t world_kinds(const struct world *w, const struct spec_kind *ret[SPEC_MAX_KINDS]);
/* Return the type of the jobs of KIND; WORLD_N_TYPES if KIND has no type. */
enum world_type world_type_of(const struct world *w, const struct spec_kind *kind);
/* Make PART the resource of TYPE, which must be a type of parts. Call this once per type. */
void world_set_part(struct world *w, enum world_type type, const struct spec_part *part);
/* Return the resource of TYPE, or NULL if world_set_part was not called for it. Any thread. */
const struct spec_part *world_part(const struct world *w, enum world_type type);
/*
 * Return the type whose watch returns all objects of PART: the type of PART itself if this type is
 * watched, otherwise the type of the shown kind of which these objects are jobs. Return
 * WORLD_N_TYPES if there is no such type. Any thread.
 */
enum world_type world_feed(const struct world *w, const struct spec_part *part);
/* True if pods of KIND's jobs may be missing, because a part of these jobs can't be listed. */
bool world_hides_pods(const struct world *w, const struct spec_kind *kind);
/*
 * True if pods of KIND's jobs may be missing, because the first list of pods or of a part has not
 * arrived. If KIND is NULL, consider only the list of pods.
 */
bool world_awaits_pods(const struct world *w, const struct spec_kind *kind);
/* Stop the timers of W. */
void world_stop(struct world *w);
void world_free(struct world *w); /* NULL is allowed */

/* --- lists and objects --- */

/*
 * Call this when a list of TYPE begins. world_list_ends treats the objects of TYPE that have not
 * arrived by then as deleted.
 */
void world_list_begins(struct world *w, enum world_type type);
/*
 * Add or update the object of TYPE that JSON contains. GONE is true if the object was deleted. JSON
 * is then the last version of the object.
 */
void world_object(struct world *w, enum world_type type, const char *json, size_t len, bool gone);
/*
 * Pass over the object of TYPE that JSON contains. WRONG is the reason, as in spec_split_fn, or
 * another errno. The world keeps the last readable version of the object until GONE is true. kxfs
 * names the object once in .kxfs/log.
 */
void world_pass_over(struct world *w, enum world_type type, const char *json, size_t len, bool gone,
		     int wrong);
/*
 * True if TYPE must be relisted: the world has passed over objects of TYPE beyond SPEC_MAX_LISTED,
 * and now has space for them. Later calls return false until this happens again.
 */
bool world_has_room_again(struct world *w, enum world_type type);
void world_list_ends(struct world *w, enum world_type type);
/* Return how many lists of TYPE have begun. */
unsigned world_rounds(const struct world *w, enum world_type type);
/* True if a list of TYPE has ended. */
bool world_has_listed(const struct world *w, enum world_type type);
/*
 * Treat TYPE as not listed until its next list has ended. Call this when the mount shows more kinds
 * of jobs than before, because the lists so far may lack objects of TYPE that belong to these jobs.
 */
void world_await_list(struct world *w, enum world_type type);
/* Forget all objects of TYPE as after an empty list, because the mount no longer lists them. */
void world_forget_type(struct world *w, enum world_type type);
/*
 * Update a job of TYPE from JSON, which was in the reply to a request. JSON may be older than the
 * cache. The watch of these jobs has reported everything up to the resource version WATCHED; ""
 * while the watch relists. Return the job as it is now. Return NULL if JSON can't be parsed, or if
 * the job is already deleted.
 */
const struct world_job *world_reply(struct world *w, enum world_type type, const char *json,
				    size_t len, const char *watched);

/*
 * Add a sample to a pod. JSON is the pod's PodMetrics. Return the job of the pod. Return NULL if
 * the sample is not new, or if there is no such pod. JSON may be about an earlier pod of the same
 * name. When kxfs makes a snapshot, it detects this from the time of the sample.
 */
const struct world_job *world_sample(struct world *w, const char *json, size_t len);

/* --- lookups --- */

enum world_watch_status {
	WORLD_UNCONFIRMED,
	/* the last list was complete: the world has all objects that exist */
	WORLD_CONFIRMED,
	WORLD_FORBIDDEN, /* the user has no right to list such objects */
	WORLD_AWAY,	 /* the server can't be reached, or it returns errors */
	/* the server does not serve such objects, or kxfs does not watch them any more */
	WORLD_ABSENT,
};
void world_set_watch_status(struct world *w, enum world_type type, enum world_watch_status status);
enum world_watch_status world_watch_status(const struct world *w, enum world_type type);
const struct world_job *world_find(const struct world *w, const char *uid);
/* Call FN for each job. FN may forget the job that it is called for. */
void world_each(struct world *w, void (*fn)(void *data, const struct world_job *job), void *data);
/* Return JOB's pods, also deleted ones, in a malloc'ed array. The views are borrowed. */
const struct spec_pod_view **world_pods(const struct world_job *job, size_t *ret_n);
/*
 * Return the pod whose own uid is the N bytes at UID, and which this mount or an earlier one has
 * seen as a pod of JOB. Return NULL if the cluster no longer has the pod, or if the pod now belongs
 * to another job. If the parts between the pod and JOB are unknown, the world reports JOB from now
 * on when the pod changes. Parts are unknown if they were deleted, or if the user has no right to
 * watch them.
 */
const struct spec_pod_view *world_pod(struct world *w, const char *job, const char *uid, size_t n);
/* Return the pod group of JOB, or NULL. */
const struct spec_group_view *world_group(const struct world *w, const struct world_job *job);
/* Return the facts about JOB that come from Kueue, except those about the ClusterQueue. */
struct spec_kueue_facts world_kueue(const struct world *w, const struct world_job *job);
/*
 * Set the positions of the jobs in the LocalQueue NAME. V has the positions of N jobs. All other
 * jobs in this queue then have no position.
 */
void world_set_positions(struct world *w, const char *name, const struct spec_queue_position *v,
			 size_t n);
/* Facts about Kueue that any job may show. */
enum world_kueue {
	WORLD_KUEUE_FIXED,  /* this user lacks the right to patch Workloads */
	WORLD_KUEUE_AWAY,   /* the API server could not reach Kueue when it last replied about it */
	WORLD_KUEUE_ABSENT, /* the server lacks Kueue's API */
	WORLD_N_KUEUE
};
/* Record whether FACT is true now. Initially no fact is true. */
void world_set_kueue(struct world *w, enum world_kueue fact, bool now);
/*
 * Record whether JOB was published as not started yet (WAITS). If so, the world also reports JOB
 * when its queue changes, or when JOB or its group has been known for SPEC_SETTLE_NS.
 */
void world_set_waiting(const struct world_job *job, bool waits);
/* Report each waiting job, because a fact about all queues or groups has changed. */
void world_waiting_changed(struct world *w);
/* Free JOB and its pods. */
void world_forget(const struct world_job *job);

/* Get the events of job UID. Release them with events_release. Any thread. */
void world_events_of(struct world *w, const char *uid, struct events_list *ret);
/*
 * Return a new reference to the queue NAME of TYPE. Return NULL if there is no such queue. TYPE is
 * WORLD_QUEUES or WORLD_LOCAL_QUEUES, since queues of both types may have the same name. Any
 * thread.
 */
struct spec_queue_view *world_queue(struct world *w, enum world_type type, const char *name);
/* Return the type of the queues that jobs of KIND use: WORLD_QUEUES or WORLD_LOCAL_QUEUES. */
enum world_type world_queues_of(const struct spec_kind *kind);
/* Return a new reference to Kueue's ClusterQueue NAME, or NULL. Any thread. */
struct spec_cluster_queue_view *world_cluster_queue(struct world *w, const char *name);
/*
 * Return new references to all queues, in a malloc'ed array. If two queues have the same name,
 * return only Volcano's queue. Any thread.
 */
struct spec_queue_view **world_queues(struct world *w, size_t *ret_n);
/*
 * Return the number of pods in the cluster, and of objects that the world passes over. Any thread.
 */
size_t world_n_pods(const struct world *w);
size_t world_n_passed_over(const struct world *w);
