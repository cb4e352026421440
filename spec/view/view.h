/* SPDX-License-Identifier: MIT */
/*
 * A view is an object of a cluster, parsed. From the views of a job and its pods, kxfs makes the
 * job's snapshot (struct spec_job). Each kind of job has a reader for its objects (reader.h).
 *
 * A view belongs to one thread. It does not change after parsing, except for GONE and SAMPLE of a
 * pod. Times are ns since 1970, or 0 if unknown. Strings are never NULL, and limited in length.
 */
#pragma once

#include "spec/job/job.h"

struct spec_control; /* see control.h */
struct spec_reader;  /* these two: see reader.h */
struct spec_phase;
struct spec_event_view; /* these three: see watched.h */
struct spec_group_view;
struct spec_queue_view;
struct spec_workload_view; /* see kueue.h */

/* How long (ns) an object may take to appear. After that, `why` reports it as missing. */
#define SPEC_SETTLE_NS INT64_C(5000000000)

/* The metadata of an object. Plain data. */
struct spec_meta {
	char *name;	 /* valid in file names and API paths */
	char *uid;	 /* letters, digits and dashes */
	char *owner_uid; /* uid of the controller, or "" */
	char *owner;	 /* kind and name of the controller, or "" */
	int64_t created;
	int64_t deleted; /* when its deletion was requested, or 0 */
};

/* Parse the metadata of an object. Return 0, or -EINVAL if its name or uid is not valid. */
int spec_meta_parse(const char *json, size_t len, struct spec_meta **ret);
void spec_meta_free(struct spec_meta *m); /* NULL is allowed */

enum spec_container_state { SPEC_WAITING, SPEC_STARTED, SPEC_TERMINATED };

/* A container's current run, and the result of the run before. Plain data. */
struct spec_container_view {
	char *name;
	char *reason; /* why it is waiting or terminated */
	char *message;
	char *words; /* last output of a failed program, or "" */
	bool init;
	enum spec_container_state state;
	int exit_code; /* of this run; -1 if unknown */
	int signal;
	unsigned restarts;
	int last_exit_code; /* of the run before; -1 if there was none */
	int64_t last_finished;
	int64_t started, finished; /* of this run */
};

/* The usage of a pod's main container. Plain data. */
struct spec_sample {
	int64_t at; /* 0 if there was no sample */
	/* millionths of a core, average since the previous sample; -1 if unknown */
	int64_t cpu;
	int64_t memory; /* working set in bytes; -1 if unknown */
};

/* A pod. Plain data. The kind's reader sets some members, pod.c the others. */
struct spec_pod_view {
	struct spec_meta meta;
	char *task; /* task in the job's object; "" if there is only one */
	/*
	 * The pod's index in its task. SPEC_INDEX_NONE if the pod should have a number, but lacks
	 * it. UINT32_MAX if the controller does not number the pods of this task.
	 */
	unsigned index;
	/* The attempt of the job that created the pod, from 0; or SPEC_RETRY_UNKNOWN. */
	unsigned retry;
#define SPEC_INDEX_NONE	   (UINT32_MAX - 1) /* the pod lacks its number */
#define SPEC_RETRY_UNKNOWN UINT32_MAX
	/* How often this replica failed before, for kinds that retry single replicas. */
	unsigned failures;
	char *phase;
	char *node;
	char *reason; /* of the pod (Evicted, ...), or why it is not scheduled */
	char *message;
	char *main;	  /* name of the container whose output is the replica's */
	int64_t deadline; /* when its time limit ends, or 0 */
	int64_t lost;	  /* since when its node has not responded, or 0 */
	bool reruns;	  /* a container that has ended may be restarted */
	bool main_reruns; /* the main container may be restarted after a failure */
	bool ended;	  /* the pod is known to have ended before a deletion request */
	/* SPEC_OWNER_OPEN: the owner is only a guess. Parse the pod again when its job is known. */
	enum { SPEC_OWNER_FOUND, SPEC_OWNER_OPEN } owner;
	bool gone; /* the pod was deleted; set by backend/kube */
	/* SUCCEEDED or FAILED if all containers have ended for good; otherwise UNKNOWN. */
	enum spec_state outcome;
	struct spec_container_view *containers; /* init containers first */
	size_t n_containers;
	struct spec_request request; /* of the main container */
	struct spec_sample sample;   /* the newest one */
};

