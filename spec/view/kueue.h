/* SPDX-License-Identifier: MIT */
/*
 * Views of Kueue's objects: the Workload, which shows whether Kueue admits a job of any kind; the
 * LocalQueue of a namespace, as a part of spec_queue_view; the ClusterQueue, which has the quota;
 * and the positions of waiting jobs. The conventions of view.h apply. Versions v1beta1 and v1beta2
 * are read alike.
 */
#pragma once

#include "spec/view/watched.h"

/* The label that puts a job of any kind into a LocalQueue. */
#define SPEC_KUEUE_QUEUE "kueue.x-k8s.io/queue-name"

#define SPEC_KUEUE_MAX_TIME "kueue.x-k8s.io/max-exec-time-seconds"
#define SPEC_KUEUE_PRIORITY "kueue.x-k8s.io/priority-class"

/* The API groups of Kueue's objects, and of the positions of waiting jobs. */
#define SPEC_KUEUE_GROUP      "kueue.x-k8s.io"
#define SPEC_KUEUE_VISIBILITY "visibility.kueue.x-k8s.io"

/* --- Workloads; owned by one thread, like spec_group_view --- */

enum spec_workload_condition {
	SPEC_WORKLOAD_RESERVED,
	SPEC_WORKLOAD_ADMITTED,
	SPEC_WORKLOAD_EVICTED,
	SPEC_WORKLOAD_FINISHED,
	SPEC_WORKLOAD_TARGET,	/* it is about to be deactivated */
	SPEC_WORKLOAD_REQUEUED, /* false: it is not in its queue */
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

/* An admission check that has not admitted the job, or does not admit it. Plain data. */
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
	char *flavors;	       /* flavors of that quota, as in spec_job */
	char *priority_class;  /* the class of its priority, or "" */
	int priority;	       /* SPEC_NO_PRIORITY if it has none yet */
	/* How long Kueue applies changes of the job's priority-class label to the Workload. */
	enum {
		SPEC_PRIORITY_FIXED,   /* never: the job's pods have a class, or Kueue is too old */
		SPEC_PRIORITY_WAITING, /* until it has quota */
		SPEC_PRIORITY_ANY,
	} takes_priority;
	bool active; /* false: Kueue does not admit it until this is set again */
	struct spec_condition_view conditions[SPEC_WORKLOAD_N_CONDITIONS];
	struct spec_check_view *checks; /* those that are not Ready */
	size_t n_checks;
	unsigned evictions; /* number of evictions, for any reason */
	unsigned requeued;  /* number of evictions because its pods were not ready in time */
	int64_t requeue_at; /* when Kueue may retry it; 0: now */
};

/*
 * Return why a check or a limit has deactivated the job for good: AdmissionCheck,
 * MaximumExecutionTimeExceeded, ... Kueue does not requeue such a job, even if spec.active is set
 * again. "" if none has. Borrowed.
 */
const char *spec_workload_put_out(const struct spec_workload_view *w);

/* Parse a Workload. Return 0, or -EINVAL if it is not such an object. */
int spec_workload_view_parse(const char *json, size_t len, struct spec_workload_view **ret);
void spec_workload_view_free(struct spec_workload_view *v); /* NULL is allowed */

/* --- queues; reference counted, any thread may hold them --- */

/* A flavor's amount of a resource. Plain data. */
struct spec_flavor_amount {
	char *flavor;
	char *resource;
	char *text; /* "100m", as the server wrote it */
};

struct spec_flavor_amounts {
	struct spec_flavor_amount *v; /* in the server's order */
	size_t n;
};

/* The members of a LocalQueue besides the metadata. Plain data. */
struct spec_local_queue {
	char *cluster_queue;
	char *stop_policy; /* None, Hold, HoldAndDrain */
	char *active;	   /* True, False; "" if Kueue has not processed it yet */
	char *reason;	   /* reason for the value of ACTIVE */
	char *message;
	unsigned pending, reserving, admitted; /* Workloads of this queue */
	struct spec_flavor_amounts used, reserved;
};

/* A ClusterQueue. Plain data. */
struct spec_cluster_queue_view {
	unsigned refs; /* atomic; only spec_cluster_queue_view_ref and _unref touch it */
	struct spec_meta meta;
	char *stop_policy;
	char *strategy; /* BestEffortFIFO, StrictFIFO */
	char *cohort;
	char *active, *reason, *message;
	struct spec_flavor_amounts nominal, limit; /* LIMIT: how much may be borrowed */
	struct spec_flavor_amounts borrowed;
};

/*
 * Parse a LocalQueue as a queue whose part LOCAL is set. Return 0, or -EINVAL if it is not such an
 * object.
 */
int spec_local_queue_parse(const char *json, size_t len, struct spec_queue_view **ret);

int spec_cluster_queue_view_parse(const char *json, size_t len,
				  struct spec_cluster_queue_view **ret);
struct spec_cluster_queue_view *spec_cluster_queue_view_ref(struct spec_cluster_queue_view *v);
void spec_cluster_queue_view_unref(struct spec_cluster_queue_view *v); /* NULL is allowed */
define_cleanup(spec_cluster_queue_view_unrefp, struct spec_cluster_queue_view *,
	       spec_cluster_queue_view_unref)

/*
 * Return the names in a list of LocalQueues, separated by ", ", clean, malloc'ed; of a long list
 * only some. NULL if the text is not such a list. *RET_HAS is true if the queue NAME is in the
 * list, or may be among the omitted names.
 */
char *spec_local_queue_names(const char *json, size_t len, const char *name, bool *ret_has);

/* --- positions --- */

/* The position of a waiting job; 1 is next. Plain data. */
struct spec_queue_position {
	char uid[65]; /* uid of the job */
	unsigned position;
};

/*
 * Read the positions from a summary of the visibility API, and sort them by uid. These are
 * positions in the ClusterQueue, which show who is next, since jobs of all its LocalQueues
 * alternate. Return 0 and a malloc'ed *RET, or -EINVAL.
 */
int spec_queue_positions_parse(const char *json, size_t len, struct spec_queue_position **ret,
			       size_t *ret_n);
/* Return the position of the job UID among the N of V, or 0. */
unsigned spec_queue_positions_find(const struct spec_queue_position *v, size_t n, const char *uid);

/* --- the served version --- */

/*
 * Return the best version that kxfs knows in a group's description: "GROUP/v1beta2", static; or
 * NULL.
 */
const char *spec_kueue_version(const char *json, size_t len);
const char *spec_kueue_visibility_version(const char *json, size_t len);
