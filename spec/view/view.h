/* SPDX-License-Identifier: MIT */
/*
 * What kxfs keeps of the objects of a cluster: a job's view, its pods' views, and the snapshot that both make (struct
 * spec_job). The kind knows how an object is read (spec/view/reader.h); pods are the same for all kinds. Views belong
 * to one thread and do not change once read, except GONE and LOOK of a pod. Times are ns since 1970, 0: none; strings
 * are never NULL, and bounded.
 */
#pragma once

#include "spec/base/pick.h"
#include "spec/job/job.h"

struct spec_control;	/* control.h */
struct spec_reader;	/* reader.h */
struct spec_event_view; /* watched.h, as the next two */
struct spec_group_view;
struct spec_queue_view;
struct spec_workload_view; /* kueue.h, as the next */
struct spec_cluster_queue_view;

/* How long (ns) `why` does not say that something is missing, since most things come by themselves in a moment. */
#define SPEC_PATIENCE INT64_C(5000000000)

/* The metadata that all objects have. Plain data. */
struct spec_meta {
	char *name;	 /* can be a file name, and a part of a path of the API */
	char *uid;	 /* letters, digits and dashes */
	char *owner_uid; /* uid of its controller; "": none */
	char *owner;	 /* kind and name of its controller; "": none */
	int64_t created;
	int64_t deleted; /* when its deletion was asked for */
};

enum spec_container_state { SPEC_WAITING, SPEC_STARTED, SPEC_TERMINATED };

/* A container's present run, and how the run before ended. Plain data. */
struct spec_container_view {
	char *name;
	char *reason; /* reason of waiting and terminated */
	char *message;
	/* The last words of its program, as the kubelet has kept them when it failed; "": none. */
	char *words;
	bool init;
	enum spec_container_state state;
	int exit_code; /* exit code of this run; -1: none */
	int signal;
	unsigned restarts;
	int last_exit_code; /* exit code of the run before this one; -1: there is none */
	int64_t last_finished;
	int64_t started, finished; /* when this run started and finished */
};

/* A look at the main container of a pod. Plain data. */
struct spec_look {
	int64_t at;	/* 0: there was no look */
	int64_t cpu;	/* millionths of a core, on average since the look before; -1: not known */
	int64_t memory; /* bytes of its working set; -1: not known */
};

/* A pod. Plain data: the kind's reader fills a part of it. */
struct spec_pod_view {
	struct spec_meta meta;
	char *task;	/* its task in the job's object; "": the job has only one */
	unsigned index; /* its index in the task; UINT32_MAX: the controller does not number pods;
			 * SPEC_INDEX_NONE: it does, and this one has no number */
	unsigned retry; /* retries of the job when the controller made the pod; or: */
#define SPEC_INDEX_NONE	   (UINT32_MAX - 1)
#define SPEC_RETRY_UNKNOWN UINT32_MAX
	unsigned failures; /* how often its replica, which is retried alone, had failed before */
	char *phase;
	char *node;
	char *reason; /* reason of the pod: Evicted ...; or why it is not scheduled */
	char *message;
	char *main;	  /* the container whose output is the replica's */
	int64_t deadline; /* when its node ends it for its time limit; 0: none, or not known */
	int64_t lost;	  /* its node has not been heard of since then; 0: it has */
	bool reruns;	  /* a container that has ended may be run again */
	bool main_reruns; /* the main one may be, too, when it has failed */
	bool ended;	  /* it was seen to have ended before its deletion was asked for */
	/*
	 * The pod is no longer in the cluster, and the view is its last state. The owner of the view sets this, and
	 * keeps the view, since it shows how an attempt ended.
	 */
	bool gone;
	/* SUCCEEDED or FAILED: all its containers have ended so, and none will be run again; else UNKNOWN. */
	enum spec_state outcome;
	struct spec_container_view *containers; /* init containers first */
	size_t n_containers;
	struct spec_request request; /* what the main container is given */
	struct spec_look look;	     /* the last one; spec_pod_view_look sets it */
};