/* A task of a job's object. Plain data. */
struct spec_task_view {
	char *name;	  /* in the object and in pods */
	unsigned role;	  /* index in ROLES */
	unsigned replica; /* id of the replica with pod index 0 */
	unsigned n;	  /* replicas in the snapshot */
	size_t first;	  /* index of the first replica */
	bool grows;	  /* there may be more replicas than the object requests */
};

/*
 * A role. Plain data. If TorchX made the job, each task is one replica of a role. Otherwise, each
 * task is a role.
 */
struct spec_role_view {
	char *name;
	char *dir; /* replica K has the directory DIR-K; unique */
	unsigned desired, minimum;
	size_t first, n; /* first replica, and number of replicas */
};

/* A job's object. Plain data. The kind's reader sets some members, job.c the others. */
struct spec_job_view {
	struct spec_meta meta;
	char *resource_version;
	char *app;
	char *phase; /* "" if no controller has processed the job yet */
	/* The first row for PHASE in the kind's table; NULL if PHASE is unknown. */
	const struct spec_phase *rows;
	char *reason;
	char *message;
	char *queue;
	char *priority; /* Kueue priority class, or "" */
	char *submitter;
	char *submission;
	char *owner_api;	       /* apiVersion of the controller, or "" */
	char *user;		       /* value of the label kxfs/user, or "" */
	char *appdef_sha256;	       /* SHA-256 of an AppDef too large for the object, or "" */
	unsigned retries, max_retries; /* so far, and at most */
	/* The largest number of attempts; 0 if the controller limits retries instead. */
	unsigned retry_limit;
	unsigned minimum; /* pods that must start together */
	/* Seconds for each pod; 0 if unlimited, or if pods differ. */
	int time_limit;
	/* True if REASON and MESSAGE only mean that pods failed. The pods then explain more. */
	bool vague;
	bool exact;	 /* REASON and MESSAGE explain more than the pods */
	bool uncounted;	 /* some retries are not counted anywhere */
	bool used_up;	 /* the job ended because no retries were left */
	bool has_appdef; /* see spec_object_appdef */
	bool restarts;	 /* the controller may retry the job or parts of it */
	/* True if the controller retries each replica separately. Pods then count retries. */
	bool alone;
	/* True if the controller replaces failed pods, maybe later, while retries are left. */
	bool remakes;
	/* True if the job may not end when all pods have succeeded. */
	bool acts_on_success;
	bool asked;    /* a user has suspended the job in its spec */
	bool suspends; /* its phase means suspended or suspending */
	bool over;     /* its phase means ended or ending */
	bool firm;     /* the phase, not the pods, decides between PENDING and RUNNING */
	/* True if the job has an owner that suspends and resumes it, and may recreate it. */
	bool owned;
	bool hidden;	 /* some pods may not be in the snapshot */
	bool from_pods;	 /* only pods name the roles */
	bool grows;	 /* as in spec_task_view, for any task */
	int64_t changed; /* when the phase last changed */
	/*
	 * When the current attempt began. Older pods belong to an earlier attempt. 0 if pods record
	 * their attempt.
	 */
	int64_t began;
	struct spec_transitions conditions; /* the phases in the object, with their times */
	struct spec_role_view *roles;
	size_t n_roles;
	struct spec_task_view *tasks; /* ordered by role, then by replica */
	size_t n_tasks;
	const struct spec_task_view **by_name; /* all tasks, sorted by name */
	size_t n_replicas;
};

/*
 * Parse a job's object. Return 0, or -EINVAL if JSON is not an object or its name is not valid as a
 * file name.
 */
int spec_job_view_parse(const struct spec_reader *reader, const char *json, size_t len,
			struct spec_job_view **ret);
void spec_job_view_free(struct spec_job_view *v); /* NULL is allowed */
/* The readers for the pods of a mount. */
struct spec_pod_readers {
	const struct spec_reader *const *v;
	size_t n;
	/*
	 * Returns the reader of a job, or NULL if the job is unknown. UID is that of the job, or of
	 * an object of the job. FIND may be NULL.
	 */
	const struct spec_reader *(*find)(void *data, const char *uid);
	void *data;
};

