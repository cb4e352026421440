/* SPDX-License-Identifier: MIT */
/*
 * A cache of the cluster's objects: jobs, their pods, the scheduler's pod groups, events, queues, Kueue's Workloads,
 * as watches and replies have returned them. The world joins them: a pod, a group and a Workload belong to the job
 * that is their controller, or the controller of a part that is their controller, and so on; an event to the job of
 * the object that it is about. They may arrive in any order. The world reports which job has changed, and nothing
 * else. I/O thread, unless noted otherwise.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/kube/events.h"
#include "spec/kinds/kinds.h"
#include "spec/view/kueue.h"

struct world;

/* The sorts of objects; each has a watch of its own. */
enum world_sort {
	WORLD_PODS,
	WORLD_GROUPS,
	WORLD_EVENTS,
	WORLD_QUEUES,	 /* all queues of the cluster */
	WORLD_OWN_QUEUE, /* only the mount's queue, if the user may not see the others */
	WORLD_WORKLOADS, /* this and the next two are Kueue's */
	WORLD_LOCAL_QUEUES,
	WORLD_CLUSTER_QUEUES,
	WORLD_PARTS, /* objects between jobs and pods, a sort for each resource */
	WORLD_JOBS = WORLD_PARTS + SPEC_MAX_PARTS, /* jobs, a sort for each kind */
	WORLD_N_SORTS = WORLD_JOBS + SPEC_MAX_KINDS
};

static inline bool world_is_of_parts(enum world_sort sort)
{
	return sort >= WORLD_PARTS && sort < WORLD_JOBS;
}

static inline bool world_is_of_jobs(enum world_sort sort)
{
	return sort >= WORLD_JOBS;
}

/*
 * A job, from the moment at which its object or a pod of it is first seen, until world_forget. Only
 * world.c writes its fields. A deleted pod is kept as long as its job, since its last state shows
 * how that attempt has ended.
 */
struct world_job {
	char *uid;
	/* NULL while only pods of the job have been seen; the next two are set with it. */
	struct spec_job_view *view;
	const struct spec_kind *kind; /* VIEW was parsed as this */
	enum world_sort sort;
	struct spec_text *object; /* the JSON of VIEW */
	bool gone;		  /* its object was deleted */
	unsigned round;		  /* world_rounds when the object last arrived */
	size_t n_pods;		  /* its pods in the cluster */
	int64_t since;		  /* when it was first seen or created, in ns */
};

/* JOB has changed. This is called in the middle of the change, so it must not call back. */
typedef void (*world_changed_fn)(void *data, const struct world_job *job);

struct world *world_new(struct loop *loop);
/* Call this once, before any object arrives. */
void world_set_changed(struct world *w, world_changed_fn fn, void *data);
/*
 * Set the kind of the jobs of SORT; NULL (as at first): there are none. Call this before any object
 * of SORT arrives, and again when the cluster serves another kind instead; the next list then shows
 * which jobs remain. When a kind is added, all sorts are relisted, because objects that a job of
 * the new kind makes are not jobs of their own.
 */
void world_set_kind(struct world *w, enum world_sort sort, const struct spec_kind *kind);
/*
 * Record that the user may not list the jobs of KIND, which would be objects of SORT. KIND is NULL,
 * as at first, if the user may list them.
 */
void world_set_refused(struct world *w, enum world_sort sort, const struct spec_kind *kind);
/* True if the user may not list the jobs of the kind NAME; with NULL, those of any kind. */
bool world_is_refused(const struct world *w, const char *name);
/* Any thread: return the kind of the jobs of SORT, or NULL. */
const struct spec_kind *world_kind(const struct world *w, enum world_sort sort);
/* Any thread: get all kinds, in the order of their sorts. Return their number. */
size_t world_kinds(const struct world *w, const struct spec_kind *ret[SPEC_MAX_KINDS]);
/* Return the sort of the jobs of KIND; WORLD_N_SORTS if there are none. */
enum world_sort world_sort_of(const struct world *w, const struct spec_kind *kind);
/* The objects of SORT, one of WORLD_PARTS, are PART. Call this once. */
void world_set_part(struct world *w, enum world_sort sort, const struct spec_part *part);
/* Any thread: return what the objects of SORT are, or NULL. */
const struct spec_part *world_part(const struct world *w, enum world_sort sort);
/*
 * Any thread: return the sort whose objects include PART: its own sort, or that of a kind;
 * WORLD_N_SORTS if there is none.
 */
enum world_sort world_feed(const struct world *w, const struct spec_part *part);
/* True if a part of the jobs of KIND can't be listed, so that pods may be missing. */
bool world_hides_pods(const struct world *w, const struct spec_kind *kind);
/*
 * True if pods of the jobs of KIND (NULL: any) may be missing because the first list of pods, or of a part, has not
 * arrived.
 */
bool world_awaits_pods(const struct world *w, const struct spec_kind *kind);
/* Stop all timers of W. */
void world_stop(struct world *w);
void world_free(struct world *w); /* NULL is allowed */

/* --- lists and objects --- */

