/* SPDX-License-Identifier: MIT */
/*
 * Functions that several files of this folder use: to read metadata, and to make a snapshot from
 * views, step by step. Private to spec/view.
 */
#pragma once

#include "spec/base/tree.h"
#include "spec/view/kueue.h"
#include "spec/view/reader.h"

/* --- meta.c --- */

/*
 * Fill M from OBJECT. M must be zeroed or the result of an earlier call. Return 0, or -EINVAL if
 * the name or the uid is not valid in file names.
 */
int spec_meta_read(const struct spec_value *object, struct spec_meta *m);
/* True if TEXT can be the uid of an object. */
bool spec_meta_is_uid(const char *text);
void spec_meta_clear(struct spec_meta *m);

/* --- roles.c --- */

/* Set V's roles and tasks from SOURCES, in the order in which users see the job's replicas. */
void roles_arrange(struct spec_job_view *v, const struct spec_task_source *sources, size_t n);
/* Free the roles and tasks of V. */
void roles_clear(struct spec_job_view *v);
/*
 * If the object shows all roles and their numbers of replicas, return NULL. Otherwise return a copy
 * of VIEW with more roles and replicas, from PODS and BEFORE, the last snapshot (or NULL). The copy
 * owns only its roles and tasks; release it with roles_clear and free.
 */
struct spec_job_view *roles_grow(const struct spec_job_view *view,
				 const struct spec_pod_view *const *pods, size_t n,
				 const struct spec_job *before);

/* --- pod.c --- */

/* A pod of a job, and the index of its replica in the snapshot. Plain data. */
struct spec_placed_pod {
	size_t replica;
	const struct spec_pod_view *pod;
};

/* Pods of a job or of a replica, ordered by replica, then oldest first. Plain data. */
struct spec_placed_pods {
	const struct spec_placed_pod *v;
	size_t n;
};

/* True if a newer pod of the same replica follows the pod I. */
static inline bool spec_pods_is_followed(struct spec_placed_pods pods, size_t i)
{
	return i + 1 < pods.n && pods.v[i + 1].replica == pods.v[i].replica;
}

/* Return the main container of POD, or NULL if the server has not reported it yet. */
const struct spec_container_view *spec_pod_main(const struct spec_pod_view *pod);
/* True if the pod's node does not respond. It is then unknown whether the pod still runs. */
bool spec_pod_is_lost(const struct spec_pod_view *pod);
/* True if C, a container of POD, has failed and the kubelet will restart it. */
bool spec_pod_loops(const struct spec_pod_view *pod, const struct spec_container_view *c);
/*
 * Return the pod's state by its own status, without regard to its job. The phase determines the
 * state, unless the status of the containers is newer.
 */
enum spec_state spec_pod_state(const struct spec_pod_view *pod);
/* True if the pod's phase is Succeeded or Failed, for which the controllers of jobs wait, too. */
bool spec_pod_is_settled(const struct spec_pod_view *pod);
/* True if a deletion ended the pod. False if the pod ended by itself before the deletion. */
bool spec_pod_was_stopped(const struct spec_pod_view *pod);
/* True if the pod belongs to an earlier attempt of JOB. */
bool spec_pod_is_past(const struct spec_pod_view *pod, const struct spec_job_view *job);
/* Return the final state of POD if it ended by itself; -1 if it was stopped or has not ended. */
int spec_pod_end(const struct spec_pod_view *pod);

/* --- place.c --- */

/*
 * Assign PODS to the replicas of VIEW, and return them in order (malloc'ed). Leave out pods that
 * fit no replica. BEFORE is the last snapshot, or NULL.
 */
struct spec_placed_pods spec_place_pods(const struct spec_job_view *view,
					const struct spec_pod_view *const *pods, size_t n,
					const struct spec_job *before);

/* --- kueue_cause.c --- */

/*
 * True if Kueue will not admit the job automatically: its Workload is deactivated, or Kueue could
 * not start the job and has finished the Workload.
 */
