/* SPDX-License-Identifier: MIT */
/*
 * A view is a parsed object of a cluster. From the views of a job and of its pods, kxfs makes the
 * job's snapshot (struct spec_job). Each kind of job has its own reader (spec/view/reader.h). The
 * view of a pod is the same for all kinds. A view belongs to one thread and does not change after
 * parsing, except for the members GONE and SAMPLE of a pod. Times are ns since 1970, or 0. Strings
 * are never NULL, and their length is limited.
 */
#pragma once

#include "spec/api/split.h"
#include "spec/job/job.h"

struct spec_control; /* control.h */
struct spec_reader;  /* reader.h declares this struct and the next one */
struct spec_phase;
struct spec_event_view; /* watched.h declares this struct and the next two */
struct spec_group_view;
struct spec_queue_view;
struct spec_workload_view; /* kueue.h declares this struct and the next one */
struct spec_cluster_queue_view;

/* How long (ns) `why` waits for an object to appear before it reports the object as missing. */
#define SPEC_SETTLE_NS INT64_C(5000000000)

/* The metadata common to all objects. Plain data. */
struct spec_meta {
	char *name;	 /* valid as a file name, and in a path of the API */
	char *uid;	 /* letters, digits and dashes */
	char *owner_uid; /* uid of its controller, or "" */
	char *owner;	 /* kind and name of its controller, or "" */
	int64_t created;
	int64_t deleted; /* when the deletion of the object was requested */
};

enum spec_container_state { SPEC_WAITING, SPEC_STARTED, SPEC_TERMINATED };

/* A container: its current run, and the result of the run before. Plain data. */
struct spec_container_view {
	char *name;
	char *reason; /* why the container is waiting or terminated */
	char *message;
	/* the last output of a program that failed, from the kubelet; "" if unknown */
	char *words;
	bool init;
	enum spec_container_state state;
	int exit_code; /* exit code of this run; -1 if it has not ended, or if unknown */
	int signal;
	unsigned restarts;
	int last_exit_code; /* exit code of the run before; -1 if there was none */
	int64_t last_finished;
	int64_t started, finished; /* when this run started and finished */
};

/* A sample of the main container of a pod. Plain data. */
struct spec_sample {
	int64_t at; /* 0 if there was no sample */
	/* millionths of a core, averaged over the time since the previous sample; -1 if unknown */
	int64_t cpu;
	int64_t memory; /* bytes of its working set; -1 if unknown */
};

/* A pod. Plain data. The kind's reader sets some members, pod.c the others. */
struct spec_pod_view {
	struct spec_meta meta;
	char *task; /* its task in the job's object; "" if the job has only one */
	/*
	 * The pod's index in its task. UINT32_MAX if the controller does not number pods.
	 * SPEC_INDEX_NONE if the controller numbers pods, but this pod has no number.
	 */
	unsigned index;
	/* the number of the job's attempt that created the pod, from 0; or SPEC_RETRY_UNKNOWN */
	unsigned retry;
#define SPEC_INDEX_NONE	   (UINT32_MAX - 1)
#define SPEC_RETRY_UNKNOWN UINT32_MAX
	/* How often this replica failed before, for kinds that retry each replica separately. */
	unsigned failures;
	char *phase;
	char *node;
	char *reason; /* the pod's own reason (Evicted, ...), or why it is not scheduled */
	char *message;
	/* name of the main container, whose output kxfs shows as the replica's output */
	char *main;
	/*
	 * When the kubelet will end the pod because of its time limit; 0 if there is no limit, or
	 * if the time is unknown.
	 */
	int64_t deadline;
	int64_t lost;	  /* since when the node has not responded; 0 if it responds */
	bool reruns;	  /* true if a container that has ended may start again */
	bool main_reruns; /* true if the main container may start again after a failure */
	bool ended;	  /* true if kxfs saw the pod end before its deletion was requested */
	/* OPEN: the pod must be parsed again when its job is known. */
	enum { SPEC_OWNER_FOUND, SPEC_OWNER_OPEN } owner;
	/*
	 * True if the pod was deleted. backend/kube sets this, and keeps the view because it shows
	 * how the attempt ended.
	 */
	bool gone;
	/*
	 * UNKNOWN while a container runs or may restart, or if its end is unknown. Otherwise FAILED
	 * if a container has failed, else SUCCEEDED.
	 */
	enum spec_state outcome;
	struct spec_container_view *containers; /* init containers first */
	size_t n_containers;
	struct spec_request request; /* the resources of the main container */
	struct spec_sample sample;   /* the newest sample; set by spec_pod_view_sample */
};

/* A task of a job's object. Plain data. */
struct spec_task_view {
	char *name;	  /* its name in the object and in its pods */
	unsigned role;	  /* index in roles */
	unsigned replica; /* id of the replica whose pod has index 0 */
	/* Number of replicas in the snapshot. A job has at most SPEC_MAX_REPLICAS. */
	unsigned n;
	size_t first; /* index of its first replica among the snapshot's replicas */
	bool grows;   /* true if the task may have more replicas than the object requests */
};

