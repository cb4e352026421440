/* SPDX-License-Identifier: MIT */
/*
 * A cache of the cluster's objects, as watches and replies have returned them: jobs, their pods,
 * the scheduler's pod groups, events, queues, and Kueue's Workloads. The world joins these objects.
 * A pod, a group or a Workload belongs to the job that is its controller, directly or through parts
 * in between. An event belongs to the same job as the object that it is about. Objects may arrive
 * in any order. The world reports only which jobs have changed. I/O thread, unless noted otherwise.
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
	WORLD_QUEUES,	 /* all queues of the cluster */
	WORLD_OWN_QUEUE, /* only the queue of the mount, if the user may not list all queues */
	WORLD_WORKLOADS, /* an object of Kueue, like the next two types */
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
 * A job. It exists from the time when its object or one of its pods is first seen, until
 * world_forget. Only world.c writes the members. The world keeps a deleted pod as long as the pod's
 * job, since the last state of the pod shows how its run has ended.
 */
struct world_job {
	char *uid;
	/*
	 * NULL while only pods of the job have been seen. KIND and TYPE are set together with VIEW.
	 */
	struct spec_job_view *view;
	const struct spec_kind *kind; /* the kind as which VIEW was parsed */
	enum world_type type;
	struct spec_text *object; /* the JSON from which VIEW was parsed */
	bool gone;		  /* true if the job's object was deleted */
	unsigned round;		  /* the value of world_rounds when the object last arrived */
	size_t n_pods;		  /* number of the job's pods in the cluster */
	/*
	 * When the job was first seen, in ns. If the first list contained the job: when it was
	 * created.
	 */
	int64_t since;
};

/*
 * Called when JOB has changed. It is called in the middle of the change, so it must not call
 * functions of world.
 */
typedef void (*world_changed_fn)(void *data, const struct world_job *job);

struct world *world_new(struct loop *loop);
/* Call this once, before any object arrives. */
void world_set_changed(struct world *w, world_changed_fn fn, void *data);
/*
 * Set the kind of the jobs of TYPE. KIND is NULL, as at first, if TYPE has no jobs. Call this
 * before any object of TYPE arrives. Call it again when the cluster serves another kind instead;
 * the next list then shows which jobs remain. After it has added a kind, the caller must relist all
 * jobs, because an object that is part of a job of the new kind no longer counts as a job of its
 * own.
 */
void world_set_kind(struct world *w, enum world_type type, const struct spec_kind *kind);
/*
 * Note that the user may not list the jobs of KIND, which would be objects of TYPE. KIND is NULL,
 * as at first, if the user may list them.
 */
void world_set_refused(struct world *w, enum world_type type, const struct spec_kind *kind);
/*
 * True if the user may not list the jobs of the kind NAME. If NAME is NULL, return true if this
 * applies to any kind.
 */
bool world_is_refused(const struct world *w, const char *name);
/* Return the kind of the jobs of TYPE; NULL if there is none. Any thread. */
const struct spec_kind *world_kind(const struct world *w, enum world_type type);
/* Put all kinds into RET, in the order of their types. Return their number. Any thread. */
size_t world_kinds(const struct world *w, const struct spec_kind *ret[SPEC_MAX_KINDS]);
/* Return the type of the jobs of KIND; WORLD_N_TYPES if KIND has no type. */
enum world_type world_type_of(const struct world *w, const struct spec_kind *kind);
/* Set PART as the resource of TYPE, which must be a type of parts. Call this once per type. */
void world_set_part(struct world *w, enum world_type type, const struct spec_part *part);
/* Return the resource of TYPE that world_set_part has set; NULL if there is none. Any thread. */
const struct spec_part *world_part(const struct world *w, enum world_type type);
/*
 * Return the type whose watch returns the objects of PART. Normally this is the type of PART
 * itself. If the objects are jobs of a shown kind, it is the type of that kind. Return
 * WORLD_N_TYPES if there is no such type. Any thread.
 */
enum world_type world_feed(const struct world *w, const struct spec_part *part);
/* True if pods of the jobs of KIND may be missing because a part of these jobs can't be listed. */
bool world_hides_pods(const struct world *w, const struct spec_kind *kind);
/*
 * True if pods of the jobs of KIND may be missing because the first list of pods, or of a part, has
 * not arrived. KIND is NULL for the jobs of any kind.
 */
bool world_awaits_pods(const struct world *w, const struct spec_kind *kind);
/* Stop the timers of W. */
void world_stop(struct world *w);
void world_free(struct world *w); /* NULL is allowed */

/* --- lists and objects --- */

/*
 * Call this when a list of TYPE begins. Objects of TYPE that do not arrive before world_list_ends
 * then count as deleted.
 */
void world_list_begins(struct world *w, enum world_type type);
/*
 * Add or update the object of TYPE that JSON contains. If GONE, the object was deleted, and JSON is
 * its last version.
 */
void world_object(struct world *w, enum world_type type, const char *json, size_t len, bool gone);
/*
 * Pass over the object of TYPE that JSON contains. WRONG is the reason, as in spec_split_fn, or
 * another errno. The last readable version of the object remains until the object is GONE. kxfs
 * names the object once in .kxfs/log.
 */
