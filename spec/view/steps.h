/* SPDX-License-Identifier: MIT */
/* How the files of this folder make a snapshot from views. Private to spec/view. */
#pragma once

#include "spec/base/tree.h"
#include "spec/view/kueue.h"
#include "spec/view/reader.h"

/* --- meta.c --- */

/*
 * Fill M, which is zeroed or from an earlier call. Return 0, or -EINVAL if OBJECT's name or uid is
 * not valid in a file name.
 */
int spec_meta_read(const struct spec_value *object, struct spec_meta *m);
bool spec_meta_is_uid(const char *text);
void spec_meta_clear(struct spec_meta *m);

/* --- roles.c --- */

/* Set V's roles and tasks from SOURCES, in the order that users see. */
void roles_arrange(struct spec_job_view *v, const struct spec_task_source *sources, size_t n);
void roles_clear(struct spec_job_view *v);
/* Compare two elements of spec_job_view.by_name. */
int roles_by_name(const void *a, const void *b);
/*
 * Return NULL if the object shows all roles and replicas. Otherwise, return a copy of VIEW with
 * more roles and replicas, from PODS and BEFORE, the last snapshot (or NULL). The copy owns only
 * its roles and tasks: release it with roles_clear and free.
 */
struct spec_job_view *roles_grow(const struct spec_job_view *view,
				 const struct spec_pod_view *const *pods, size_t n,
				 const struct spec_job *before);

/* --- pod.c --- */

/* A pod and the index of its replica in the snapshot. Plain data. */
struct spec_placed_pod {
	size_t replica;
	const struct spec_pod_view *pod;
};

/* Pods, ordered by replica, then oldest first. Plain data. */
struct spec_placed_pods {
	const struct spec_placed_pod *v;
	size_t n;
};

/* True if a newer pod of the same replica follows pod I. */
static inline bool spec_pods_is_followed(struct spec_placed_pods pods, size_t i)
{
	return i + 1 < pods.n && pods.v[i + 1].replica == pods.v[i].replica;
}

/* Return POD's main container, or NULL if the server has not reported it yet. */
const struct spec_container_view *spec_pod_main(const struct spec_pod_view *pod);
/* True if POD may still run, but its node does not respond. */
bool spec_pod_is_lost(const struct spec_pod_view *pod);
/* True if C, a container of POD, has failed and will be restarted. */
bool spec_pod_loops(const struct spec_pod_view *pod, const struct spec_container_view *c);
/*
 * Return POD's state without regard to its job. The containers' status determines the state if this
 * status is newer than POD's phase.
 */
enum spec_state spec_pod_state(const struct spec_pod_view *pod);
/*
 * True if POD's phase is final. The job's controller does not regard POD as ended before its phase
 * is final.
 */
bool spec_pod_is_settled(const struct spec_pod_view *pod);
/* True if POD ended because it was deleted, not because its program ended. */
bool spec_pod_was_stopped(const struct spec_pod_view *pod);
/* True if the pod belongs to an earlier attempt of JOB. */
bool spec_pod_is_past(const struct spec_pod_view *pod, const struct spec_job_view *job);
/* Return POD's final state if it ended by itself; -1 if it was stopped or has not ended. */
int spec_pod_end(const struct spec_pod_view *pod);

/* --- place.c --- */

/*
 * Assign PODS to the replicas of VIEW. Return them ordered, malloc'ed, without the pods that fit no
 * replica. BEFORE is the last snapshot, or NULL.
 */
struct spec_placed_pods spec_place_pods(const struct spec_job_view *view,
					const struct spec_pod_view *const *pods, size_t n,
					const struct spec_job *before);

/* --- kueue_cause.c --- */

/* True if the job's Workload is deactivated, or if Kueue could not start the job. */
bool spec_kueue_is_off(const struct spec_view_context *ctx);
/* Return the queue in the job's object, else in the Workload (borrowed), or "". */
const char *spec_kueue_queue(const struct spec_job_view *view, const struct spec_view_context *ctx);
/*
 * Return the ClusterQueue where the job has quota. If it has none, return the ClusterQueue of its
 * LocalQueue, or "" (borrowed).
 */
const char *spec_kueue_cluster_queue(const struct spec_view_context *ctx);
/* True if Kueue has admitted the job and has not evicted it since. */
bool spec_kueue_lets_run(const struct spec_view_context *ctx);
/* Return why Kueue does not let JOB run. The caller owns the text. */
struct spec_cause spec_kueue_cause(const struct spec_job *job, const struct spec_job_view *view,
				   const struct spec_view_context *ctx);

/* --- cause.c --- */

/* Return why JOB waits. The caller owns the text. JOB's state and replicas must be set. */
struct spec_cause spec_cause_find(const struct spec_job *job, const struct spec_job_view *view,
				  struct spec_placed_pods pods,
				  const struct spec_view_context *ctx);

/*
 * Return why the controller gave up JOB, in whole sentences, if events show that it could not
 * create the pods. If they do not show this, the reason is "". JOB's replicas must be set.
 */
struct spec_cause spec_cause_given_up(const struct spec_job *job, const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx);
/* Return the message (borrowed) of the failed probe that ended POD's main container, or NULL. */
const char *spec_cause_probe(const struct spec_pod_view *pod, const struct spec_view_context *ctx);

/* --- state.c --- */

/* What kxfs determines about a job before it fills in the replicas. Plain data. */
struct spec_standing {
	const struct spec_phase *phase; /* row of the object's phase, or NULL */
	/*
	 * True if the job has ended or left the cluster. Nothing restarts then, unless a user
	 * requests it.
	 */
	bool over;
	bool left;	/* the job is no longer in the cluster */
	bool ending;	/* spec_phase.ending of PHASE */
	bool cancelled; /* the final state is CANCELLED */
	/* True if the pods show that the job has failed, before its phase does. */
	bool failed;
	bool pods_late; /* as in spec_view_context */
	bool unseen;	/* kxfs may not know all pods */
	/* When the job ended. A replica whose own end has no known time gets this time, too. */
	int64_t ended;
};

/* A job's state and its reason. Plain data. REASON is borrowed, MESSAGE malloc'ed. */
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

/* Fill R, whose name, role and id are set, from its PODS and its last snapshot BEFORE (or NULL). */
void spec_replica_fill(struct spec_replica *r, struct spec_placed_pods pods,
		       const struct spec_job_view *job, const struct spec_standing *standing,
		       const struct spec_replica *before);

/* --- workload.c --- */

void spec_condition_read(struct spec_condition_view *v, const struct spec_value *status,
			 const char *type);
void spec_condition_clear(struct spec_condition_view *v);

/* --- local_queue.c --- */

/* True if a queue with this stop policy (or NULL) admits no jobs. */
bool spec_queue_is_stopped(const char *policy);

struct spec_kueue_queue *spec_kueue_queue_read(const struct spec_value *object);
void spec_kueue_queue_free(struct spec_kueue_queue *q); /* NULL is allowed */
/* Implement spec_queue_view_text for a LocalQueue. */
void spec_local_queue_text(const struct spec_queue_view *v, const struct spec_queue_view *of,
			   size_t pending, size_t running, char **ret, size_t *ret_len);