/*
 * A role of a job. Plain data. If TorchX made the job, each replica of a role is a task. Otherwise
 * each task is a role.
 */
struct spec_role_view {
	char *name;
	char *dir; /* replica K has the directory DIR-K; no two roles have the same DIR */
	unsigned desired, minimum;
	size_t first, n; /* index of the role's first replica, and number of its replicas */
};

/* A job's object. Plain data. The kind's reader sets some members, job.c the others. */
struct spec_job_view {
	struct spec_meta meta;
	char *resource_version;
	char *app;
	char *phase; /* "" if no controller has acted on the job yet */
	/* the first row for PHASE in the kind's table of phases; NULL if PHASE is unknown */
	const struct spec_phase *rows;
	char *reason;
	char *message;
	char *queue;
	char *priority; /* name of its Kueue priority class, or "" */
	char *submitter;
	char *submission;
	char *owner_api; /* apiVersion of its controller, or "" */
	char *user;	 /* value of the label by which `-o mine` selects jobs, or "" */
	/* Digest of an AppDef that did not fit into the object, or "". */
	char *appdef_sha256;
	/* retries so far, and the largest number of retries */
	unsigned retries, max_retries;
	/*
	 * the largest number of attempts, if the controller limits attempts; 0 if it limits retries
	 */
	unsigned retry_limit;
	unsigned minimum; /* how many pods must start together */
	/* Time limit of each pod, in seconds. 0 if the pods have no limit, or different limits. */
	int time_limit;
	/* true if REASON and MESSAGE only report that pods have failed; the pods then show more */
	bool vague;
	bool exact;	 /* true if REASON or MESSAGE explains a failure better than pods do */
	bool uncounted;	 /* true if nothing counts some of the retries */
	bool used_up;	 /* true if the controller ended the job because no retries were left */
	bool has_appdef; /* true if the object contains the AppDef (see spec_object_appdef) */
	bool restarts;	 /* true if the controller may retry the job or failed parts of it */
	/* true if the controller retries each replica separately, and counts retries in the pods */
	bool alone;
	/*
	 * true if the controller replaces failed pods, maybe after a delay, while retries are left
	 */
	bool remakes;
	/*
	 * True if the controller may do something other than end the job when all pods have
	 * succeeded.
	 */
	bool acts_on_success;
	bool asked;    /* true if the job's spec requests suspension */
	bool suspends; /* true if the job is suspended or being suspended, according to its phase */
	bool over;     /* true if the job has ended or is ending, according to its phase */
	bool firm;     /* true if the phase, not the pods, decides between PENDING and RUNNING */
	/*
	 * True if another object controls this job: it suspends and resumes the job, and may create
	 * the job again after a deletion.
	 */
	bool owned;
	bool hidden;	/* true if the job may have pods that the snapshot does not show */
	bool from_pods; /* true if the names of the roles are known only from pods */
	bool grows;	/* true if a task may have more replicas than the object requests */
	/* metadata.generation, which changes when the spec changes; 0 if unknown */
	int generation;
	int64_t changed; /* when the phase last changed */
	/*
	 * Pods created before this time belong to an earlier attempt. 0 if each pod records the
	 * number of its attempt.
	 */
	int64_t began;
	/* the phases that the object records, with their times; may be empty */
	struct spec_transitions conditions;
	struct spec_role_view *roles;
	size_t n_roles;
	struct spec_task_view *tasks; /* ordered by role, then by replica */
	size_t n_tasks;
	unsigned *by_name; /* indices of all tasks, sorted by the tasks' names */
	size_t n_replicas;
};

/*
 * Parse a job's object. FIND returns an earlier view of the job UID, or NULL; FIND itself may be
 * NULL. If the spec has not changed since the earlier view, copy all that depends on the spec from
 * that view. Return 0, or -EINVAL if JSON is not such an object or if the job's name is not valid
 * as a file name.
 */
typedef const struct spec_job_view *(*spec_job_view_find)(void *data, const char *uid);
int spec_job_view_parse(const struct spec_reader *reader, const char *json, size_t len,
			spec_job_view_find find, void *data, struct spec_job_view **ret);
void spec_job_view_free(struct spec_job_view *v); /* NULL is allowed */
/* The readers for the pods of a mount. */
struct spec_pod_readers {
	const struct spec_reader *const *v;
	size_t n;
	/*
	 * Returns the reader of a job, or NULL if the job is unknown. UID is the job's uid, or that
	 * of an object of the job. FIND itself may be NULL.
	 */
	const struct spec_reader *(*find)(void *data, const char *uid);
	void *data;
};

