/* SPDX-License-Identifier: MIT */
/*
 * How the files of this folder use each other: the metadata of all objects, and the steps from views to a snapshot.
 * Private to spec/view.
 */
#pragma once

#include "spec/base/tree.h"
#include "spec/view/kueue.h"
#include "spec/view/reader.h"

/* --- meta.c --- */

/*
 * Fill M, which is zeroed or has texts of spec_set. Return 0, or -EINVAL if the name or the uid
 * can't be shown.
 */
int spec_meta_read(const struct spec_value *object, struct spec_meta *m);
/* True if TEXT can be the uid of an object. */
bool spec_meta_is_uid(const char *text);
void spec_meta_clear(struct spec_meta *m);

/*
 * Return the first of VERSIONS (which end with NULL) in JSON, the description of an API group, or
 * NULL.
 */
const char *spec_meta_version(const char *json, size_t len, const char *const *versions);

/* --- roles.c --- */

/* Make V's roles and tasks from SOURCES, in the display order of the job's replicas. */
void roles_arrange(struct spec_job_view *v, const struct spec_task_source *sources, size_t n);
/* Free the roles and tasks of V. */
void roles_clear(struct spec_job_view *v);
/*
 * If PODS decide roles of VIEW, return a view that also has the roles and replicas of PODS and of
 * BEFORE, the last snapshot (or NULL). Its other members are borrowed from VIEW: call roles_clear,
 * then free it. Return NULL if the object has all roles.
 */
struct spec_job_view *roles_grow(const struct spec_job_view *view,
				 const struct spec_pod_view *const *pods, size_t n,
				 const struct spec_job *before);

/* --- pod.c --- */

/* A pod of a job, and the index of its replica. Plain data. */
struct spec_placed_pod {
	size_t replica;
	const struct spec_pod_view *pod;
};

/*
 * Pods of a job, or of one of its replicas, ordered by replica and then by age, oldest first. Plain
 * data.
 */
struct spec_placed_pods {
	const struct spec_placed_pod *v;
	size_t n;
};

/*
 * Return the container whose output is the replica's; NULL if the server has not reported it yet.
 */
const struct spec_container_view *spec_pod_main(const struct spec_pod_view *pod);
/* True if the pod's node does not respond, so that the pod may or may not run. */
bool spec_pod_is_lost(const struct spec_pod_view *pod);
/* True if C has failed and will be restarted in the same pod. */
bool spec_pod_loops(const struct spec_pod_view *pod, const struct spec_container_view *c);
/*
 * Return the pod's state by its own status, independent of its job: its phase, or the state that
 * follows from its containers.
 */
enum spec_state spec_pod_state(const struct spec_pod_view *pod);
/* True if the pod's phase is a final one. Its controller also decides by the phase. */
bool spec_pod_is_settled(const struct spec_pod_view *pod);
/* True if the pod ended because it was deleted, not by itself before the deletion. */
bool spec_pod_was_stopped(const struct spec_pod_view *pod);
/* True if the pod belongs to an attempt of JOB that is over. */
bool spec_pod_is_past(const struct spec_pod_view *pod, const struct spec_job_view *job);
/* Return the final state of POD if it ended by itself; -1 if it has not ended, or was stopped. */
int spec_pod_end(const struct spec_pod_view *pod);

/* --- place.c --- */

/*
 * Return the pods among PODS that belong to the job, in order; the list is malloc'ed. BEFORE: the
 * last snapshot, or NULL.
 */
struct spec_placed_pods spec_place_pods(const struct spec_job_view *view,
					const struct spec_pod_view *const *pods, size_t n,
					const struct spec_job *before);

/* --- kueue_cause.c --- */

/* True if Kueue does not admit the job until its Workload is set to active again. */
bool spec_kueue_is_off(const struct spec_view_context *ctx);
/*
 * Return the queue that the job's object names, or else the queue of its Workload; "" if neither
 * has one. Borrowed.
 */
const char *spec_kueue_queue(const struct spec_job_view *view, const struct spec_view_context *ctx);
/*
 * Return the ClusterQueue that has given quota to the job, or to which the job's queue belongs; ""
 * if unknown. Borrowed.
 */
const char *spec_kueue_cluster_queue(const struct spec_view_context *ctx);
/* True if Kueue has admitted the job and not evicted it since. Its pods then show its state. */
bool spec_kueue_lets_run(const struct spec_view_context *ctx);
/*
 * Return why Kueue has not admitted JOB, refuses it, or has evicted it. The caller owns the text.
 */
struct spec_cause spec_kueue_cause(const struct spec_job *job, const struct spec_job_view *view,
				   const struct spec_view_context *ctx);

/* --- cause.c --- */

/*
 * Return why JOB waits. JOB is not ending, and its state and replicas are set. The caller owns the
 * text.
 */
struct spec_cause spec_cause_find(const struct spec_job *job, const struct spec_job_view *view,
				  struct spec_placed_pods pods,
				  const struct spec_view_context *ctx);

/*
 * Return why a job was abandoned whose pods could not be made, in whole sentences, according to
 * events. JOB's replicas are set, but not its state. The reason is empty if no event explains it.
 */
struct spec_cause spec_cause_given_up(const struct spec_job *job, const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx);
/*
 * Return the message of the probe that ended the main container of POD, borrowed; NULL if no such
 * message is known.
 */
const char *spec_cause_probe(const struct spec_pod_view *pod, const struct spec_view_context *ctx);

/* --- state.c --- */

/*
 * What decides about replicas before they are filled in, for example whether they may restart.
 * Plain data.
 */
struct spec_standing {
	const struct spec_phase *phase; /* NULL if the object has none, or an unknown one */
	bool over;			/* no part of the job restarts, unless a user requests it */
	bool left;			/* the job is no longer in the cluster */
	bool ending;			/* the job is over, or about to be */
	bool cancelled;			/* the job ends, or has ended, as CANCELLED */
	bool failed;			/* its pods have failed, though its phase may be old */
	bool pods_late;			/* see spec_view_context */
	bool unseen;			/* it may have pods that are not known */
	int64_t ended; /* when the job ended, for replicas that have no time of their own */
};

/*
 * The state of a job. Plain data; the reason is borrowed from its source, the message is malloc'ed.
 */
struct spec_judgement {
	enum spec_state state;
	bool suspended;
	bool given_up;
	const char *reason;
	char *message;
};

struct spec_standing spec_standing_of(const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx);
/* Determine the state of JOB, which has its replicas. */
struct spec_judgement spec_judge(const struct spec_job *job, const struct spec_job_view *view,
				 struct spec_placed_pods pods, const struct spec_standing *standing,
				 const struct spec_view_context *ctx);

/* --- replica.c --- */

/*
 * Fill R, whose name, role and id are set, from its PODS and from BEFORE, the replica in the last
 * snapshot (or NULL).
 */
void spec_replica_fill(struct spec_replica *r, struct spec_placed_pods pods,
		       const struct spec_job_view *job, const struct spec_standing *standing,
		       const struct spec_replica *before);

/* --- local_queue.c --- */

/* Read a LocalQueue's object. malloc'ed. */
struct spec_local_queue *spec_local_queue_read(const struct spec_value *object);
void spec_local_queue_free(struct spec_local_queue *q); /* NULL is allowed */
bool spec_local_queue_same(const struct spec_local_queue *a, const struct spec_local_queue *b);
/* Like spec_queue_view_text, for a LocalQueue. */
void spec_local_queue_text(const struct spec_queue_view *v,
			   const struct spec_cluster_queue_view *cluster, size_t pending,
			   size_t running, char **ret, size_t *ret_len);
