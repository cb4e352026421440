/* SPDX-License-Identifier: MIT */
/*
 * What kxfs keeps of the objects of a cluster: a job's view, its pods' views, and the snapshot that
 * both make (struct spec_job). Reading an object is the kind's business (spec/kind.h); pods are the
 * same for all kinds. Views belong to one thread and do not change once read, but for
 * spec_pod_view.gone. Times are ns since 1970, 0: none; strings are never NULL, and bounded.
 */
#ifndef KXFS_SPEC_VIEW_H
#define KXFS_SPEC_VIEW_H

#include "spec/job.h"

struct spec_kind;
struct spec_event_view; /* watched.h, as the next two */
struct spec_group_view;
struct spec_queue_view;

/* What comes by itself in a moment is not missed before; ns. */
#define SPEC_PATIENCE INT64_C(5000000000)

/* What is common to all objects. */
struct spec_meta {
	char *name; /* fit for a file name and for a path of the API as it is */
	char *uid;  /* letters, digits and dashes */
	char *resource_version;
	char *owner_uid; /* of the controller; "" none */
	int64_t created;
	int64_t deleted; /* when its deletion was asked for: it is going */
};

enum spec_container_state { SPEC_WAITING, SPEC_STARTED, SPEC_TERMINATED };

struct spec_container_view {
	char *name;
	bool init;
	enum spec_container_state state;
	char *reason; /* of waiting and terminated */
	char *message;
	int exit_code; /* of this run; -1: none */
	int signal;
	unsigned restarts;
	int64_t started, finished;
	int last_exit_code; /* of the run before this one; -1: there is none */
};

struct spec_pod_view {
	struct spec_meta meta;
	char *task;	/* of the job's object */
	unsigned index; /* in its task */
	unsigned retry; /* of the job, as the controller counted when it made the pod, or: */
#define SPEC_RETRY_UNKNOWN UINT32_MAX
	char *phase;
	char *node;
	char *reason; /* of the pod: Evicted ...; or why it is not scheduled */
	char *message;
	char *main;  /* the container whose output is the replica's */
	bool reruns; /* a container that has ended may be run again */
	/*
	 * It is no longer in the cluster; this is what it was last. Set by who keeps the view, and kept
	 * for what it tells of its attempt.
	 */
	bool gone;
	struct spec_container_view *containers; /* init containers first */
	size_t n_containers;
};

struct spec_task_view {
	char *name;	  /* in the object, and in its pods */
	unsigned role;	  /* index in roles */
	unsigned replica; /* id of the replica that index 0 is */
	unsigned n;	  /* replicas that are shown: SPEC_MAX_REPLICAS in a job */
	size_t first;	  /* index of the first in the snapshot's replicas */
};

/* A role of TorchX, of which each replica is a task; or a task. */
struct spec_role_view {
	char *name;
	char *dir; /* directories of its replicas: DIR-K; no two roles have the same */
	unsigned desired, minimum;
	size_t first, n; /* replicas */
};

struct spec_job_view {
	struct spec_meta meta;
	char *app;
	char *phase; /* "": no controller has acted on it yet */
	char *reason;
	char *message;
	char *queue;
	char *submitter;
	char *submission;
	bool has_appdef;     /* spec_object_appdef (object.h) finds it */
	char *appdef_sha256; /* of one that did not fit the object; "" none */
	unsigned retries, max_retries;
	unsigned retry_limit; /* when it has so many retries it is not started again; 0 unknown */
	unsigned minimum;     /* pods that the gang needs */
	bool restarts;	      /* its controller may start again what has failed */
	bool asked;	      /* its spec asks for it to be suspended */
	bool hidden;	      /* it may have pods that are not shown */
	int64_t changed;      /* of the phase */
	/* Pods that were made earlier are of a try that is over; 0: each says of which try it is. */
	int64_t began;
	struct spec_transitions
		conditions; /* phases as the controller tells of them; none: it doesn't */
	int generation;	    /* of what follows from the object's spec; 0 unknown */
	struct spec_role_view *roles;
	size_t n_roles;
	struct spec_task_view *tasks; /* in the order of roles, then of replicas */
	size_t n_tasks;
	unsigned *by_name; /* indices of tasks, in the order of their names */
	size_t n_replicas;
};

/* -EINVAL: not an object of that sort, or with a name that can't be a file's; -ENOMEM. */
int spec_job_view_parse(const struct spec_kind *kind, const char *json, size_t len,
			struct spec_job_view **ret);
/*
 * The same, much faster for large jobs: what follows from the object's spec is copied from the view
 * that FIND knows of this uid (NULL: none), if the server says that the spec has not changed since.
 */
typedef const struct spec_job_view *(*spec_job_view_find)(void *data, const char *uid);
int spec_job_view_parse_again(const struct spec_kind *kind, const char *json, size_t len,
			      spec_job_view_find find, void *data, struct spec_job_view **ret);
void spec_job_view_free(struct spec_job_view *v); /* NULL is allowed */
int spec_pod_view_parse(const struct spec_kind *kind, const char *json, size_t len,
			struct spec_pod_view **ret);
void spec_pod_view_free(struct spec_pod_view *v); /* NULL is allowed */
/*
 * NOW takes the place of BEFORE, an earlier view of the same pod: takes over what the server forgets
 * (when the deletion was asked for, once it is done).
 */
void spec_pod_view_inherit(struct spec_pod_view *now, const struct spec_pod_view *before);

/* What of a snapshot is not in the objects. */
struct spec_view_context {
	const struct spec_kind *kind;
	const char *namespace;
	int64_t now;
	int64_t stale_since;
	bool own;      /* submitted through this state directory */
	bool history;  /* it has left jobs/ */
	int64_t since; /* when the job was seen first, or made */
	/* What else is known of it (watched.h); NULL: nothing, or it may not be watched. */
	const struct spec_group_view *group;
	const struct spec_queue_view *queue;
	struct spec_event_view *const *events; /* about the job, its group and its pods */
	size_t n_events;
	bool events_known; /* that there is none means something */
	/* The snapshot before this one, NULL: none. What pods can no longer tell is taken from it. */
	const struct spec_job *before;
};

/*
 * The snapshot of JOB and its PODS (in any order; those of earlier attempts and those that are gone
 * but whose end is remembered are among them; what is of no task of the job is left out). A job that
 * has left jobs/ before it had finished is CANCELLED. NULL: no memory.
 */
struct spec_job *spec_view_job(const struct spec_job_view *job,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx);

/*
 * The key of a container's log in one attempt, as it is in spec_log.key: UID.CONTAINER.RESTART.
 * malloc'ed; NULL: no memory.
 */
char *spec_view_log_key(const struct spec_pod_view *pod, const char *container, unsigned restart);

#endif