/*
 * Parse a pod with the reader of its job. If FIND does not know the pod's owner, use the first
 * reader whose kind matches the owner. OWNER is then SPEC_OWNER_OPEN if more readers match, or if
 * the owner is an object between the pod and its job. If no reader matches, use the only reader; if
 * there are several, set meta.owner_uid to "". If the pod has no controller but FIND knows the pod,
 * meta.owner_uid is the pod's own uid. Return 0, or -EINVAL if JSON is not a pod.
 */
int spec_pod_view_parse(const struct spec_pod_readers *readers, const char *json, size_t len,
			struct spec_pod_view **ret);
/* The members of a pod that kxfs keeps (spec/api/split.h). */
extern const struct spec_pick spec_pod_pick[];
void spec_pod_view_free(struct spec_pod_view *v); /* NULL is allowed */
/*
 * Call this when the view NOW replaces the view BEFORE of the same pod. Copy the usage sample, and
 * what the server does not report reliably: when the pod's deletion was requested, and whether the
 * pod ended before that.
 */
void spec_pod_view_inherit(struct spec_pod_view *now, const struct spec_pod_view *before);

/*
 * JSON describes an API group: Kueue's, that of Kueue's visibility API, or SPEC_METRICS_GROUP.
 * Return the newest version that both the server and kxfs support, as "GROUP/v1beta2" (static), or
 * NULL.
 */
const char *spec_group_version(const char *json, size_t len);

/* The API group of a cluster's metrics of pods. */
#define SPEC_METRICS_GROUP "metrics.k8s.io"
/*
 * Parse JSON, a PodMetrics object, which has the name of its pod but not the uid. FIND returns the
 * view of the pod NAME, or NULL. If the sample in JSON is newer than the sample in that view, store
 * it in the view and return the view. Otherwise return NULL.
 */
typedef struct spec_pod_view *(*spec_pod_view_find)(void *data, const char *name);
const struct spec_pod_view *spec_pod_view_sample(const char *json, size_t len,
						 spec_pod_view_find find, void *data);
/* The members of PodMetrics that kxfs keeps. */
extern const struct spec_pick spec_metrics_pick[];

/* What kxfs knows of a job from Kueue's objects. Plain data. */
struct spec_kueue_facts {
	/* true if the user may watch Workloads; WORKLOAD is then NULL only if the job has none */
	bool known;
	const struct spec_workload_view *workload; /* the job's Workload, or NULL */
	/* The ClusterQueue of the job's queue; NULL if unknown. */
	const struct spec_cluster_queue_view *cluster_queue;
	unsigned position; /* the job's position; 1 is next; 0 if unknown */
	bool fixed;	   /* true if this user may not patch Workloads */
	/* true if the server reported in its last reply that it can't reach Kueue */
	bool away;
	bool absent; /* true if the server does not serve Kueue's API */
};

/* The input of spec_view_job besides the job and its pods. Plain data. */
struct spec_view_context {
	const struct spec_reader *reader;
	const struct spec_control *control; /* the actions of this kind, or NULL */
	const char *backend;		    /* name of the backend, as in status */
	/* Name of the job's directory. If NULL, the directory has the object's name. */
	const char *id;
	const char *namespace;
	int64_t now;
	int64_t stale_since;
	bool own; /* true if the job was submitted through this state directory */
	/* The mount's user, as in the label kxfs/user. If it is "" or NULL, no job is MINE. */
	const char *user;
	bool history;	/* true if the job is in history/ and no longer in jobs/ */
	bool pods_late; /* true if the server may not have reported all pods of the job yet */
	/* When kxfs first saw the job. If the job existed before the mount: when it was created. */
	int64_t since;
	/* the job's pod group and queue; NULL if absent, or if the user may not watch them */
	const struct spec_group_view *group;
	const struct spec_queue_view *queue;
	struct spec_event_view *const *events; /* events about the job, its group and its pods */
	size_t n_events;
	struct spec_kueue_facts kueue;
	bool events_known; /* true if the user may watch events; EVENTS is then complete */
	/*
	 * Bit set of SPEC_UNSEEN_...: resources that show why jobs wait, but that this user may not
	 * watch.
	 */
	unsigned unseen;
#define SPEC_UNSEEN_EVENTS 1u
#define SPEC_UNSEEN_GROUPS 2u
/* The objects between a job and its pods. Also set if the server does not list them. */
#define SPEC_UNSEEN_PARTS 4u
	/* The last snapshot, or NULL. It has data that the pods no longer show. */
	const struct spec_job *before;
};

/*
 * Make the snapshot of JOB. PODS are its pods in any order, including pods of earlier attempts and
 * deleted pods. Pods that belong to no task of JOB are ignored. If the job leaves the cluster
 * before its object or its pods show how it ended, its state is CANCELLED and remains so.
 */
struct spec_job *spec_view_job(const struct spec_job_view *job,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx);

/* Return the spec_log.key of one run of a container, malloc'ed: UID.CONTAINER.RESTART. */
char *spec_view_log_key(const struct spec_pod_view *pod, const char *container, unsigned restart);
