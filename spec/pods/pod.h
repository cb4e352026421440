/* SPDX-License-Identifier: MIT */
/* Makes pods for all kinds. Replicas share most parts, so a thousand pods take milliseconds. */
#pragma once

#include "spec/app/app.h"
#include "spec/base/tree.h"
#include "spec/pods/kind.h"

#define POD_TORCHX_VERSION "0.7.0" /* kxfs reproduces the manifests of this version */

/* The run options for pods. Kinds that support all of them use this list. */
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

/* The input and the result of making an object. Plain data. */
struct spec_build {
	const struct spec_kind *kind;
	const struct spec_app *app;
	const struct spec_options *options;
	const struct spec_identity *identity;
	struct spec_errors *errors;
	char *id;		    /* the object's name; the kind sets it */
	bool named;		    /* the name is from a ready manifest, not random */
	struct json_object *object; /* the result; the kind sets it */
};

/* Add an error about the field at PATH. Return -EINVAL. */
int spec_build_refuse(struct spec_build *b, const char *path, const char *fmt, ...)
	printf_like(3, 4);
/* Add an error about FIELD of role INDEX, or about FIELD's entry KEY (or NULL). Return -EINVAL. */
int spec_role_refuse(struct spec_build *b, size_t index, const char *field, const char *key,
		     const char *fmt, ...) printf_like(5, 6);

/*
 * Choose the job's name. CONTROLLER makes a Service with this name, so check that it begins with a
 * letter. Also check that CONTROLLER supports the retry policies. Return 0, or -EINVAL after adding
 * errors.
 */
int spec_build_begin(struct spec_build *b, const char *controller);

/* Set Kueue's label in an object's LABELS, if B's options name a queue. */
void spec_build_queue(const struct spec_build *b, struct json_object *labels);
/* Set ttlSecondsAfterFinished in SPEC, if B's options have a ttl. */
void spec_build_ttl(const struct spec_build *b, struct json_object *spec);

/*
 * What all pods of a job share. Plain data: the kind sets texts and numbers, pod.c the rest.
 * spec_pods_clear frees all texts that are not const.
 */
struct spec_pods {
	struct spec_build *build;
	char *app_name; /* as in labels; by default, the app's name */
	/* In the pods of other ranks, the variable with this name has the host of rank 0. */
	char *rank0_env;
	/*
	 * The text in a role's template that the cluster replaces by the replica's number. NULL if
	 * the object has a separate pod for each replica.
	 */
	const char *replica_id;
	char *rank0_host;      /* host of rank 0, if REPLICA_ID is set; or NULL */
	const char *network;   /* name of a Multus network, or NULL */
	const char *hosts_dir; /* where the controller mounts lists of hosts, or NULL */
	/* spec_pods_init sets TorchX's defaults. A kind may then change these three. */
	int64_t reserved_cpu;	 /* CPU limit minus request, in millicores */
	int64_t reserved_memory; /* memory limit minus request, in MB */
	int64_t efa;		 /* vpc.amazonaws.com/efa devices; -1 for the role's number */
	struct json_object *labels;
	struct json_object *annotations;
	struct json_object *job_id; /* the variable TORCHX_JOB_ID */
	/*
	 * The variable TORCHX_RANK0_HOST. It is in all pods if REPLICA_ID is set, otherwise only in
	 * the pod of rank 0.
	 */
	struct json_object *rank0;
	struct json_object *number; /* the variable that REPLICA_ID refers to, or NULL */
	struct json_object *parts;  /* a list; the kind appends tasks, jobs or other objects */
};

/* Set the members that the kind does not set. The build's id must be set. */
void spec_pods_init(struct spec_pods *p);
void spec_pods_clear(struct spec_pods *p);

/* Make an object for B's job. Take ownership of NAME. *METADATA is borrowed from the object. */
struct json_object *spec_build_object(const struct spec_build *b, const char *version,
				      const char *kind, struct json_object *name,
				      struct json_object **metadata);
/* Return the labels of every object of the job: name, managed-by, instance. */
struct json_object *spec_pods_object_labels(struct spec_pods *p);

/* What all pods of a role share. Plain data: a kind may add to LABELS, SPEC and MORE_ENV. */
struct spec_pod_role {
	struct spec_pods *pods;
	const struct spec_role *role;
	size_t index;
	struct json_object *labels;
	struct json_object *spec;      /* without the container */
	struct json_object *container; /* without name, image, command and environment */
	struct json_object *image;
	struct json_object *more_env; /* the kind appends these variables */
	struct json_object *metadata; /* of the role; has the overlay */
	struct json_object *overlay;  /* or NULL */
	char *overlay_path;
};

/* Prepare role INDEX. Return 0, or the errno of the build's errors. Clear *R in any case. */
int spec_pod_role_init(struct spec_pod_role *r, struct spec_pods *p, size_t index);
void spec_pod_role_clear(struct spec_pod_role *r);
/* Add the secret for pulling images, from the run options, to R's SPEC. */
void spec_pod_add_secret(struct spec_pod_role *r);

/*
 * Make the pod of replica K, with a container called NAME. The caller owns the pod and its members
 * metadata and spec. If there is an error, add it to the build's errors and return NULL.
 */
struct json_object *spec_pod_make(struct spec_pod_role *r, unsigned k, const char *name);

/* Call FN for each pod and pod template in OBJECT, which is of KIND. */
void spec_each_template(const struct spec_kind *kind, struct json_object *object,
			void (*fn)(struct json_object *pod, const void *data), const void *data);

/* Return the smallest max_retries of all roles: how often the whole job may be retried. */
int64_t spec_pods_least_retries(const struct spec_app *app);
size_t spec_pods_digits(size_t n);

/*
 * Return a lower bound for the bytes of APP's pods in an object of KIND, so that kxfs can refuse a
 * far too large object before making it.
 */
uint64_t spec_pods_least_bytes(const struct spec_kind *kind, const struct spec_app *app);

/* --- pod_check.c, for pod.c --- */

/* Prefix of a variable's value: the rest is the path of a field of the pod. */
#define POD_FIELD_PATH "[FIELD_PATH]"
#define POD_GPU	       "nvidia.com/gpu"

/*
 * Refuse mounts, devices and variables that the API server would refuse, or that would keep the pod
 * from starting. Unlike the server's errors, these errors have a position in the document.
 */
void pod_check(struct spec_pod_role *r);