/* A task of the job's object. Plain data. */
struct spec_task_view {
	char *name;	  /* its name in the object and in its pods */
	unsigned role;	  /* index in roles */
	unsigned replica; /* id of the replica whose pod has index 0 */
	unsigned n;	  /* replicas that are shown; a job shows at most SPEC_MAX_REPLICAS */
	size_t first;	  /* index of its first replica among the snapshot's replicas */
};

/* A role of TorchX, each replica of which is a task; or a task. Plain data. */
struct spec_role_view {
	char *name;
	char *dir; /* directories of its replicas: DIR-K; no two roles have the same */
	unsigned desired, minimum;
	size_t first, n; /* its replicas */
};

/* A job's object. Plain data: the kind's reader fills a part of it. */
struct spec_job_view {
	struct spec_meta meta;
	char *resource_version;
	char *app;
	char *phase; /* "": no controller has acted on it yet */
	char *reason;
	char *message;
	char *queue;
	char *priority; /* the name of its priority class for Kueue; "" none */
	char *submitter;
	char *submission;
	char *owner_api; /* version of the API that its controller is of; "" none */
	char *user;	 /* its label by which `-o mine` chooses; "": none */
	/* Digest of an AppDef that did not fit into the object; "": none. */
	char *appdef_sha256;
	unsigned retries, max_retries; /* attempts after the first: made, and allowed */
	unsigned retry_limit; /* where the controller counts attempts: how many; 0: it does not */
	unsigned minimum;     /* pods that the gang needs to start */
	/* Time limit of all pods, in seconds; 0: none, or not the same for all. */
	int time_limit;
	bool vague;	 /* reason and message only say that pods have failed: the pods say more */
	bool used_up;	 /* its controller has ended it because it has no retries left */
	bool has_appdef; /* spec_object_appdef (object.h) finds it */
	bool restarts;	 /* its controller may start parts that have failed again */
	bool alone;	 /* and does so for each replica by itself, whose pods count that */
	/* It makes another pod for one that has failed, sooner or later, while retries are left. */
	bool remakes;
	/* It may do something else than end the job when all pods have succeeded. */
	bool acts_on_success;
	bool asked;    /* its spec asks for it to be suspended */
	bool suspends; /* its phase is that of a job that is suspended, or is about to be */
	bool over;     /* its phase is the last one, or leads to it */
	/* Its controller suspends and resumes it, and may make it anew after a deletion. */
	bool owned;
	bool hidden;	 /* it may have pods that are not shown */
	int generation;	 /* number of the spec's version; 0: not known */
	int64_t changed; /* when the phase last changed */
	/* A pod that was made earlier belongs to an attempt that is over; 0: each pod says to which it belongs. */
	int64_t began;
	/* Phases and times that the controller lists; there may be none. */
	struct spec_transitions conditions;
	struct spec_role_view *roles;
	size_t n_roles;
	struct spec_task_view *tasks; /* ordered by role, then by replica */
	size_t n_tasks;
	unsigned *by_name; /* indices of tasks, in the order of their names */
	size_t n_replicas;
};

/*
 * Read a job's object. 0; -EINVAL: it is no such object, or its name can't be a file's. What follows from the object's
 * spec, which is most of a large job, is copied from the view that FIND (may be NULL) knows for this uid (NULL: none),
 * if the server says that the spec has not changed since.
 */
typedef const struct spec_job_view *(*spec_job_view_find)(void *data, const char *uid);
int spec_job_view_parse(const struct spec_reader *reader, const char *json, size_t len,
			spec_job_view_find find, void *data, struct spec_job_view **ret);
void spec_job_view_free(struct spec_job_view *v); /* NULL is allowed */
/*
 * Read a pod by the first of the N readers whose kind has pods with its controller; a single reader reads any pod. A
 * pod for which there is no reader has no controller in its view.
 */
int spec_pod_view_parse(const struct spec_reader *const *readers, size_t n, const char *json,
			size_t len, struct spec_pod_view **ret);
