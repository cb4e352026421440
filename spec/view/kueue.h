/* SPDX-License-Identifier: MIT */
/*
 * Views of Kueue's objects, v1beta1 and v1beta2; view.h has the conventions. A Workload shows
 * whether Kueue admits a job of any kind. A LocalQueue belongs to a namespace. Its jobs use the
 * quota of a ClusterQueue. The visibility API reports the positions of waiting jobs.
 */
#pragma once

#include "spec/view/watched.h"

/* The label of a job that names its LocalQueue. */
#define SPEC_KUEUE_QUEUE "kueue.x-k8s.io/queue-name"

#define SPEC_KUEUE_PRIORITY "kueue.x-k8s.io/priority-class"

#define SPEC_KUEUE_GROUP      "kueue.x-k8s.io"
#define SPEC_KUEUE_VISIBILITY "visibility.kueue.x-k8s.io"

/* --- Workloads; the I/O thread owns them --- */

enum spec_workload_condition {
	SPEC_WORKLOAD_RESERVED,
	SPEC_WORKLOAD_ADMITTED,
	SPEC_WORKLOAD_EVICTED,
	SPEC_WORKLOAD_FINISHED,
	SPEC_WORKLOAD_TARGET,	/* Kueue is about to deactivate the Workload */
	SPEC_WORKLOAD_REQUEUED, /* if false, the Workload is not in its queue */
	SPEC_WORKLOAD_N_CONDITIONS
};

/* A condition. Plain data. IS_SET is false if the object lacks the condition. */
struct spec_condition_view {
	bool is_set;
	bool is_true;
	char *reason;
	char *message;
	int64_t since;
};

/* An admission check that is not Ready. Plain data. */
struct spec_check_view {
	char *name;
	char *state; /* Pending, Retry, Rejected */
	char *message;
};

/* A Workload. Plain data. */
struct spec_workload_view {
	struct spec_meta meta; /* owner_uid: uid of the job, or of the job's owner */
	char *queue;	       /* name of its LocalQueue */
	char *cluster_queue;   /* where it has quota, or "" */
	char *flavors;	       /* as in spec_job */
	char *priority_class;  /* name, or "" */
	int priority;	       /* or SPEC_NO_PRIORITY */
	/* Until when Kueue applies changes of the job's priority-class label. */
	enum {
		/* Never: the pods' PriorityClass sets the priority, or Kueue is too old. */
		SPEC_PRIORITY_FIXED,
		SPEC_PRIORITY_WAITING, /* until the Workload has quota */
		SPEC_PRIORITY_ANY,     /* always */
	} takes_priority;
	bool active; /* spec.active; false if the Workload is deactivated */
	struct spec_condition_view conditions[SPEC_WORKLOAD_N_CONDITIONS];
	struct spec_check_view *checks; /* only checks that are not Ready */
	size_t n_checks;
	unsigned evictions; /* for any reason */
	unsigned requeued;  /* evictions because its pods were not ready in time */
	int64_t requeue_at; /* the earliest time at which Kueue retries, or 0 */
};

/*
 * Return the reason (borrowed) why Kueue will never admit the job again, such as AdmissionCheck,
 * MaximumExecutionTimeExceeded or FailedToStart. Return "" if Kueue may admit it, or if a user has
 * deactivated it.
 */
const char *spec_workload_put_out(const struct spec_workload_view *w);

/* Parse a Workload. Return 0, or -EINVAL if JSON is not an object with a valid name and uid. */
int spec_workload_view_parse(const char *json, size_t len, struct spec_workload_view **ret);
void spec_workload_view_free(struct spec_workload_view *v); /* NULL is allowed */

/* --- queues --- */

/* The members of a LocalQueue or a ClusterQueue. Plain data. */
struct spec_kueue_queue {
	char *stop_policy;		   /* None, Hold, HoldAndDrain */
	struct spec_condition_view active; /* not set if Kueue has not processed the queue yet */
	unsigned pending, reserving, admitted; /* numbers of Workloads */
	struct spec_amounts used, reserved;
	char *cluster_queue; /* of a LocalQueue */
	/* Only a ClusterQueue has the following members. */
	char *strategy; /* BestEffortFIFO, StrictFIFO */
	char *cohort;
	/* NOMINAL is the queue's own quota. LIMIT is how much it may borrow in addition. */
	struct spec_amounts nominal, limit;
	struct spec_amounts borrowed;
};

/*
 * Parse a LocalQueue or a ClusterQueue into a queue view whose KUEUE is set. Return 0, or -EINVAL
 * if JSON is not an object with a valid name and uid.
 */
int spec_kueue_queue_parse(const char *json, size_t len, struct spec_queue_view **ret);

/*
 * Return the names in JSON, a list of LocalQueues, malloc'ed: "a, b, c". Omit the last names of a
 * long list. Return NULL if JSON is not a list. Set *RET_HAS to true if the list contains NAME, or
 * if later pages of the list may contain it.
 */
char *spec_local_queue_names(const char *json, size_t len, const char *name, bool *ret_has);

/* --- positions --- */

/* A waiting job and its position. Plain data. */
struct spec_queue_position {
	char uid[65];
	unsigned position;
};

/*
 * Parse JSON, a reply of the visibility API, and return the positions in the ClusterQueue, sorted
 * by uid. Return 0 and a malloc'ed *RET, or -EINVAL.
 */
int spec_queue_positions_parse(const char *json, size_t len, struct spec_queue_position **ret,
			       size_t *ret_n);
/* Return the position of the job UID, from 1; 0 if V lacks the job. */
unsigned spec_queue_positions_find(const struct spec_queue_position *v, size_t n, const char *uid);
