/* SPDX-License-Identifier: MIT */
/*
 * What kxfs keeps of Kueue's objects: the Workload, which says for a job of any kind whether Kueue lets it run; the
 * LocalQueue, in which jobs of a namespace wait, as a part of spec_queue_view; the ClusterQueue, which has the quota;
 * and the places of those that wait. The conventions of view.h hold here. Versions v1beta1 and v1beta2 are read alike.
 */
#pragma once

#include "spec/view/watched.h"

/* The label by which a job of any kind is put into a LocalQueue. */
#define SPEC_KUEUE_QUEUE "kueue.x-k8s.io/queue-name"

#define SPEC_KUEUE_MAX_TIME "kueue.x-k8s.io/max-exec-time-seconds"
#define SPEC_KUEUE_PRIORITY "kueue.x-k8s.io/priority-class"

/* The groups of its APIs: of its objects, and of the places of those that wait. */
#define SPEC_KUEUE_GROUP      "kueue.x-k8s.io"
#define SPEC_KUEUE_VISIBILITY "visibility.kueue.x-k8s.io"

/* --- Workloads; of one thread, as spec_group_view --- */

enum spec_workload_condition {
	SPEC_WORKLOAD_RESERVED,
	SPEC_WORKLOAD_ADMITTED,
	SPEC_WORKLOAD_EVICTED,
	SPEC_WORKLOAD_FINISHED,
	SPEC_WORKLOAD_TARGET,	/* it is about to be deactivated */
	SPEC_WORKLOAD_REQUEUED, /* false: it is not in its queue */
	SPEC_WORKLOAD_N_CONDITIONS
};

/* A condition. Plain data. An absent condition is not the same as a false one. */
struct spec_condition_view {
	bool is_set;
	bool is_true;
	char *reason;
	char *message;
	int64_t since;
};

/* An admission check that does not let the job in, or not yet. Plain data. */
struct spec_check_view {
	char *name;
	char *state; /* Pending, Retry, Rejected */
	char *message;
};

/* A Workload. Plain data. */
struct spec_workload_view {
	struct spec_meta meta; /* owner_uid: that of the job, or of what owns the job */
	char *queue;	       /* its LocalQueue */
	char *cluster_queue;   /* the ClusterQueue in which it has quota; "": none */
	char *flavors;	       /* flavors of that quota, as in spec_job */
	char *priority_class;  /* the class by which its priority was found; "": none */
	int priority;	       /* SPEC_NO_PRIORITY: it has none yet */
	/* When it takes the priority class that its job's label names. */
	enum {
		SPEC_PRIORITY_FIXED, /* never: the job's pods have one, or Kueue is too old for that */
		SPEC_PRIORITY_WAITING, /* before it has quota */
		SPEC_PRIORITY_ANY,
	} takes_priority;
	bool active; /* false: Kueue does not let it run until somebody sets this again */
	struct spec_condition_view conditions[SPEC_WORKLOAD_N_CONDITIONS];
	struct spec_check_view *checks; /* those that are not Ready */
	size_t n_checks;
	unsigned evictions; /* how often it was evicted, for whatever reason */
	unsigned requeued;  /* how often it was evicted because its pods were not ready in time */
	int64_t requeue_at; /* when it may be tried again; 0: now */
	char *preemptor;    /* uid of the job for which its pods were last ended; "": not known */
};

/*
 * The reason for which a check or a limit has put out the job, borrowed: AdmissionCheck, MaximumExecutionTimeExceeded,
 * ... Kueue does not take it back, also when spec.active is set again. "": none has.
 */
const char *spec_workload_put_out(const struct spec_workload_view *w);

/* Read a Workload. 0; -EINVAL: it is no such object. */
int spec_workload_view_parse(const char *json, size_t len, struct spec_workload_view **ret);
void spec_workload_view_free(struct spec_workload_view *v); /* NULL is allowed */

/* --- queues; counted, any thread may hold them --- */

/* What a flavor has of a resource. Plain data. */
struct spec_flavor_amount {
	char *flavor;
	char *resource;
	char *text; /* "100m", as the server wrote it */
};

struct spec_flavor_amounts {
	struct spec_flavor_amount *v; /* in the server's order */
	size_t n;
};

/* What a LocalQueue has beside the metadata. Plain data. */
struct spec_local_queue {
	char *cluster_queue;
	char *stop_policy; /* None, Hold, HoldAndDrain */
	char *active;	   /* True, False; "" Kueue has not looked at it yet */
	char *reason;	   /* reason of that */
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
	struct spec_flavor_amounts nominal, limit; /* limit: of what it may borrow */
	struct spec_flavor_amounts borrowed;
};

/* Read a LocalQueue as a queue whose part LOCAL is set. 0; -EINVAL: it is no such object. */
int spec_local_queue_parse(const char *json, size_t len, struct spec_queue_view **ret);

int spec_cluster_queue_view_parse(const char *json, size_t len,
				  struct spec_cluster_queue_view **ret);
struct spec_cluster_queue_view *spec_cluster_queue_view_ref(struct spec_cluster_queue_view *v);
void spec_cluster_queue_view_unref(struct spec_cluster_queue_view *v); /* NULL is allowed */
define_cleanup(spec_cluster_queue_view_unrefp, struct spec_cluster_queue_view *,
	       spec_cluster_queue_view_unref)

/*
 * The names in a list of LocalQueues, with ", " between them, only some if there are many, made harmless, malloc'ed;
 * NULL: it is no such list. *RET_HAS: is the queue NAME among them, or may it be in the rest of the list?
 */
char *spec_local_queue_names(const char *json, size_t len, const char *name, bool *ret_has);

/* --- places --- */

/* The place of a job that waits; 1 is next. Plain data. */
struct spec_place {
	char uid[65]; /* uid of the job */
	unsigned place;
};

/*
 * Read the places from a summary of the visibility API, ordered by uid. They are those in the ClusterQueue: since jobs
 * of all its LocalQueues take turns, that place tells who is next. 0 and a malloc'ed *RET; -EINVAL.
 */
int spec_places_parse(const char *json, size_t len, struct spec_place **ret, size_t *ret_n);
/* The place of the job UID among the N of V; 0: it is not among them. */
unsigned spec_places_find(const struct spec_place *v, size_t n, const char *uid);

/* --- what is served --- */

/* The best version among those in a group's description that kxfs knows: "GROUP/v1beta2", static. NULL: none. */
const char *spec_kueue_version(const char *json, size_t len);
const char *spec_kueue_visibility_version(const char *json, size_t len);
