/* SPDX-License-Identifier: MIT */
/*
 * Functions that several files of this folder use: they read the metadata of objects, and make a
 * snapshot from views, step by step. Private to spec/view.
 */
#pragma once

#include "spec/base/tree.h"
#include "spec/view/kueue.h"
#include "spec/view/reader.h"

/* --- meta.c --- */

/*
 * Fill M from OBJECT. M must be zeroed, or have been filled before. Return 0, or -EINVAL if the
 * name or the uid is not valid in file names.
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
 * If the job's object names all roles and their numbers of replicas, return NULL. Otherwise return
 * a copy of VIEW with additional roles and replicas from PODS and from BEFORE, the last snapshot
 * (or NULL). The copy owns only its roles and tasks, and borrows all else from VIEW. Release it
 * with roles_clear and free.
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

/* Return the main container of POD, or NULL if the server has not reported it yet. */
const struct spec_container_view *spec_pod_main(const struct spec_pod_view *pod);
/* True if the pod's node does not respond. It is then unknown whether the pod still runs. */
bool spec_pod_is_lost(const struct spec_pod_view *pod);
/* True if C, a container of POD, has failed and the kubelet will restart it. */
bool spec_pod_loops(const struct spec_pod_view *pod, const struct spec_container_view *c);
/*
 * Return the pod's state according to its own status, without regard to its job. The pod's phase
 * determines the state, unless the status of the containers is more recent than the phase.
 */
enum spec_state spec_pod_state(const struct spec_pod_view *pod);
/*
 * True if the pod's phase is final: Succeeded or Failed. The controllers of jobs wait for this
 * phase, too.
 */
bool spec_pod_is_settled(const struct spec_pod_view *pod);
/*
 * True if the pod ended because it was deleted. False if it ended by itself, even if it was deleted
 * later.
 */
bool spec_pod_was_stopped(const struct spec_pod_view *pod);
/* True if the pod belongs to an attempt of JOB that is over. */
bool spec_pod_is_past(const struct spec_pod_view *pod, const struct spec_job_view *job);
/* Return the final state of POD if it ended by itself; -1 if it was stopped or has not ended. */
int spec_pod_end(const struct spec_pod_view *pod);

/* --- place.c --- */

/*
 * Assign PODS to the replicas of VIEW. Return the assigned pods in order; the list is malloc'ed.
 * Pods that fit no replica are left out. BEFORE is the last snapshot, or NULL.
 */
struct spec_placed_pods spec_place_pods(const struct spec_job_view *view,
					const struct spec_pod_view *const *pods, size_t n,
					const struct spec_job *before);

/* --- kueue_cause.c --- */

/*
 * True if Kueue does not admit the job automatically, because the job's Workload is deactivated, or
 * because Kueue could not start the job and has finished the Workload.
 */
bool spec_kueue_is_off(const struct spec_view_context *ctx);
/*
 * Return the queue that the job's object names, else the queue of the Workload, or "" if neither
 * has one. The text is borrowed.
 */
const char *spec_kueue_queue(const struct spec_job_view *view, const struct spec_view_context *ctx);
/*
 * Return the ClusterQueue in which the job has quota, else the ClusterQueue of its LocalQueue, or
 * "" if unknown. The text is borrowed.
 */
const char *spec_kueue_cluster_queue(const struct spec_view_context *ctx);
/* True if Kueue lets the job run: it has admitted the job, and has not evicted it since. */
bool spec_kueue_lets_run(const struct spec_view_context *ctx);
/*
 * Return why Kueue has not admitted JOB, will not admit it, or has evicted it. The caller owns the
 * text.
 */
struct spec_cause spec_kueue_cause(const struct spec_job *job, const struct spec_job_view *view,
				   const struct spec_view_context *ctx);

/* --- cause.c --- */

/* Return why JOB waits. Its state and its replicas must be set. The caller owns the text. */
struct spec_cause spec_cause_find(const struct spec_job *job, const struct spec_job_view *view,
				  struct spec_placed_pods pods,
				  const struct spec_view_context *ctx);

/*
 * Return the cause if the controller gave up on JOB because it could not create the job's pods. The
 * text of the cause consists of whole sentences, and is made from events. If no event explains the
 * failure, the reason of the returned cause is empty. JOB's replicas must be set, but not its
 * state.
 */
struct spec_cause spec_cause_given_up(const struct spec_job *job, const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx);
/*
 * If the kubelet ended the main container of POD because a probe failed, return the message about
 * the probe (borrowed). Return NULL if no event reports such a probe.
 */
const char *spec_cause_probe(const struct spec_pod_view *pod, const struct spec_view_context *ctx);

/* --- state.c --- */

/*
 * Facts about the job that affect how its replicas are filled in, for example whether they may
 * restart. Plain data.
 */
struct spec_standing {
	const struct spec_phase *phase; /* NULL if the object has no phase, or an unknown one */
	/* true if no part of the job will restart unless a user requests it */
	bool over;
	bool left;	/* true if the job is no longer in the cluster */
	bool ending;	/* true if the job is over or about to be over */
	bool cancelled; /* true if the job's final state is or will be CANCELLED */
	/* true if the pods have failed, even if the job's phase does not show it yet */
	bool failed;
	bool pods_late; /* as in spec_view_context */
	bool unseen;	/* true if the job may have pods that kxfs does not know */
	/* when the job ended; also used for replicas whose own end has no known time */
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
 * Fill R from PODS, which are the replica's pods, and from BEFORE, the same replica in the last
 * snapshot (or NULL). R's name, role and id must be set.
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
/* Return the text of queues/NAME/status for V, a LocalQueue. See spec_queue_view_text. */
void spec_local_queue_text(const struct spec_queue_view *v,
			   const struct spec_cluster_queue_view *cluster, size_t pending,
			   size_t running, char **ret, size_t *ret_len);
