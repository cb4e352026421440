/* SPDX-License-Identifier: MIT */
/*
 * Parsed objects of a cluster: a job's view, its pods' views, and the snapshot made of both (struct
 * spec_job). Each kind has a reader of its objects (spec/view/reader.h); pods are the same for all
 * kinds. Views belong to one thread and do not change once read, except GONE and SAMPLE of a pod.
 * Times are ns since 1970, or 0; strings are never NULL, and bounded.
 */
#pragma once

#include "spec/api/split.h"
#include "spec/job/job.h"

struct spec_control; /* control.h */
struct spec_reader;  /* reader.h, as the next */
struct spec_phase;
struct spec_event_view; /* watched.h, as the next two */
struct spec_group_view;
struct spec_queue_view;
struct spec_workload_view; /* kueue.h, as the next */
struct spec_cluster_queue_view;

/*
 * For this long (ns) `why` does not report a missing object, since most missing objects soon
 * appear.
 */
#define SPEC_SETTLE_NS INT64_C(5000000000)

/* The metadata common to all objects. Plain data. */
struct spec_meta {
	char *name;	 /* valid as a file name, and as a part of a path of the API */
	char *uid;	 /* letters, digits and dashes */
	char *owner_uid; /* uid of its controller, or "" */
	char *owner;	 /* kind and name of its controller, or "" */
	int64_t created;
	int64_t deleted; /* when its deletion was requested */
};

enum spec_container_state { SPEC_WAITING, SPEC_STARTED, SPEC_TERMINATED };

/* A container's present run, and the end of the run before. Plain data. */
struct spec_container_view {
	char *name;
	char *reason; /* reason of the state waiting or terminated */
	char *message;
	/* The last output of its program, as the kubelet has kept it when it failed, or "". */
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
	int64_t at;	/* 0 if there was no sample */
	int64_t cpu;	/* millionths of a core, on average since the last sample; -1 if unknown */
	int64_t memory; /* bytes of its working set; -1 if unknown */
};

/* A pod. Plain data: the kind's reader fills a part of it. */
struct spec_pod_view {
	struct spec_meta meta;
	char *task;	/* its task in the job's object; "" if the job has only one */
	unsigned index; /* its index in the task; UINT32_MAX if the controller does not number
			 * pods; SPEC_INDEX_NONE if it does, but this one has no number */
	unsigned retry; /* the job's retries before this pod; some kinds set FAILURES instead */
#define SPEC_INDEX_NONE	   (UINT32_MAX - 1)
#define SPEC_RETRY_UNKNOWN UINT32_MAX
	unsigned failures; /* number of earlier failures of its replica, which is retried
			    * separately */
	char *phase;
	char *node;
	char *reason; /* reason of the pod: Evicted ...; or why it is not scheduled */
	char *message;
	char *main;	  /* the container whose output is the replica's */
	int64_t deadline; /* when its node ends it for its time limit; 0 if there is none, or it
			   * is unknown */
	int64_t lost;	  /* its node has not responded since then; 0 if it does */
	bool reruns;	  /* a container that has ended may be restarted */
	bool main_reruns; /* the main container may be restarted after a failure */
	bool ended;	  /* kxfs saw its end before its deletion was requested */
	/* OPEN: the pod must be parsed again once its job is known. */
	enum { SPEC_OWNER_FOUND, SPEC_OWNER_OPEN } owner;
	/*
	 * The pod was deleted, and the view is its last state. The owner of the view sets this, and
	 * keeps the view, since it shows how an attempt ended.
	 */
	bool gone;
	/*
	 * SUCCEEDED or FAILED if all its containers have ended with this result, and none will be
	 * restarted; else UNKNOWN.
	 */
	enum spec_state outcome;
	struct spec_container_view *containers; /* init containers first */
	size_t n_containers;
	struct spec_request request; /* the resources of the main container */
	struct spec_sample sample;   /* the last sample; spec_pod_view_sample sets it */
};

/* A task of the job's object. Plain data. */
struct spec_task_view {
	char *name;	  /* its name in the object and in its pods */
	unsigned role;	  /* index in roles */
	unsigned replica; /* id of the replica whose pod has index 0 */
	unsigned n;	  /* replicas that are shown; a job shows at most SPEC_MAX_REPLICAS */
	size_t first;	  /* index of its first replica among the snapshot's replicas */
	bool grows;	  /* it may have more replicas than the object requests */
};

