/* SPDX-License-Identifier: MIT */
/*
 * A role's pods, common to all kinds: container, resources, volumes, variables, labels, and the
 * overlay. Parts that replicas share are made once and shared by reference, so that a thousand of
 * them take milliseconds.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/base/tree.h"
#include "spec/pods/kind.h"

#define POD_TORCHX_VERSION "0.7.0" /* the version whose manifests kxfs reproduces */

/* The run options that change pods, for the tables of the kinds that have all of them. */
#define POD_OPTIONS                                                                                \
	{.name = "service_account",                                                                \
	 .type = SPEC_OPTION_NAME,                                                                 \
	 .help = "service account of the pods"},                                                   \
		{.name = "image_repo", .help = "repository of local images (sha256:...)"},         \
	{                                                                                          \
		.name = "image_secret", .type = SPEC_OPTION_NAME,                                  \
		.help = "secret to pull images with"                                               \
	}

#define POD_NO_ANNOTATIONS_OPTION                                                                  \
	{                                                                                          \
		.name = "no_annotations", .type = SPEC_OPTION_BOOL,                                \
		.help = "leave the annotations and the label kxfs/... out"                         \
	}

/* Input and result of a kind. Plain data. */
struct spec_build {
	const struct spec_kind *kind;
	const struct spec_app *app;
	const struct spec_options *options;
	const struct spec_identity *identity;
	struct spec_errors *errors;
	char *id;		    /* made by the kind: the object's name */
	bool named;		    /* use a ready manifest's own name, not a random one */
	struct json_object *object; /* made by the kind */
};

/* Add an error about a field; return -EINVAL. */
int spec_build_refuse(struct spec_build *b, const char *path, const char *fmt, ...)
	printf_like(3, 4);

/*
 * Choose the job's name for a kind whose CONTROLLER makes a Service of that name, which must begin
 * with a letter. Return 0, or -EINVAL, which is in the build's errors.
 */
int spec_build_name(struct spec_build *b, const char *controller);
/* Refuse a retry policy of role INDEX that CONTROLLER does not support; return -EINVAL. */
int spec_build_retries(struct spec_build *b, size_t index, const char *controller);

/* Set the labels of the object for a queue of Kueue, if B's options name one. */
void spec_build_queue(const struct spec_build *b, struct json_object *labels);
/* Set the time after which the cluster removes the finished object, if there is one. */
void spec_build_ttl(const struct spec_build *b, struct json_object *spec);

/*
 * Parts that all pods of a job share. Plain data: the kind sets the texts and numbers, pod.c the
 * rest.
 */
struct spec_pods {
	struct spec_build *build;
	const char *app_name;  /* for labels */
	const char *rank0_env; /* the variable with rank 0's host, for all but rank 0 */
	/*
	 * If not NULL, all pods of a role share one template. There this text is a placeholder for
	 * the replica's number, which the cluster expands. RANK0_HOST is then rank 0's host name,
	 * the same for all pods.
	 */
	const char *replica_id;
	const char *rank0_host;	 /* NULL if unknown; then pods do not get the variable */
	const char *network;	 /* Multus network, or NULL */
	const char *hosts_dir;	 /* where the kind mounts the names of hosts, or NULL */
	int64_t reserved_cpu;	 /* millicores of the host that requests omit */
	int64_t reserved_memory; /* MB, likewise */
	int64_t efa;		 /* count of vpc.amazonaws.com/efa; -1: as in the role */
	struct json_object *labels;
	struct json_object *annotations;
	struct json_object *job_id; /* the variable TORCHX_JOB_ID */
	struct json_object *rank0;  /* the variable of rank 0, or of all pods */
	struct json_object *number; /* the variable that REPLICA_ID refers to, or NULL */
};

/* Make the members that the kind has not set. The build's id was chosen before. */
void spec_pods_init(struct spec_pods *p);
void spec_pods_clear(struct spec_pods *p);

/* Labels of any object of the job: name, managed-by, instance. */
struct json_object *spec_pods_object_labels(struct spec_pods *p);

/*
 * Parts that all pods of a role share. Plain data: made by pod.c; a kind may add to labels, spec
 * and more_env.
 */
struct spec_pod_role {
	struct spec_pods *pods;
	const struct spec_role *role;
	size_t index;
	struct json_object *labels;
	/* Spec of the pod, without its container; a kind may add to it. */
	struct json_object *spec;
	struct json_object *container; /* without name, image, command and variables */
	struct json_object *image;
	struct json_object *image_env; /* the variable with the image */
	struct json_object *command;   /* NULL if it has macros */
	struct json_object **env;      /* one for each variable of the role; NULL if it has
				        * macros */
	struct json_object *more_env;  /* variables that the kind appends */
	struct json_object *metadata;  /* the role's, with the overlay */
	struct json_object *overlay;   /* or NULL */
	bool overlay_varies;	       /* it may have macros */
	char *overlay_path;
};

/* Prepare role INDEX. Return 0, or an errno that is in the build's errors. Clear *R in any case. */
int spec_pod_role_init(struct spec_pod_role *r, struct spec_pods *p, size_t index);
void spec_pod_role_clear(struct spec_pod_role *r);

/*
 * Make the pod of replica K, with a container NAME: {metadata, spec}, both its own. NULL and a
 * build error on failure.
 */
struct json_object *spec_pod_make(struct spec_pod_role *r, unsigned k, const char *name);

/* Call FN for each pod or template of a pod in OBJECT, of KIND. */
void spec_each_template(const struct spec_kind *kind, struct json_object *object,
			void (*fn)(struct json_object *pod, const void *data), const void *data);

/* Return the allowed number of retries of the whole job: the least of its roles. */
int64_t spec_pods_least_retries(const struct spec_app *app);
/* Return the number of digits of N. */
size_t spec_pods_digits(size_t n);

/*
 * Return a lower bound of the JSON bytes of the pods of APP in an object of KIND. With it kxfs
 * refuses a far too large object before it makes the object.
 */
uint64_t spec_pods_least_bytes(const struct spec_kind *kind, const struct spec_app *app);

/* --- pod_check.c, for pod.c --- */

#define POD_FIELD_PATH "[FIELD_PATH]" /* a value with this prefix names a field of the pod */
#define POD_GPU	       "nvidia.com/gpu"

/*
 * Refuse mounts, devices and variables of R that the API server would refuse, or with which the pod
 * would never start, so that the error has the position in the document. Return 0, or an errno that
 * is in the build's errors.
 */
int pod_check(struct spec_pod_role *r);
