/* SPDX-License-Identifier: MIT */
/*
 * Makes the pods of roles, for all kinds. Replicas share most parts by reference, so that making a
 * thousand pods takes milliseconds.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/base/tree.h"
#include "spec/pods/kind.h"

#define POD_TORCHX_VERSION "0.7.0" /* the version of TorchX whose manifests kxfs reproduces */

/* The run options about pods, for the option table of a kind that supports all of them. */
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

/* The input and the result of making a job's object. Plain data: the caller fills in the input. */
struct spec_build {
	const struct spec_kind *kind;
	const struct spec_app *app;
	const struct spec_options *options;
	const struct spec_identity *identity;
	struct spec_errors *errors;
	char *id; /* the object's name; spec_kind.build sets it */
	/* true if the name is from a ready manifest; false if kxfs chose it at random */
	bool named;
	struct json_object *object; /* the result; spec_kind.build sets it */
};

/* Add an error about the field at PATH to B's errors. Return -EINVAL. */
int spec_build_refuse(struct spec_build *b, const char *path, const char *fmt, ...)
	printf_like(3, 4);

/*
 * Choose the job's name, and check it and the roles' retry policies for CONTROLLER, the controller
 * of B's kind. CONTROLLER makes a Service with this name, so it must begin with a letter. Return 0,
 * or -EINVAL after adding errors to B's errors.
 */
int spec_build_begin(struct spec_build *b, const char *controller);

/* If B's options name a queue of Kueue, set Kueue's labels in LABELS, the object's labels. */
void spec_build_queue(const struct spec_build *b, struct json_object *labels);
/* If B's options have a ttl, set it in SPEC: how long the cluster keeps the finished object. */
void spec_build_ttl(const struct spec_build *b, struct json_object *spec);

/*
 * The parts that all pods of a job share. Plain data: the kind sets the texts and numbers, and
 * pod.c makes all other members.
 */
struct spec_pods {
	struct spec_build *build;
	const char *app_name; /* the app's name as it is in labels */
	/* name of the variable with the host of rank 0, in all pods but that of rank 0 */
	const char *rank0_env;
	/*
	 * The text in a role's template that the cluster replaces by the replica's number. NULL if
	 * the object has a pod for each replica.
	 */
	const char *replica_id;
	/* host of rank 0, if REPLICA_ID is set and the host is known; otherwise NULL */
	const char *rank0_host;
	const char *network; /* name of a Multus network, or NULL */
	/* where the controller mounts lists of host names, or NULL */
	const char *hosts_dir;
	/*
	 * A kind may change the next three members after spec_pods_init has set TorchX's defaults.
	 */
	int64_t reserved_cpu;	 /* a pod's CPU limit minus its request, in millicores */
	int64_t reserved_memory; /* a pod's memory limit minus its request, in MB */
	int64_t efa; /* vpc.amazonaws.com/efa devices of each pod; -1 to use the role's number */
	struct json_object *labels;
	struct json_object *annotations;
	struct json_object *job_id; /* the variable TORCHX_JOB_ID */
	/*
	 * The variable RANK0_HOST: in all pods if REPLICA_ID is set, else only in the pod of rank
	 * 0.
	 */
	struct json_object *rank0;
	/* the variable to which the text REPLICA_ID refers, or NULL */
	struct json_object *number;
};

/* Make the members of P that the kind does not set. The build's id must be set. */
void spec_pods_init(struct spec_pods *p);
void spec_pods_clear(struct spec_pods *p);

/*
 * Make an object with apiVersion VERSION and kind KIND in the namespace of B's job. Take ownership
 * of NAME, the object's name. Set *METADATA (borrowed) to the object's metadata.
 */
struct json_object *spec_build_object(const struct spec_build *b, const char *version,
				      const char *kind, struct json_object *name,
				      struct json_object **metadata);
/* Return the labels that every object of the job has: name, managed-by, instance. */
struct json_object *spec_pods_object_labels(struct spec_pods *p);

/*
 * The parts that all pods of a role share. Plain data: pod.c makes them, and a kind may add to
 * LABELS, SPEC and MORE_ENV.
 */
struct spec_pod_role {
	struct spec_pods *pods;
	const struct spec_role *role;
	size_t index;
	struct json_object *labels;
	/* the pod's spec without its container */
	struct json_object *spec;
	/* the container without its name, image, command and environment */
	struct json_object *container;
	struct json_object *image;
	/* the environment variable with the image's name */
	struct json_object *image_env;
	struct json_object *command; /* NULL if the command has macros */
	/* an element for each of the role's variables; NULL if its value has macros */
	struct json_object **env;
	struct json_object *more_env; /* environment variables that the kind appends */
	struct json_object *metadata; /* the role's metadata, which contains the overlay */
	struct json_object *overlay;  /* or NULL */
	bool overlay_varies;	      /* true if the overlay may have macros */
	char *overlay_path;
};

/*
 * Prepare role INDEX. Return 0, or the errno of the error that was added to the build's errors. The
 * caller must clear *R even after an error.
 */
int spec_pod_role_init(struct spec_pod_role *r, struct spec_pods *p, size_t index);
void spec_pod_role_clear(struct spec_pod_role *r);
/* If the run options name a secret to pull images with, add it to R's SPEC. */
void spec_pod_add_secret(struct spec_pod_role *r);

/*
 * Make the pod of replica K, with a container called NAME. Return a map with the members metadata
 * and spec; the caller owns the map and both members. If there is an error, add it to the build's
 * errors and return NULL.
 */
struct json_object *spec_pod_make(struct spec_pod_role *r, unsigned k, const char *name);

/* Call FN for each pod and each pod template in OBJECT, which is of KIND. */
void spec_each_template(const struct spec_kind *kind, struct json_object *object,
			void (*fn)(struct json_object *pod, const void *data), const void *data);

/* Return how often the whole job may be retried: the smallest max_retries of its roles. */
int64_t spec_pods_least_retries(const struct spec_app *app);
/* Return the number of decimal digits of N. */
size_t spec_pods_digits(size_t n);

/*
 * Return a lower bound for the bytes of APP's pods in an object of KIND, so that kxfs can refuse a
 * far too large object before making it.
 */
uint64_t spec_pods_least_bytes(const struct spec_kind *kind, const struct spec_app *app);

/* --- pod_check.c, for pod.c --- */

/* A variable whose value is this prefix and a path gets the value of the pod's field there. */
#define POD_FIELD_PATH "[FIELD_PATH]"
#define POD_GPU	       "nvidia.com/gpu"

/*
 * Check R's mounts, devices and environment variables. Refuse what the API server would refuse, and
 * what would keep the pod from starting. Unlike the server's errors, these have a position in the
 * document. Return 0, or the errno of the errors that were added to the build's errors.
 */
int pod_check(struct spec_pod_role *r);