/* A role of TorchX, whose replicas are tasks; or a task. Plain data. */
struct spec_role_view {
	char *name;
	char *dir; /* directories of its replicas: DIR-K; unique among the roles */
	unsigned desired, minimum;
	size_t first, n; /* its replicas */
};

/* A job's object. Plain data: the kind's reader fills a part of it. */
struct spec_job_view {
	struct spec_meta meta;
	char *resource_version;
	char *app;
	char *phase; /* "" if no controller has acted on it yet */
	/* The first row of its reader for this phase; NULL if the phase is unknown. */
	const struct spec_phase *rows;
	char *reason;
	char *message;
	char *queue;
	char *priority; /* the name of its priority class for Kueue, or "" */
	char *submitter;
	char *submission;
	char *owner_api; /* version of its controller's API, or "" */
	char *user;	 /* its label that `-o mine` selects, or "" */
	/* Digest of an AppDef that did not fit into the object, or "". */
	char *appdef_sha256;
	unsigned retries, max_retries; /* attempts after the first: made, and allowed */
	unsigned retry_limit; /* if the controller counts attempts, their maximum; else 0 */
	unsigned minimum;     /* pods that the gang needs to start */
	/* Time limit of all pods, in seconds; 0 if there is none, or they differ. */
	int time_limit;
	bool vague;	 /* reason and message only report that pods have failed: the pods have
			  * the details */
	bool used_up;	 /* its controller has ended it because no retries were left */
	bool has_appdef; /* spec_object_appdef (object.h) finds it */
	bool restarts;	 /* its controller may restart failed parts */
	bool alone;	 /* it restarts each replica separately; the pods have the count */
	/* It replaces a failed pod by another one, sooner or later, while retries are left. */
	bool remakes;
	/* It may react to the success of all pods in other ways than to end the job. */
	bool acts_on_success;
	bool asked;    /* its spec requests its suspension */
	bool suspends; /* it is suspended or being suspended, according to its phase */
	bool over;     /* it has ended or is ending, according to its phase */
	/* Its controller suspends and resumes it, and may recreate it after a deletion. */
	bool owned;
	bool hidden;	 /* it may have pods that are not shown */
	bool from_pods;	 /* only its pods name its roles */
	bool grows;	 /* a task of it may have more replicas than the object requests */
	int generation;	 /* number of the spec's version; 0 if unknown */
	int64_t changed; /* when the phase last changed */
	/*
	 * Pods that were made before this time belong to an attempt that is over; 0: each pod has
	 * its attempt's number.
	 */
	int64_t began;
	/* Phases and times that the controller lists; may be empty. */
	struct spec_transitions conditions;
	struct spec_role_view *roles;
	size_t n_roles;
	struct spec_task_view *tasks; /* ordered by role, then by replica */
	size_t n_tasks;
	unsigned *by_name; /* indices of tasks, in the order of their names */
	size_t n_replicas;
};

/*
 * Parse a job's object. If the server reports that the spec has not changed since an earlier view,
 * copy the members that depend on the spec (most of a large job) from that view. FIND (may be NULL)
 * returns the earlier view of a uid, or NULL. Return 0, or -EINVAL if the text is not such an
 * object, or its name is not valid as a file name.
 */
typedef const struct spec_job_view *(*spec_job_view_find)(void *data, const char *uid);
int spec_job_view_parse(const struct spec_reader *reader, const char *json, size_t len,
			spec_job_view_find find, void *data, struct spec_job_view **ret);
void spec_job_view_free(struct spec_job_view *v); /* NULL is allowed */
/* How the pods of a mount are read. */
struct spec_pod_readers {
	const struct spec_reader *const *v;
	size_t n;
	/*
	 * Return the reader of the job that is, or owns, the object UID; NULL if unknown. May be
	 * NULL.
	 */
	const struct spec_reader *(*find)(void *data, const char *uid);
	void *data;
};

/*
 * Parse a pod with the first reader whose kind matches the pod's controller; if there is only one
 * reader, it parses any pod. The view is SPEC_OWNER_OPEN if several readers match, or if only an
 * object between pod and job can identify the job and FIND does not know that object. If no reader
 * matches, the view has no controller. If the controller no longer exists but is known, the view
 * names the pod itself.
 */