/* The members of a pod that are read (spec/api/split.h). */
extern const struct spec_pick spec_pod_pick[];
void spec_pod_view_free(struct spec_pod_view *v); /* NULL is allowed */
/*
 * NOW replaces BEFORE, an earlier view of the same pod: it takes over what the server forgets (when the
 * deletion was asked for, once the pod has ended) or does not tell (which of both came first).
 */
void spec_pod_view_inherit(struct spec_pod_view *now, const struct spec_pod_view *before);

/* The group of the API by which a cluster tells what pods use. */
#define SPEC_METRICS_GROUP "metrics.k8s.io"
/*
 * The version of that group that kxfs reads, as the description of the group lists it: "metrics.k8s.io/v1", static.
 * NULL: none.
 */
const char *spec_metrics_version(const char *json, size_t len);
/*
 * JSON is the PodMetrics of a pod, which has a name and no uid. It becomes the look of the view that FIND knows by this
 * name (NULL: none), if it is newer than the look of that. Returns the view; NULL: none has changed.
 */
typedef struct spec_pod_view *(*spec_pod_view_find)(void *data, const char *name);
const struct spec_pod_view *spec_pod_view_look(const char *json, size_t len,
					       spec_pod_view_find find, void *data);
/* The members of PodMetrics that are read. */
extern const struct spec_pick spec_metrics_pick[];

/* What is known of a job in a queue of Kueue. Plain data. */
struct spec_kueue_facts {
	bool known; /* we may watch Workloads, so if there is none, Kueue has made none */
	const struct spec_workload_view *workload; /* NULL: none is known */
	/* The ClusterQueue of the job's queue; NULL: not known. */
	const struct spec_cluster_queue_view *cluster_queue;
	const char *preemptor; /* the job for which its pods were last ended; NULL: not known */
	unsigned place;	       /* its place; 1 is next; 0: not known */
	bool fixed;	       /* this user may not patch Workloads */
	bool away;	       /* the server can't reach Kueue, as it last said */
	bool absent;	       /* the server does not serve Kueue's API */
};

/* All that a snapshot needs beside the objects. Plain data. */
struct spec_view_context {
	const struct spec_reader *reader;
	const struct spec_control *control; /* what ctl does to such jobs; NULL: nothing */
	const char *backend;		    /* its name, as in status */
	/* Name of the job's directory; NULL: the object's name. */
	const char *id;
	const char *namespace;
	int64_t now;
	int64_t stale_since;
	bool own; /* submitted through this state directory */
	/* The user who mounts, as in the label; "" or NULL: no job counts as this user's. */
	const char *user;
	bool history;	/* it has left jobs/ */
	bool pods_late; /* there may be pods of it that were not told yet */
	int64_t since;	/* when the job was first seen, or made */
	/* What else is known of it; NULL: nothing, or the user may not watch it. */
	const struct spec_group_view *group;
	const struct spec_queue_view *queue;
	struct spec_event_view *const *events; /* events about the job, its group and its pods */
	size_t n_events;
	struct spec_kueue_facts kueue;
	bool events_known; /* we may watch events, so if there is none, nothing has happened */
	unsigned unseen;   /* what this user may not watch though it would tell why jobs wait: */
#define SPEC_UNSEEN_EVENTS 1u
#define SPEC_UNSEEN_GROUPS 2u
	/* The last snapshot; NULL: there is none. What pods no longer show is taken from it. */
	const struct spec_job *before;
};

/*
 * Make the snapshot of JOB and its PODS, in any order. PODS may have pods of earlier attempts, pods that are gone but
 * whose end is remembered, and pods that belong to no task of the job, which are left out. A job that has left jobs/
 * before it was seen to have finished is CANCELLED, and stays so.
 */
struct spec_job *spec_view_job(const struct spec_job_view *job,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx);

/* The key of a container's log in one attempt, as in spec_log.key: UID.CONTAINER.RESTART. malloc'ed. */
char *spec_view_log_key(const struct spec_pod_view *pod, const char *container, unsigned restart);
