/* SPDX-License-Identifier: MIT */
/*
 * Views of Kueue's objects, v1beta1 and v1beta2. A Workload shows whether Kueue admits a job of any
 * kind. A LocalQueue belongs to a namespace and is a part of spec_queue_view. A ClusterQueue has
 * the quota. The visibility API reports the positions of waiting jobs. view.h has the conventions.
 */
#pragma once

#include "spec/view/watched.h"

/* The label of a job, of any kind, that names the job's LocalQueue. */
#define SPEC_KUEUE_QUEUE "kueue.x-k8s.io/queue-name"

#define SPEC_KUEUE_PRIORITY "kueue.x-k8s.io/priority-class"

/* The API group of Kueue's objects, and the group of the API that reports positions of jobs. */
#define SPEC_KUEUE_GROUP      "kueue.x-k8s.io"
#define SPEC_KUEUE_VISIBILITY "visibility.kueue.x-k8s.io"

/* --- Workloads; owned by one thread, like spec_group_view --- */

enum spec_workload_condition {
	SPEC_WORKLOAD_RESERVED,
	SPEC_WORKLOAD_ADMITTED,
	SPEC_WORKLOAD_EVICTED,
	SPEC_WORKLOAD_FINISHED,
	SPEC_WORKLOAD_TARGET,	/* Kueue is about to deactivate the Workload */
	SPEC_WORKLOAD_REQUEUED, /* false means that the Workload is not in its queue */
	SPEC_WORKLOAD_N_CONDITIONS
};

/* A condition. Plain data. An absent condition differs from a false one. */
struct spec_condition_view {
	bool is_set;
	bool is_true;
	char *reason;
	char *message;
	int64_t since;
};

/* An admission check that has not accepted the job yet, or has rejected it. Plain data. */
struct spec_check_view {
	char *name;
	char *state; /* Pending, Retry, Rejected */
	char *message;
};

/* A Workload. Plain data. */
struct spec_workload_view {
	struct spec_meta meta; /* owner_uid: uid of the job, or of the job's owner */
	char *queue;	       /* its LocalQueue */
	char *cluster_queue;   /* the ClusterQueue in which it has quota, or "" */
	char *flavors;	       /* the flavors in which it has quota, as in spec_job */
	char *priority_class;  /* its priority class, or "" */
	int priority;	       /* SPEC_NO_PRIORITY if it has no priority yet */
	/* Until when Kueue applies changes of the job's priority-class label to the Workload. */
	enum {
		/* never: the job's pods have a class, or Kueue is too old */
		SPEC_PRIORITY_FIXED,
		SPEC_PRIORITY_WAITING, /* until the Workload has quota */
		SPEC_PRIORITY_ANY,
	} takes_priority;
	bool active; /* spec.active; if false, Kueue does not admit the job */
	struct spec_condition_view conditions[SPEC_WORKLOAD_N_CONDITIONS];
	struct spec_check_view *checks; /* checks whose state is not Ready */
	size_t n_checks;
	unsigned evictions; /* number of evictions, for any reason */
	unsigned requeued;  /* number of evictions because its pods were not ready in time */
	int64_t requeue_at; /* when Kueue retries at the earliest; 0 if it may retry now */
};

/*
 * Return the reason (borrowed) why Kueue will never admit the job again: an admission check or a
 * limit has deactivated it (AdmissionCheck, MaximumExecutionTimeExceeded, ...), or Kueue could not
 * start it. Otherwise return "", also if a user has deactivated the job.
 */
const char *spec_workload_put_out(const struct spec_workload_view *w);

/* Parse a Workload. Return 0, or -EINVAL if JSON is not an object with a valid name and uid. */
int spec_workload_view_parse(const char *json, size_t len, struct spec_workload_view **ret);
void spec_workload_view_free(struct spec_workload_view *v); /* NULL is allowed */

/* --- queues; reference counted, any thread may hold them --- */

/* The members of a LocalQueue besides the metadata. Plain data. */
struct spec_local_queue {
	char *cluster_queue;
	char *stop_policy; /* None, Hold, HoldAndDrain */
	/* the condition Active; absent if Kueue has not processed the queue yet */
	struct spec_condition_view active;
	unsigned pending, reserving, admitted; /* numbers of Workloads in this queue */
	struct spec_amounts used, reserved;
};

/* A ClusterQueue. Plain data. */
struct spec_cluster_queue_view {
	unsigned refs; /* atomic; only spec_cluster_queue_view_ref and _unref touch it */
	struct spec_meta meta;
	char *stop_policy;
	char *strategy; /* BestEffortFIFO, StrictFIFO */
	char *cohort;
	struct spec_condition_view active;
	/* NOMINAL is the queue's own quota; LIMIT is how much more it may borrow */
	struct spec_amounts nominal, limit;
	struct spec_amounts borrowed;
};

/*
 * Parse a LocalQueue, and set the member LOCAL of the view. Return 0, or -EINVAL if JSON is not an
 * object with a valid name and uid.
 */
int spec_local_queue_parse(const char *json, size_t len, struct spec_queue_view **ret);

int spec_cluster_queue_view_parse(const char *json, size_t len,
				  struct spec_cluster_queue_view **ret);
struct spec_cluster_queue_view *spec_cluster_queue_view_ref(struct spec_cluster_queue_view *v);
void spec_cluster_queue_view_unref(struct spec_cluster_queue_view *v); /* NULL is allowed */
define_cleanup(spec_cluster_queue_view_unrefp, struct spec_cluster_queue_view *,
	       spec_cluster_queue_view_unref)

/*
 * Return the names of the LocalQueues in JSON, a list, separated by ", ", malloc'ed. Leave out the
 * last names of a long list. Return NULL if JSON is not a list. *RET_HAS is true if the list
 * contains NAME, or if JSON is only a page of the list and later pages may contain NAME.
 */
char *spec_local_queue_names(const char *json, size_t len, const char *name, bool *ret_has);

/* --- positions --- */

/* A waiting job, and its position in the queue; position 1 is next. Plain data. */
struct spec_queue_position {
	char uid[65];
	unsigned position;
};

/*
 * Read the positions of waiting jobs from JSON, a reply of the visibility API, and sort them by
 * uid. They are positions in the ClusterQueue, since Kueue admits jobs from all of its LocalQueues.
 * Return 0 and a malloc'ed *RET, or -EINVAL.
 */
int spec_queue_positions_parse(const char *json, size_t len, struct spec_queue_position **ret,
			       size_t *ret_n);
/* Return the position of the job UID, or 0 if the N positions at V do not include the job. */
unsigned spec_queue_positions_find(const struct spec_queue_position *v, size_t n, const char *uid);