int spec_pod_view_parse(const struct spec_pod_readers *readers, const char *json, size_t len,
			struct spec_pod_view **ret);
/* The members of a pod that are read (spec/api/split.h). */
extern const struct spec_pick spec_pod_pick[];
void spec_pod_view_free(struct spec_pod_view *v); /* NULL is allowed */
/*
 * Complete NOW, the new view of a pod, from BEFORE, its previous view: copy data that the server
 * drops (when the deletion was requested, once the pod has ended) or does not report (whether the
 * deletion or the end came first).
 */
void spec_pod_view_inherit(struct spec_pod_view *now, const struct spec_pod_view *before);

/* The API group of a cluster's metrics of pods. */
#define SPEC_METRICS_GROUP "metrics.k8s.io"
/*
 * Return the version of that group that kxfs reads, from the description of the group:
 * "metrics.k8s.io/v1", static; or NULL.
 */
const char *spec_metrics_version(const char *json, size_t len);
/*
 * Parse JSON, the PodMetrics of a pod, which has a name but no uid. FIND returns the view of that
 * name, or NULL. If the sample is newer than the view's sample, store it in the view and return the
 * view; otherwise return NULL.
 */
typedef struct spec_pod_view *(*spec_pod_view_find)(void *data, const char *name);
const struct spec_pod_view *spec_pod_view_sample(const char *json, size_t len,
						 spec_pod_view_find find, void *data);
/* The members of PodMetrics that are read. */
extern const struct spec_pick spec_metrics_pick[];

/* The data of a job in a queue of Kueue. Plain data. */
struct spec_kueue_facts {
	bool known; /* the user may watch Workloads, so a missing one does not exist */
	const struct spec_workload_view *workload; /* NULL if none is known */
	/* The ClusterQueue of the job's queue; NULL if unknown. */
	const struct spec_cluster_queue_view *cluster_queue;
	unsigned position; /* its position; 1 is next; 0 if unknown */
	bool fixed;	   /* this user may not patch Workloads */
	bool away;	   /* according to its last reply, the server can't reach Kueue */
	bool absent;	   /* the server does not serve Kueue's API */
};

/* The input of a snapshot besides the objects. Plain data. */
struct spec_view_context {
	const struct spec_reader *reader;
	const struct spec_control *control; /* the actions for such jobs, or NULL */
	const char *backend;		    /* name of the backend, as in status */
	/* Name of the job's directory; NULL: the object's name. */
	const char *id;
	const char *namespace;
	int64_t now;
	int64_t stale_since;
	bool own; /* submitted through this state directory */
	/* The user who mounts, as in the label; "" or NULL: no job counts as this user's. */
	const char *user;
	bool history;	/* it has left jobs/ */
	bool pods_late; /* some of its pods may not have been reported yet */
	int64_t since;	/* when the job was first seen, or made */
	/* The job's pod group and queue; NULL if missing, or if the user may not watch them. */
	const struct spec_group_view *group;
	const struct spec_queue_view *queue;
	struct spec_event_view *const *events; /* events about the job, its group and its pods */
	size_t n_events;
	struct spec_kueue_facts kueue;
	bool events_known; /* the user may watch events, so without an event nothing has happened */
	unsigned unseen;   /* resources that this user may not watch though they would explain
			    * why jobs wait: */
#define SPEC_UNSEEN_EVENTS 1u
#define SPEC_UNSEEN_GROUPS 2u
#define SPEC_UNSEEN_PARTS  4u /* and those that own its pods; or the server does not list them */
	/* The last snapshot, or NULL. Data that pods no longer show is copied from it. */
	const struct spec_job *before;
};

/*
 * Make the snapshot of JOB and its PODS, in any order. PODS may include pods of earlier attempts,
 * deleted pods with a known end, and pods of no task of the job, which are ignored. If a job has
 * left jobs/ before kxfs saw it finished, the snapshot is CANCELLED, for good.
 */
struct spec_job *spec_view_job(const struct spec_job_view *job,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx);

/*
 * Return the key of a container's log in one attempt, as in spec_log.key: UID.CONTAINER.RESTART.
 * malloc'ed.
 */
char *spec_view_log_key(const struct spec_pod_view *pod, const char *container, unsigned restart);
