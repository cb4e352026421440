/* SPDX-License-Identifier: MIT */
/*
 * A cache of the cluster's objects, as watches and replies have returned them: jobs, their pods, the scheduler's
 * pod groups, events, queues, and Kueue's Workloads. The world joins these objects. A pod, a group or a Workload
 * belongs to the job that is its controller, directly or through parts in between. An event belongs to the job of
 * the object that it is about. Objects may arrive in any order. The world only reports which jobs have changed. I/O
 * thread, unless noted otherwise.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/kube/events.h"
#include "spec/kinds/kinds.h"
#include "spec/view/kueue.h"

struct world;

/* The types of objects. Each has its own watch. */
enum world_type {
	WORLD_PODS,
	WORLD_GROUPS,
	WORLD_EVENTS,
	WORLD_QUEUES,	 /* all queues of the cluster */
	WORLD_OWN_QUEUE, /* only the mount's queue, if the user may not see the others */
	WORLD_WORKLOADS, /* Kueue's, like the next two */
	WORLD_LOCAL_QUEUES,
	WORLD_CLUSTER_QUEUES,
	WORLD_PARTS, /* objects between jobs and pods, a type for each resource */
	WORLD_JOBS = WORLD_PARTS + SPEC_MAX_PARTS, /* jobs, a type for each kind */
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
 * A job, from the time when its object or one of its pods is first seen until world_forget. Only world.c writes its
 * fields. A deleted pod is kept as long as its job, since its last state shows how its run has ended.
 */
struct world_job {
	char *uid;
	/* NULL while only pods of the job have been seen; KIND and TYPE are set together with it. */
	struct spec_job_view *view;
	const struct spec_kind *kind; /* VIEW was parsed as a job of this kind */
	enum world_type type;
	struct spec_text *object; /* the JSON of VIEW */
	bool gone;		  /* its object was deleted */
	unsigned round;		  /* world_rounds when the object last arrived */
	size_t n_pods;		  /* number of its pods in the cluster */
	/* In ns: when the job was first seen. For a job of the first list: when it was created. */
	int64_t since;
};

/* JOB has changed. Called in the middle of the change, so it must not call functions of world. */
typedef void (*world_changed_fn)(void *data, const struct world_job *job);

struct world *world_new(struct loop *loop);
/* Call this once, before any object arrives. */
void world_set_changed(struct world *w, world_changed_fn fn, void *data);
/*
 * Set the kind of the jobs of TYPE; NULL, as at first, if TYPE has no jobs. Call this before any object of TYPE
 * arrives. Call it again when the cluster serves another kind instead; the next list then shows which jobs remain.
 * After a kind was added, the caller must relist all jobs, because an object that is part of a job of the new kind
 * is no longer a job of its own.
 */
void world_set_kind(struct world *w, enum world_type type, const struct spec_kind *kind);
/*
 * Record that the user may not list the jobs of KIND, which would be objects of TYPE. KIND is NULL,
 * as at first, if the user may list them.
 */
void world_set_refused(struct world *w, enum world_type type, const struct spec_kind *kind);
/* True if the user may not list the jobs of the kind NAME; if NAME is NULL, the jobs of any kind. */
bool world_is_refused(const struct world *w, const char *name);
/* Return the kind of the jobs of TYPE, or NULL. Any thread. */
const struct spec_kind *world_kind(const struct world *w, enum world_type type);
/* Put all kinds into RET, in the order of their types. Return their number. Any thread. */
size_t world_kinds(const struct world *w, const struct spec_kind *ret[SPEC_MAX_KINDS]);
/* Return the type of the jobs of KIND; WORLD_N_TYPES if no type has this kind. */
enum world_type world_type_of(const struct world *w, const struct spec_kind *kind);
/* Set PART as the resource of TYPE, which must be a type of parts. Call this once per type. */
void world_set_part(struct world *w, enum world_type type, const struct spec_part *part);
/* Return the resource of TYPE, which world_set_part has set, or NULL. Any thread. */
const struct spec_part *world_part(const struct world *w, enum world_type type);
/*
 * Return the type whose watch returns the objects of PART. This is the type of PART itself or, if these objects are
 * jobs of a shown kind, the type of that kind. Return WORLD_N_TYPES if there is no such type. Any thread.
 */
enum world_type world_feed(const struct world *w, const struct spec_part *part);
/* True if a part of the jobs of KIND can't be listed, so that pods may be missing. */
bool world_hides_pods(const struct world *w, const struct spec_kind *kind);
/*
 * True if pods of the jobs of KIND (NULL: any) may be missing because the first list of pods, or of a part, has not
 * arrived.
 */
bool world_awaits_pods(const struct world *w, const struct spec_kind *kind);
/* Stop the timers of W. */
void world_stop(struct world *w);
void world_free(struct world *w); /* NULL is allowed */

/* --- lists and objects --- */

/* A list of TYPE begins. Objects of TYPE that do not arrive before world_list_ends are gone. */
void world_list_begins(struct world *w, enum world_type type);
/*
 * JSON is the current version of an object of TYPE. If GONE, the object was deleted, and JSON is its last version.
 */
void world_object(struct world *w, enum world_type type, const char *json, size_t len, bool gone);
/*
 * Pass over the object JSON of TYPE, for the reason WRONG (as in spec_split_fn, or another errno). Its last
 * readable version remains until the object is GONE. .kxfs/log names the object once.
 */
void world_pass_over(struct world *w, enum world_type type, const char *json, size_t len, bool gone,
		     int wrong);
/*
 * True if TYPE must be relisted: some of its objects were passed over because there were more than SPEC_MAX_LISTED,
 * and now there is space for them. True only for the first call after that.
 */
bool world_has_room_again(struct world *w, enum world_type type);
void world_list_ends(struct world *w, enum world_type type);
/* Return how many lists of TYPE have begun. */
unsigned world_rounds(const struct world *w, enum world_type type);
/* True if a list of TYPE has ended. */
bool world_has_listed(const struct world *w, enum world_type type);
/*
 * Treat TYPE as not listed until its next list has ended. Call this when more objects of TYPE belong to jobs than
 * before, since only the next list contains all of them.
 */
void world_await_list(struct world *w, enum world_type type);
/* Forget all objects of TYPE, as after an empty list, because the mount can't see them any more. */
void world_forget_type(struct world *w, enum world_type type);
/*
 * Update the job of TYPE from JSON, which was in the reply to a request. JSON may be older than the cache. WATCHED:
 * the resource version up to which the watch of these jobs is complete; "" while it relists. Return the job as it
 * is now; NULL if JSON can't be parsed, or the job is already deleted.
 */
const struct world_job *world_reply(struct world *w, enum world_type type, const char *json,
				    size_t len, const char *watched);

/*
 * Take a sample of a pod from its PodMetrics, JSON. Return the job of the pod; NULL if the sample is not new, or
 * there is no such pod. JSON may be about an earlier pod of the same name. The time of the sample shows that later,
 * when a snapshot is made.
 */
const struct world_job *world_sample(struct world *w, const char *json, size_t len);

/* --- lookups --- */

enum world_watch_status {
	WORLD_UNCONFIRMED,
	/* the last list was complete: objects that are not in the world do not exist */
	WORLD_CONFIRMED,
	WORLD_FORBIDDEN, /* the user has no right to list such objects */
	WORLD_AWAY,	 /* the server can't be reached, or fails */
	/* the server does not serve such objects, or they are not watched any more */
	WORLD_ABSENT,
};
void world_set_watch_status(struct world *w, enum world_type type, enum world_watch_status status);
enum world_watch_status world_watch_status(const struct world *w, enum world_type type);
const struct world_job *world_find(const struct world *w, const char *uid);
/* Call FN for each job. FN may forget that job. */
void world_each(struct world *w, void (*fn)(void *data, const struct world_job *job), void *data);
/* Return the pods of JOB, including deleted ones, in a malloc'ed array. The views are borrowed. */
const struct spec_pod_view **world_pods(const struct world_job *job, size_t *ret_n);
/* Return the pod of the job JOB whose own uid is the N bytes at UID; NULL if the cluster has no such pod. */
const struct spec_pod_view *world_pod(const struct world *w, const char *job, const char *uid,
				      size_t n);
/* Return the pod group of JOB, or NULL. */
const struct spec_group_view *world_group(const struct world *w, const struct world_job *job);
/* Return Kueue's facts about JOB, except those of its ClusterQueue. */
struct spec_kueue_facts world_kueue(const struct world *w, const struct world_job *job);
/*
 * Set the positions of the jobs in the LocalQueue NAME to the N items of V. Jobs of this queue that V does not list
 * have no position.
 */
void world_set_positions(struct world *w, const char *name, const struct spec_queue_position *v,
			 size_t n);
/* Note whether this user lacks the right to patch Workloads (FIXED). */
void world_set_fixed(struct world *w, bool fixed);
/* Note whether the API server failed to reach Kueue when it was last asked (AWAY). */
void world_set_kueue_away(struct world *w, bool away);
/* Note whether the server lacks Kueue's API (ABSENT). */
void world_set_kueue_absent(struct world *w, bool absent);
/*
 * Note whether JOB was published as not started (WAITS). While JOB waits, a change of its queue or its group also
 * counts as a change of JOB.
 */
void world_set_waiting(const struct world_job *job, bool waits);
/* Report each job that waits, because a fact about all queues or groups has changed. */
void world_waiting_changed(struct world *w);
/* Free JOB and its pods. */
void world_forget(const struct world_job *job);

/* Get the events of job UID. Release them with events_release. Any thread. */
void world_events_of(struct world *w, const char *uid, struct events_list *ret);
/*
 * Return a new reference to the queue NAME of TYPE, or NULL. TYPE is WORLD_QUEUES or WORLD_LOCAL_QUEUES, since
 * queues of both may have the same name. Any thread.
 */
struct spec_queue_view *world_queue(struct world *w, enum world_type type, const char *name);
/* Return the type of the queues that jobs of KIND use: WORLD_QUEUES or WORLD_LOCAL_QUEUES. */
enum world_type world_queues_of(const struct spec_kind *kind);
/* Return a new reference to Kueue's ClusterQueue NAME, or NULL. Any thread. */
struct spec_cluster_queue_view *world_cluster_queue(struct world *w, const char *name);
/*
 * Return new references to all queues in a malloc'ed array. If two queues have the same name, return only
 * Volcano's. Any thread.
 */
struct spec_queue_view **world_queues(struct world *w, size_t *ret_n);
/* Return the number of pods in the cluster, and the number of objects that were passed over. Any thread. */
size_t world_n_pods(const struct world *w);
size_t world_n_passed_over(const struct world *w);