/* A list begins: objects of SORT that have not arrived when it ends are gone. */
void world_list_begins(struct world *w, enum world_sort sort);
/* JSON is an object of SORT, as it is now, or (GONE) its last version before it was deleted. */
void world_object(struct world *w, enum world_sort sort, const char *json, size_t len, bool gone);
/*
 * Pass over the object JSON of SORT, for the reason WRONG (as in spec_split_fn, or another errno). Its last version
 * remains until it is GONE. The daemon's log names it once.
 */
void world_pass_over(struct world *w, enum world_sort sort, const char *json, size_t len, bool gone,
		     int wrong);
/*
 * True, once, if objects of SORT were passed over because there were SPEC_MAX_LISTED, and there is space again: relist
 * SORT.
 */
bool world_has_room_again(struct world *w, enum world_sort sort);
void world_list_ends(struct world *w, enum world_sort sort);
/* Return how many lists of SORT have begun. */
unsigned world_rounds(const struct world *w, enum world_sort sort);
/* True if a list of SORT has ended. */
bool world_has_listed(const struct world *w, enum world_sort sort);
/* More objects of SORT belong to jobs than before: only the next list has all of them. */
void world_await_list(struct world *w, enum world_sort sort);
/* Forget the objects of SORT, as if a list had been empty: the mount may not see them any more. */
void world_forget_sort(struct world *w, enum world_sort sort);
/*
 * The reply to a request had the job JSON of SORT. It may be older than the watch of the jobs, which is complete up to
 * the version WATCHED ("": it relists). Return the job as it is now; NULL: it can't be parsed, or is already gone.
 */
const struct world_job *world_reply(struct world *w, enum world_sort sort, const char *json,
				    size_t len, const char *watched);

/*
 * JSON is the PodMetrics of a pod. Return the job of the pod if the sample is new; NULL: it is not, or there is no
 * such pod. A sample of an earlier pod of that name is recognized by its time, when the snapshot is made.
 */
const struct world_job *world_sample(struct world *w, const char *json, size_t len);

/* --- lookups --- */

enum world_watch_status {
	WORLD_UNCONFIRMED,
	WORLD_CONFIRMED, /* the last list was complete: an object that is not in the world does not exist */
	WORLD_FORBIDDEN, /* the user has no right to see such objects */
	WORLD_AWAY,	 /* the server can't be reached, or fails */
	WORLD_ABSENT,	 /* the server does not serve them, or they are not watched any more */
};
void world_set_watch_status(struct world *w, enum world_sort sort, enum world_watch_status status);
enum world_watch_status world_watch_status(const struct world *w, enum world_sort sort);
const struct world_job *world_find(const struct world *w, const char *uid);
/* Call FN for each job; FN may forget the job that it is called for. */
void world_each(struct world *w, void (*fn)(void *data, const struct world_job *job), void *data);
/* Return the pods of JOB, also deleted ones, in a malloc'ed array; the views are borrowed. */
const struct spec_pod_view **world_pods(const struct world_job *job, size_t *ret_n);
/* Return the pod in the cluster whose uid is the N bytes at UID, if it belongs to job JOB; else NULL. */
const struct spec_pod_view *world_pod(const struct world *w, const char *job, const char *uid,
				      size_t n);
/* Return the pod group of JOB, or NULL. */
const struct spec_group_view *world_group(const struct world *w, const struct world_job *job);
/* Return the facts about JOB in Kueue, without the ClusterQueue. */
struct spec_kueue_facts world_kueue(const struct world *w, const struct world_job *job);
/* V has all N positions in the LocalQueue NAME; the other jobs of that queue have none. */
void world_set_positions(struct world *w, const char *name, const struct spec_queue_position *v,
			 size_t n);
/* FIXED: this user may not patch Workloads. */
void world_set_fixed(struct world *w, bool fixed);
/* AWAY: the server can't reach Kueue, according to its last reply. */
void world_set_kueue_away(struct world *w, bool away);
/* ABSENT: the server does not serve Kueue's API. */
void world_set_kueue_absent(struct world *w, bool absent);
/*
 * JOB was published as not started (WAITS), or as started. While it waits, a change of its queue or
 * its group changes it, too.
 */
void world_set_waiting(const struct world_job *job, bool waits);
/* Something about all queues or groups has changed: report each job that waits. */
void world_waiting_changed(struct world *w);
/* Free JOB and its pods. */
void world_forget(const struct world_job *job);

/* Any thread: get the events of job UID; release them by events_release. */
void world_events_of(struct world *w, const char *uid, struct events_list *ret);
/*
 * Any thread: return a new reference to the queue NAME of SORT (WORLD_QUEUES or WORLD_LOCAL_QUEUES, since both may
 * have that name), or NULL.
 */
struct spec_queue_view *world_queue(struct world *w, enum world_sort sort, const char *name);
/* Return which of these two sorts the queues of KIND's jobs are. */
enum world_sort world_queues_of(const struct spec_kind *kind);
/* Any thread: return a new reference to Kueue's ClusterQueue NAME, or NULL. */
struct spec_cluster_queue_view *world_cluster_queue(struct world *w, const char *name);
/* Any thread: return new references to all queues in a malloc'ed array; of two with one name only Volcano's. */
struct spec_queue_view **world_queues(struct world *w, size_t *ret_n);
/* Any thread: return the number of pods in the cluster, and of objects that were passed over. */
size_t world_n_pods(const struct world *w);
size_t world_n_passed_over(const struct world *w);
