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

/* `why` reports a missing object only after this time (ns), since most objects appear soon. */
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

/*
 * A container. It has the data of the container's current run, and the result of the previous run.
 * Plain data.
 */
struct spec_container_view {
	char *name;
	char *reason; /* why the container is waiting or terminated */
	char *message;
	/* If the program has failed: its last output, as the kubelet reports it. Otherwise "". */
	char *words;
	bool init;
	enum spec_container_state state;
	int exit_code; /* exit code of this run, or -1 */
	int signal;
	unsigned restarts;
	int last_exit_code; /* exit code of the run before this one, or -1 */
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
	/* how often the job was retried before this pod; some kinds set FAILURES instead */
	unsigned retry;
#define SPEC_INDEX_NONE	   (UINT32_MAX - 1)
#define SPEC_RETRY_UNKNOWN UINT32_MAX
	/* For kinds that retry each replica separately: how often this replica failed before. */
	unsigned failures;
	char *phase;
	char *node;
	char *reason; /* the pod's own reason (Evicted, ...), or why it is not scheduled */
	char *message;
	/* name of the main container, whose output kxfs shows as the replica's output */
	char *main;
	/*
	 * When the kubelet will end the pod because of its time limit. 0 if it has no limit, or if
	 * the time is unknown.
	 */
	int64_t deadline;
	int64_t lost;	  /* the time since which the node has not responded; 0 if it responds */
	bool reruns;	  /* true if a container that has ended may start again */
	bool main_reruns; /* true if the main container may start again after a failure */
	bool ended;	  /* true if kxfs saw the pod end before its deletion was requested */
	/* OPEN means that the pod must be parsed again once its job is known. */
	enum { SPEC_OWNER_FOUND, SPEC_OWNER_OPEN } owner;
	/*
	 * True if the pod was deleted; the view then has the pod's last state. backend/kube sets
	 * this member. It keeps the views of deleted pods because they show how attempts ended.
	 */
	bool gone;
	/*
	 * FAILED if all containers have ended, none will start again, and at least one has failed.
	 * SUCCEEDED if all have ended, none will start again, and none has failed. Otherwise
	 * UNKNOWN.
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
	/* number of retries: so far, and at most */
	unsigned retries, max_retries;
	/* the controller's limit if it is a number of attempts, not of retries; otherwise 0 */
	unsigned retry_limit;
	unsigned minimum; /* how many pods must start together */
	/* Time limit of each pod, in seconds. 0 if the pods have no limit, or different limits. */
	int time_limit;
	/* true if REASON and MESSAGE only report that pods have failed; the pods explain more */
	bool vague;
	bool used_up;	 /* true if the controller ended the job because no retries were left */
	bool has_appdef; /* true if the object contains the AppDef (see spec_object_appdef) */
	bool restarts;	 /* true if the controller may retry the job or failed parts of it */
	/* true if the controller retries each replica separately, and counts retries in the pods */
	bool alone;
	/* true if the controller replaces failed pods, perhaps later, while retries are left */
	bool remakes;
	/*
	 * True if the controller may do something other than end the job when all pods have
	 * succeeded.
	 */
	bool acts_on_success;
	bool asked;    /* true if the job's spec requests suspension */
	bool suspends; /* true if the job is suspended or being suspended, according to its phase */
	bool over;     /* true if the job has ended or is ending, according to its phase */
	bool firm;     /* true if the pods do not decide whether the job is PENDING or RUNNING */
	/*
	 * True if another object controls this job. That object suspends and resumes the job, and
	 * may create it again after a deletion.
	 */
	bool owned;
	bool hidden;	/* true if the job may have pods that kxfs does not show */
	bool from_pods; /* true if the names of the roles are known only from pods */
	bool grows;	/* true if a task may have more replicas than the object requests */
	/* metadata.generation, which changes when the spec changes; 0 if unknown */
	int generation;
	int64_t changed; /* when the phase last changed */
	/*
	 * Pods created before this time belong to an earlier attempt, which is over. 0 if each pod
	 * records the number of its attempt.
	 */
	int64_t began;
	/* The history of phases in the object, with times; may be empty. */
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
 * NULL. If the spec, which is most of a large object, has not changed since the earlier view, copy
 * the members that depend on the spec from that view. Return 0, or -EINVAL if JSON is not such an
 * object or if the job's name is not valid as a file name.
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
	 * Returns the reader of a job. UID is the job's uid, or the uid of an object that the job
	 * owns. Returns NULL if no such job is known. The pointer FIND itself may be NULL.
	 */
	const struct spec_reader *(*find)(void *data, const char *uid);
	void *data;
};

