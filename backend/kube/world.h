/* SPDX-License-Identifier: MIT */
/*
 * The cluster as a world: all that its watches, and replies to requests, have brought of jobs, their pods, the pod
 * groups of the scheduler, events, queues and Kueue's Workloads. The world joins them: a pod, a group and a Workload
 * belong to the job whose uid is that of their controller, or of the controller of a part that is their controller, and
 * so on; an event to the job of the object that it is about, whichever of the two comes first. It says which job has
 * changed, and does not know what follows from that. I/O thread, but for functions that say "any thread".
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/kube/events.h"
#include "spec/kinds/kinds.h"
#include "spec/view/kueue.h"

struct world;

/* The sorts of objects that a mount watches; each comes by a watch of its own. */
enum world_sort {
	WORLD_PODS,
	WORLD_GROUPS,
	WORLD_EVENTS,
	WORLD_QUEUES,	 /* all queues of the cluster */
	WORLD_OWN_QUEUE, /* the queue of the mount alone, where the user may not see the others */
	WORLD_WORKLOADS, /* this and the next: Kueue's */
	WORLD_LOCAL_QUEUES,
	WORLD_CLUSTER_QUEUES,
	WORLD_PARTS, /* objects between jobs and pods; each resource is a sort of its own */
	WORLD_JOBS =
		WORLD_PARTS +
		SPEC_MAX_PARTS, /* jobs of one kind; the jobs of each other kind are a sort after it */
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
 * A job, from when its object or a pod of it is first seen until world_forget. Only world.c writes its fields. A pod
 * that is gone is remembered as long as its job, since its last state says how that attempt has ended.
 */
struct world_job {
	char *uid;
	/* The next three are known together. NULL: only pods of the job have been seen. */
	struct spec_job_view *view;
	const struct spec_kind *kind; /* the kind that VIEW was read as */
	enum world_sort sort;
	struct spec_text *object; /* the JSON of VIEW */
	bool gone;		  /* its object is no longer in the cluster */
	/* How many lists of its sort had begun when the object last came (world_rounds). */
	unsigned round;
	size_t n_pods; /* its pods in the cluster */
	int64_t since; /* when it was first seen, or made, in ns */
};

/* What is known of JOB has changed. This is called in the middle of the change, so it may only take note. */
typedef void (*world_changed_fn)(void *data, const struct world_job *job);

struct world *world_new(struct loop *loop);
/* To be called once, before any object comes. */
void world_set_changed(struct world *w, world_changed_fn fn, void *data);
/*
 * The jobs of SORT are of KIND; NULL (as at first): there are none. To be called before any object of SORT comes, and
 * again when the cluster serves another kind in its place; the next list then says which jobs there still are. Objects
 * that a job of one of the kinds makes are no jobs of their own, so all lists are asked for anew when there is another
 * kind.
 */
void world_set_kind(struct world *w, enum world_sort sort, const struct spec_kind *kind);
/* The cluster has jobs of KIND, which would be of SORT, and the user may not list them; NULL (as at first): not so. */
void world_set_refused(struct world *w, enum world_sort sort, const struct spec_kind *kind);
/* Is the kind called NAME such a one, or with NULL any? */
bool world_is_refused(const struct world *w, const char *name);
/* Any thread: the kind of the jobs of SORT; NULL: there are none. */
const struct spec_kind *world_kind(const struct world *w, enum world_sort sort);
/* Any thread: all kinds, in the order of their sorts. Returns how many. */
size_t world_kinds(const struct world *w, const struct spec_kind *ret[SPEC_MAX_KINDS]);
/* Of which sort jobs of KIND are; WORLD_N_SORTS: there are none. */
enum world_sort world_sort_of(const struct world *w, const struct spec_kind *kind);
/* The objects of SORT, one of WORLD_PARTS, are PART; to be called once. */
void world_set_part(struct world *w, enum world_sort sort, const struct spec_part *part);
/* Any thread: what the objects of SORT are; NULL: none come. */
const struct spec_part *world_part(const struct world *w, enum world_sort sort);
/* Any thread: the sort that brings PART: its own, or that of the jobs of a kind. WORLD_N_SORTS: nothing does. */
enum world_sort world_feed(const struct world *w, const struct spec_part *part);
/*
 * Can a part of the jobs of KIND not be listed, since the user may not or the server fails, so that there may be more
 * pods than are known?
 */
bool world_hides_pods(const struct world *w, const struct spec_kind *kind);
/*
 * May there be more pods of the jobs of KIND (NULL: any) than are known, since the first list of the pods, or of a part
 * that leads to them, has not come?
 */
bool world_awaits_pods(const struct world *w, const struct spec_kind *kind);
/* End all timers of W. */
void world_stop(struct world *w);
void world_free(struct world *w); /* NULL is allowed */

/* --- objects that come --- */

/* A list begins: an object of this sort that has not come when the list ends is gone. */
void world_list_begins(struct world *w, enum world_sort sort);
/* JSON is an object of this sort, as it is now, or (GONE) as it was last. */
void world_told(struct world *w, enum world_sort sort, const char *json, size_t len, bool gone);
/*
 * JSON is an object of SORT that can't be read: WRONG is as in spec_split_fn, or another errno. What is known of it
 * stays until it is GONE. The daemon's log names it once.
 */
void world_pass_over(struct world *w, enum world_sort sort, const char *json, size_t len, bool gone,
		     int wrong);
/*
 * Were objects of SORT passed over, since there were SPEC_MAX_LISTED, and is there room for them again? Then SORT is to
 * be listed anew. True only once.
 */
bool world_has_room_again(struct world *w, enum world_sort sort);
void world_list_ends(struct world *w, enum world_sort sort);
/* How many lists of SORT have begun. */
unsigned world_rounds(const struct world *w, enum world_sort sort);
/* Has a list of SORT come to its end? */
bool world_has_listed(const struct world *w, enum world_sort sort);
/* More objects of SORT belong to jobs than before: only the next list tells of all. */
void world_await_list(struct world *w, enum world_sort sort);
/* The mount may no longer see objects of this sort: the world forgets them, as if a list had been empty. */
void world_forget_sort(struct world *w, enum world_sort sort);
/*
 * The reply to a request has brought the job JSON of SORT. It may be older than what the watch of the jobs has brought,
 * which is all changes up to the version WATCHED ("": the watch lists anew). Returns the job as it is known now; NULL:
 * it can't be read, or is gone already.
 */
const struct world_job *world_reply(struct world *w, enum world_sort sort, const char *json,
				    size_t len, const char *watched);

/*
 * JSON is the PodMetrics of a pod, a look at what it uses. Returns the job of the pod if the look is news; NULL: it is
 * not, or there is no such pod. A look at an earlier pod of that name shows by its time, when the snapshot is made.
 */
const struct world_job *world_look(struct world *w, const char *json, size_t len);

/* --- what is known --- */

enum world_sight {
	WORLD_UNCONFIRMED,
	WORLD_CONFIRMED, /* the last list was complete: an object that the world does not know does not exist */
	WORLD_FORBIDDEN, /* the user has no right to see such objects */
	WORLD_AWAY,	 /* the server can't be reached, or does not give them */
	WORLD_ABSENT,	 /* the server does not serve them, or nobody needs them any more */
};
void world_set_sight(struct world *w, enum world_sort sort, enum world_sight sight);
enum world_sight world_sight_of(const struct world *w, enum world_sort sort);
const struct world_job *world_find(const struct world *w, const char *uid);
/* Call FN for each job; FN may forget the job that it is called for. */
void world_each(struct world *w, void (*fn)(void *data, const struct world_job *job), void *data);
/* The pods of JOB, also those that are gone, in a malloc'ed array; the views are borrowed. */
const struct spec_pod_view **world_pods(const struct world_job *job, size_t *ret_n);
/* The pod in the cluster whose uid is the N bytes at UID, if it is one of job JOB; else NULL. */
const struct spec_pod_view *world_pod(const struct world *w, const char *job, const char *uid,
				      size_t n);
/* The group of JOB, which has what the scheduler says of its pods; NULL: nothing is known. */
const struct spec_group_view *world_group(const struct world *w, const struct world_job *job);
/* What Kueue says of JOB, without the ClusterQueue. */
struct spec_kueue_facts world_kueue(const struct world *w, const struct world_job *job);
/* V has the N places in the LocalQueue NAME as they are now; jobs of that queue that are not among them have none. */
void world_set_places(struct world *w, const char *name, const struct spec_queue_position *v,
		      size_t n);
/* FIXED: this user may not patch Workloads; else the user may. */
void world_set_fixed(struct world *w, bool fixed);
/* AWAY: the server can't reach Kueue; else it can, or that is not known any more. */
void world_set_kueue_away(struct world *w, bool away);
/* ABSENT: the server does not serve Kueue's API. */
void world_set_kueue_absent(struct world *w, bool absent);
/*
 * JOB was shown as one that has not started (WAITS), or as another: while it waits, changed() is called when what it
 * waits for changes.
 */
void world_set_waiting(const struct world_job *job, bool waits);
/* Something that concerns all queues or groups has changed: changed() is called for each job that waits. */
void world_waiting_changed(struct world *w);
/* Free JOB, of which nobody needs anything any more. */
void world_forget(const struct world_job *job);

/* Any thread: the events of job UID, to be released by events_release. */
void world_events_of(struct world *w, const char *uid, struct events_list *ret);
/*
 * Any thread: the queue NAME of SORT (WORLD_QUEUES or WORLD_LOCAL_QUEUES, since both may have a queue of one name), as
 * a new reference; NULL: there is none.
 */
struct spec_queue_view *world_queue(struct world *w, enum world_sort sort, const char *name);
/* Which of these two sorts the queues of KIND's jobs are. */
enum world_sort world_queues_of(const struct spec_kind *kind);
/* Any thread: the ClusterQueue NAME of Kueue, a new reference; NULL: none is known. */
struct spec_cluster_queue_view *world_cluster_queue(struct world *w, const char *name);
/* Any thread: all queues, as new references in a malloc'ed array; of two of one name only Volcano's. */
struct spec_queue_view **world_queues(struct world *w, size_t *ret_n);
/* Any thread: how many pods are in the cluster; and how many objects in it were passed over. */
size_t world_n_pods(const struct world *w);
size_t world_n_passed_over(const struct world *w);