/*
 * Parse a pod with the reader of its job. Until FIND knows the owner, use the first reader that
 * matches the pod. The member owner is then SPEC_OWNER_OPEN if further readers match, or if the
 * pod's owner is an object between job and pod.
 *
 * If no reader matches the pod, there are three cases. If the pod has no controller, but FIND knows
 * the pod's own uid, use the reader from FIND and set meta.owner_uid to this uid. Otherwise, if
 * there is only one reader, use it. If there are several, set meta.owner_uid to "". Return 0, or
 * -EINVAL if JSON is not a pod.
 */
int spec_pod_view_parse(const struct spec_pod_readers *readers, const char *json, size_t len,
			struct spec_pod_view **ret);
void spec_pod_view_free(struct spec_pod_view *v); /* NULL is allowed */
/*
 * NOW replaces the view BEFORE. Copy from BEFORE what NOW may lack: the usage sample, the time of
 * the deletion request, and whether the pod ended before that request.
 */
void spec_pod_view_inherit(struct spec_pod_view *now, const struct spec_pod_view *before);

/*
 * Return the newest version of GROUP, an API group of Kueue or SPEC_METRICS_GROUP, that the server
 * and kxfs support, "GROUP/v1beta2" (static), or NULL. GROUPS is the server's reply to "/apis".
 */
const char *spec_group_version(const char *groups, size_t len, const char *group);
/* True if GROUPS has GROUP, even if kxfs supports none of its versions. */
bool spec_group_is_served(const char *groups, size_t len, const char *group);

#define SPEC_METRICS_GROUP "metrics.k8s.io"
/*
 * Parse a PodMetrics object. FIND returns the view of the pod NAME, or NULL. If the sample is newer
 * than the one in that view, store it there and return the view. Otherwise return NULL.
 */
typedef struct spec_pod_view *(*spec_pod_view_find)(void *data, const char *name);
const struct spec_pod_view *spec_pod_view_sample(const char *json, size_t len,
						 spec_pod_view_find find, void *data);

/* What Kueue's objects show about a job. Plain data. */
struct spec_kueue_facts {
	/*
	 * True if the user may watch Workloads. Then the job has no Workload if WORKLOAD is NULL.
	 * False if kxfs can't find out whether the job has one.
	 */
	bool known;
	const struct spec_workload_view *workload;   /* or NULL */
	const struct spec_queue_view *cluster_queue; /* of the job's queue, or NULL */
	unsigned position;			     /* from 1; 0 if unknown */
	bool away;   /* the server last replied that it can't reach Kueue */
	bool absent; /* the server does not serve Kueue's API */
};

/* The input of spec_view_job besides job and pods. Plain data. */
struct spec_view_context {
	const struct spec_reader *reader;
	const struct spec_control *control; /* the kind's actions, or NULL */
	const char *backend;		    /* as in the file `status` */
	const char *id; /* name of the job's directory; NULL for the object's name */
	const char *namespace;
	int64_t now;
	int64_t stale_since;
	bool own;	  /* submitted through this state directory */
	const char *user; /* value of the label kxfs/user; "" or NULL if unknown */
	bool history;	  /* in history/ and no longer in jobs/ */
	bool pods_late;	  /* the server may not have reported all pods yet */
	/* When kxfs first saw the job, or its creation if it existed before the mount. */
	int64_t since;
	/* NULL if absent, or if the user may not watch them. */
	const struct spec_group_view *group;
	const struct spec_queue_view *queue;
	struct spec_event_view *const *events; /* about the job, its group and its pods */
	size_t n_events;
	struct spec_kueue_facts kueue;
	bool events_known; /* the user may watch events, so EVENTS is complete */
	/* SPEC_UNSEEN_... bits: the user may not watch these objects, which may explain waiting. */
	unsigned unseen;
#define SPEC_UNSEEN_EVENTS 1u
#define SPEC_UNSEEN_GROUPS 2u
/* objects between job and pods; also set if the server does not list them */
#define SPEC_UNSEEN_PARTS 4u
	/* The last snapshot, or NULL. It has data that pods no longer show. */
	const struct spec_job *before;
};

/*
 * Make the snapshot of JOB. PODS are in any order, and include earlier attempts and deleted pods.
 * Pods that belong to no task are ignored. If the job leaves the cluster before its end is visible,
 * its state becomes CANCELLED and stays so.
 */
struct spec_job *spec_view_job(const struct spec_job_view *job,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx);

/* Return the spec_log.key of a run of a container, malloc'ed: UID.CONTAINER.RESTART. */
char *spec_view_log_key(const struct spec_pod_view *pod, const char *container, unsigned restart);