bool spec_kueue_is_off(const struct spec_view_context *ctx);
/* Return the queue in the job's object, else in the Workload, else "" (borrowed). */
const char *spec_kueue_queue(const struct spec_job_view *view, const struct spec_view_context *ctx);
/*
 * Return the ClusterQueue in which the job has quota, else that of its LocalQueue, else ""
 * (borrowed).
 */
const char *spec_kueue_cluster_queue(const struct spec_view_context *ctx);
/* True if Kueue has admitted the job, and has not evicted it since. */
bool spec_kueue_lets_run(const struct spec_view_context *ctx);
/* Return why Kueue has not admitted JOB, or has evicted it. The caller owns the text. */
struct spec_cause spec_kueue_cause(const struct spec_job *job, const struct spec_job_view *view,
				   const struct spec_view_context *ctx);

/* --- cause.c --- */

/* Return why JOB waits. JOB's state and replicas must be set. The caller owns the text. */
struct spec_cause spec_cause_find(const struct spec_job *job, const struct spec_job_view *view,
				  struct spec_placed_pods pods,
				  const struct spec_view_context *ctx);

/*
 * If the controller gave up JOB because it could not create the pods, return the cause, from
 * events. Its reason is "" if no event explains this. Its text has whole sentences. JOB's replicas
 * must be set, but not its state.
 */
struct spec_cause spec_cause_given_up(const struct spec_job *job, const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx);
/*
 * If events show that the kubelet ended POD's main container because a probe failed, return the
 * message about the probe (borrowed). Otherwise return NULL.
 */
const char *spec_cause_probe(const struct spec_pod_view *pod, const struct spec_view_context *ctx);

/* --- state.c --- */

/* Facts about the job that decide how its replicas are filled in. Plain data. */
struct spec_standing {
	/* row of the object's phase; NULL if it has none, or an unknown one */
	const struct spec_phase *phase;
	/* true if nothing of the job will restart unless a user requests this */
	bool over;
	bool left;	/* true if the job is no longer in the cluster */
	bool ending;	/* spec_phase.ending of PHASE: no pod is replaced any more */
	bool cancelled; /* true if the final state is or will be CANCELLED */
	/* true if the pods show that the job has failed, before its phase does */
	bool failed;
	bool pods_late; /* as in spec_view_context */
	bool unseen;	/* true if the job may have pods that kxfs does not know */
	/* when the job ended; also the end of replicas whose own end has no known time */
	int64_t ended;
};

/* The state of a job, and why. Plain data. REASON is borrowed, MESSAGE is malloc'ed. */
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
/* Determine the state of JOB, whose replicas must be set. */
struct spec_judgement spec_judge(const struct spec_job *job, const struct spec_job_view *view,
				 struct spec_placed_pods pods, const struct spec_standing *standing,
				 const struct spec_view_context *ctx);

/* --- replica.c --- */

/*
 * Fill R from PODS, the replica's pods. BEFORE is the replica in the last snapshot, or NULL. R's
 * name, role and id must be set.
 */
void spec_replica_fill(struct spec_replica *r, struct spec_placed_pods pods,
		       const struct spec_job_view *job, const struct spec_standing *standing,
		       const struct spec_replica *before);

/* --- workload.c --- */

/* Fill V from the condition TYPE in STATUS. */
void spec_condition_read(struct spec_condition_view *v, const struct spec_value *status,
			 const char *type);
void spec_condition_clear(struct spec_condition_view *v);

/* --- local_queue.c --- */

/* True if a queue with this stop policy admits no jobs. POLICY is NULL if unknown. */
bool spec_queue_is_stopped(const char *policy);

/* Read the members of a LocalQueue. Return them malloc'ed. */
struct spec_local_queue *spec_local_queue_read(const struct spec_value *object);
void spec_local_queue_free(struct spec_local_queue *q); /* NULL is allowed */
bool spec_local_queue_same(const struct spec_local_queue *a, const struct spec_local_queue *b);
/* Implement spec_queue_view_text for V, a LocalQueue. */
void spec_local_queue_text(const struct spec_queue_view *v,
			   const struct spec_cluster_queue_view *cluster, size_t pending,
			   size_t running, char **ret, size_t *ret_len);
