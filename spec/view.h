/* SPDX-License-Identifier: MIT */
/*
 * What kxfs keeps of the objects of a cluster: a job's view, its pods' views, and the snapshot that
 * both make (struct spec_job). Reading an object is the kind's business (spec/kind.h); pods are the
 * same for all kinds. Views belong to one thread. Times are ns since 1970, 0: none; strings are never
 * NULL.
 */
#ifndef KXFS_SPEC_VIEW_H
#define KXFS_SPEC_VIEW_H

#include "spec/job.h"

struct spec_kind;

/* What is common to all objects. */
struct spec_meta {
	char *name;
	char *uid;
	char *resource_version;
	char *owner_uid; /* of the controller; "" none */
	int64_t created;
	int64_t deleted; /* deletionTimestamp: it is going */
};

enum spec_container_state { SPEC_WAITING, SPEC_STARTED, SPEC_TERMINATED };

struct spec_container_view {
	char *name;
	bool init;
	enum spec_container_state state;
	char *reason; /* of waiting and terminated */
	char *message;
	int exit_code; /* -1: none */
	int signal;
	unsigned restarts;
	int64_t started, finished;
	/* How the run before this one ended (lastState); exit_code -1: there is none. */
	char *last_reason;
	int last_exit_code;
};

struct spec_pod_view {
	struct spec_meta meta;
	char *task;	/* volcano.sh/task-spec, or the kind's own word */
	unsigned index; /* in its task */
	unsigned retry; /* of the job, as the controller counts */
	char *role;	/* TorchX's role name; "" not made so */
	unsigned replica;
	char *phase;
	char *node;
	char *reason; /* of the pod: Evicted ...; or why it is not scheduled */
	char *message;
	char *main;   /* the container whose output is the replica's */
	int64_t started;
	struct spec_container_view *containers; /* init containers first */
	size_t n_containers;
};

struct spec_task_view {
	char *name;  /* of the task, in the object */
	char *role;  /* TorchX's role name; "" */
	unsigned replica; /* TorchX's replica id of index 0 */
	unsigned replicas;
	unsigned minimum;
	char *main; /* container */
};

struct spec_job_view {
	struct spec_meta meta;
	char *app;
	char *phase;
	char *reason;
	char *message;
	char *queue;
	char *submitter;
	char *submission;
	char *appdef; /* text of the annotation; "" none */
	unsigned retries, max_retries;
	unsigned minimum; /* pods that the gang needs */
	bool touched;	  /* a controller has acted on it */
	int64_t changed;  /* of the phase */
	struct spec_task_view *tasks;
	size_t n_tasks;
};

/* -EINVAL: not an object of that sort, with a name that can be a file's; -ENOMEM. */
int spec_job_view_parse(const struct spec_kind *kind, const char *json, size_t len,
			struct spec_job_view **ret);
void spec_job_view_free(struct spec_job_view *v);
int spec_pod_view_parse(const struct spec_kind *kind, const char *json, size_t len,
			struct spec_pod_view **ret);
void spec_pod_view_free(struct spec_pod_view *v);

/* What of a snapshot is not in the objects. */
struct spec_view_context {
	const struct spec_kind *kind;
	const char *namespace;
	int64_t now;
	int64_t stale_since;
	bool own;     /* submitted through this state directory */
	bool history; /* it has left jobs/ */
	/* The snapshot before this one, NULL: none. What pods can no longer tell is taken from it. */
	const struct spec_job *before;
};

/*
 * The snapshot of JOB and its PODS (in any order; those of earlier attempts and those that are gone
 * but whose end is remembered are among them). NULL: no memory.
 */
struct spec_job *spec_view_job(const struct spec_job_view *job,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx);

/* The key of a container's log in one attempt, as it is in spec_log.key. malloc'ed. */
char *spec_view_log_key(const struct spec_pod_view *pod, const char *container, unsigned restart);

/* The object's JSON as YAML for manifest.yaml. 0 and malloc'ed text, -EINVAL, -ENOMEM. */
int spec_object_yaml(const char *json, size_t len, char **ret, size_t *ret_len);

#endif