/*
 * Parse a pod with the first reader whose kind matches the pod's controller. If there is only one
 * reader, use it for any pod. OWNER becomes SPEC_OWNER_OPEN in two cases: several readers match, or
 * the controller is an object between the pod and its job and FIND does not know that object. If
 * there are several readers and none matches, meta.owner_uid is "". If the pod has no controller
 * but FIND knows the pod, meta.owner_uid is the uid of the pod itself. Return 0, or -EINVAL if JSON
 * is not a pod.
 */
int spec_pod_view_parse(const struct spec_pod_readers *readers, const char *json, size_t len,
			struct spec_pod_view **ret);
/* The members of a pod that kxfs keeps (spec/api/split.h). */
extern const struct spec_pick spec_pod_pick[];
void spec_pod_view_free(struct spec_pod_view *v); /* NULL is allowed */
/*
 * NOW and BEFORE are the new and the previous view of a pod. Copy from BEFORE to NOW what the
 * server does not report reliably: the time of the deletion request (which is wrong once the pod
 * has ended), and whether the pod ended before that request. Copy the sample, too.
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
 * Parse JSON, a PodMetrics object. This object has the name of its pod, but not the pod's uid. FIND
 * returns the view of the pod with this name, or NULL. If the sample in JSON is newer than the
 * sample in that view, store it in the view and return the view. Otherwise return NULL.
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
	/*
	 * The user of this mount, as in the label kxfs/user. If it is "" or NULL, none of the jobs
	 * belongs to this user.
	 */
	const char *user;
	bool history;	/* true if the job is in history/ and no longer in jobs/ */
	bool pods_late; /* true if the server may not have reported all pods of the job yet */
	/*
	 * The time at which kxfs first saw the job. For a job that existed before the mount, the
	 * time at which it was created.
	 */
	int64_t since;
	/* the job's pod group and queue; NULL if absent, or if the user may not watch them */
	const struct spec_group_view *group;
	const struct spec_queue_view *queue;
	struct spec_event_view *const *events; /* events about the job, its group and its pods */
	size_t n_events;
	struct spec_kueue_facts kueue;
	bool events_known; /* true if the user may watch events; EVENTS is then complete */
	/*
	 * A bit set of SPEC_UNSEEN_...: the resources that would show why jobs wait, but that this
	 * user may not watch.
	 */
	unsigned unseen;
#define SPEC_UNSEEN_EVENTS 1u
#define SPEC_UNSEEN_GROUPS 2u
/*
 * For the objects that are between a job and its pods. The bit is also set if the server does not
 * list these objects.
 */
#define SPEC_UNSEEN_PARTS 4u
	/* The last snapshot, or NULL. Data that the pods no longer show is copied from it. */
	const struct spec_job *before;
};

/*
 * Make the snapshot of JOB from JOB and its PODS, which may be in any order. PODS may include pods
 * of earlier attempts, and deleted pods whose end is known. Pods that belong to no task of JOB are
 * ignored. If the job left the cluster before kxfs saw it finish, its state is CANCELLED and
 * remains so.
 */
struct spec_job *spec_view_job(const struct spec_job_view *job,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx);

/* Return the spec_log.key of one run of a container, malloc'ed: UID.CONTAINER.RESTART. */
char *spec_view_log_key(const struct spec_pod_view *pod, const char *container, unsigned restart);