void world_pass_over(struct world *w, enum world_type type, const char *json, size_t len, bool gone,
		     int wrong);
/*
 * True if TYPE must be relisted. This is the case if objects of TYPE were passed over because there
 * were more than SPEC_MAX_LISTED, and now there is space for them. Further calls then return false.
 */
bool world_has_room_again(struct world *w, enum world_type type);
void world_list_ends(struct world *w, enum world_type type);
/* Return how many lists of TYPE have begun. */
unsigned world_rounds(const struct world *w, enum world_type type);
/* True if a list of TYPE has ended. */
bool world_has_listed(const struct world *w, enum world_type type);
/*
 * Treat TYPE as not listed until its next list has ended. Call this when more objects of TYPE than
 * before belong to jobs, since only the next list contains all of them.
 */
void world_await_list(struct world *w, enum world_type type);
/*
 * Forget all objects of TYPE, because the mount can't see them any more. The effect is the same as
 * that of an empty list.
 */
void world_forget_type(struct world *w, enum world_type type);
/*
 * Update a job of TYPE from JSON, which was in the reply to a request. JSON may be older than the
 * cache. WATCHED is the resource version up to which the watch of these jobs has reported
 * everything; "" while the watch relists. Return the job as it is now. Return NULL if JSON can't be
 * parsed, or if the job is already deleted.
 */
const struct world_job *world_reply(struct world *w, enum world_type type, const char *json,
				    size_t len, const char *watched);

/*
 * Take a sample of a pod. JSON is the pod's PodMetrics. Return the job of the pod; NULL if the
 * sample is not new, or if there is no such pod. JSON may be about an earlier pod of the same name.
 * That is found out later from the time of the sample, when a snapshot is made.
 */
const struct world_job *world_sample(struct world *w, const char *json, size_t len);

/* --- lookups --- */

enum world_watch_status {
	WORLD_UNCONFIRMED,
	/* the last list was complete, so objects that the world does not have do not exist */
	WORLD_CONFIRMED,
	WORLD_FORBIDDEN, /* the user has no right to list such objects */
	WORLD_AWAY,	 /* the server can't be reached, or returns errors */
	/* the server does not serve such objects, or kxfs does not watch them any more */
	WORLD_ABSENT,
};
void world_set_watch_status(struct world *w, enum world_type type, enum world_watch_status status);
enum world_watch_status world_watch_status(const struct world *w, enum world_type type);
const struct world_job *world_find(const struct world *w, const char *uid);
/* Call FN for each job. FN may forget the job that it is called for. */
void world_each(struct world *w, void (*fn)(void *data, const struct world_job *job), void *data);
/*
 * Return the pods of JOB, including deleted ones, in a malloc'ed array. The views in the array are
 * borrowed.
 */
const struct spec_pod_view **world_pods(const struct world_job *job, size_t *ret_n);
/*
 * Return the pod that has the N bytes at UID as its own uid. This mount, or an earlier one, has seen
 * it as a pod of JOB. Return NULL if the cluster does not have the pod any more, or if the pod
 * belongs to another job now. If the parts between the pod and JOB are unknown, because they were
 * deleted or may not be watched, a change of the pod also reports JOB.
 */
const struct spec_pod_view *world_pod(struct world *w, const char *job, const char *uid, size_t n);
/* Return the pod group of JOB, or NULL. */
const struct spec_group_view *world_group(const struct world *w, const struct world_job *job);
/* Return Kueue's facts about JOB, except the facts about its ClusterQueue. */
struct spec_kueue_facts world_kueue(const struct world *w, const struct world_job *job);
/*
 * Set the positions of the jobs in the LocalQueue NAME to the N items of V. The other jobs of this
 * queue then have no position.
 */
void world_set_positions(struct world *w, const char *name, const struct spec_queue_position *v,
			 size_t n);
/* Note whether this user lacks the right to patch Workloads (FIXED). */
void world_set_fixed(struct world *w, bool fixed);
/* Note whether the API server was unable to reach Kueue when kxfs last asked it (AWAY). */
void world_set_kueue_away(struct world *w, bool away);
/* Note whether the server lacks Kueue's API (ABSENT). */
void world_set_kueue_absent(struct world *w, bool absent);
/*
 * Note whether JOB was published as not started (WAITS). If so, a change of its queue or its group
 * also counts as a change of JOB.
 */
void world_set_waiting(const struct world_job *job, bool waits);
/* Report each job that waits. Call this when a fact about all queues or all groups has changed. */
void world_waiting_changed(struct world *w);
/* Free JOB and its pods. */
void world_forget(const struct world_job *job);

/* Get the events of job UID. Release them with events_release. Any thread. */
void world_events_of(struct world *w, const char *uid, struct events_list *ret);
/*
 * Return a new reference to the queue NAME of TYPE, or NULL. TYPE is WORLD_QUEUES or
 * WORLD_LOCAL_QUEUES, since queues of these types may have the same name. Any thread.
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
 * world_n_pods returns the number of pods in the cluster, and world_n_passed_over the number of
 * objects that were passed over. Any thread.
 */
size_t world_n_pods(const struct world *w);
size_t world_n_passed_over(const struct world *w);
