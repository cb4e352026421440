/* SPDX-License-Identifier: MIT */
/*
 * A role's pods, as all kinds have them: container, resources, volumes, variables, labels, and the overlay. Parts that
 * replicas share are made once and shared by reference, so that a thousand of them take milliseconds.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/base/tree.h"
#include "spec/pods/kind.h"

#define POD_TORCHX_VERSION "0.7.0" /* the version that manifests equal */

/* Run options of the kinds whose pods have all of these, for their tables. */
#define POD_OPTIONS                                                                                \
	{.name = "service_account",                                                                \
	 .type = SPEC_OPTION_NAME,                                                                 \
	 .help = "service account of the pods"},                                                   \
		{.name = "image_repo", .help = "repository of local images (sha256:...)"},         \
	{                                                                                          \
		.name = "image_secret", .type = SPEC_OPTION_NAME,                                  \
		.help = "secret to pull images with"                                               \
	}

/* What a kind is given, and what it makes. Plain data. */
struct spec_build {
	const struct spec_kind *kind;
	const struct spec_app *app;
	const struct spec_options *options;
	const struct spec_identity *identity;
	struct spec_errors *errors;
	char *id;		    /* made by the kind: the object's name */
	bool named;		    /* a ready manifest's own name, not a random one */
	struct json_object *object; /* made by the kind */
};

/* Report what is wrong with a field; returns -EINVAL. */
int spec_build_refuse(struct spec_build *b, const char *path, const char *fmt, ...)
	printf_like(3, 4);

/*
 * Choose the job's name for a kind whose CONTROLLER makes a Service of that name. 0, or -EINVAL, which is in the
 * build's errors: a name of a Service begins with a letter.
 */
int spec_build_name(struct spec_build *b, const char *controller);
/* Refuse a retry policy of role INDEX that CONTROLLER can't carry out; returns -EINVAL. */
int spec_build_retries(struct spec_build *b, size_t index, const char *controller);

/* Set in the labels of the object what B's options say of a queue of Kueue, if there is one. */
void spec_build_queue(const struct spec_build *b, struct json_object *labels);
/* Set the time after which the cluster removes the object when it has ended, if there is one. */
void spec_build_ttl(const struct spec_build *b, struct json_object *spec);

/* What all pods of a job share. Plain data: the kind sets the texts and numbers, pod.c the rest. */
struct spec_pods {
	struct spec_build *build;
	const char *app_name;  /* for labels */
	const char *rank0_env; /* the variable that holds rank 0's host, for all but rank 0 */
	/*
	 * Not NULL: the pods of a role are made from one template, in which this text stands for a replica's
	 * number, which the cluster fills in; and RANK0_HOST is rank 0's host as all pods know it.
	 */
	const char *replica_id;
	const char *rank0_host;	 /* NULL: it is not known, and there is no such variable */
	const char *network;	 /* Multus network; NULL: none */
	const char *hosts_dir;	 /* where the kind mounts the names of hosts; NULL: nowhere */
	int64_t reserved_cpu;	 /* millicores of the host that requests leave out */
	int64_t reserved_memory; /* MB, likewise */
	int64_t efa;		 /* count of vpc.amazonaws.com/efa; -1: as the role says */
	struct json_object *labels;
	struct json_object *annotations;
	struct json_object *job_id; /* the variable TORCHX_JOB_ID */
	struct json_object *rank0;  /* the variable of rank 0, or of all pods */
	struct json_object *number; /* the variable that REPLICA_ID refers to; NULL: none */
};

/* Make the members that the kind has not set. The build's id was chosen before. */
void spec_pods_init(struct spec_pods *p);
void spec_pods_clear(struct spec_pods *p);

/* Labels of any object of the job: name, managed-by, instance. */
struct json_object *spec_pods_object_labels(struct spec_pods *p);

/* What all pods of a role share. Plain data: made by pod.c; a kind may add to labels, spec and more_env. */
struct spec_pod_role {
	struct spec_pods *pods;
	const struct spec_role *role;
	size_t index;
	struct json_object *labels;
	/* Spec of the pod, without its container; a kind may add to it. */
	struct json_object *spec;
	struct json_object *container; /* without name, image, command and variables */
	struct json_object *image;
	struct json_object *image_env; /* the variable that holds the image */
	struct json_object *command;   /* NULL: it has macros */
	struct json_object **env;      /* one for each variable of the role; NULL: it has macros */
	struct json_object *more_env;  /* variables that the kind adds behind */
	struct json_object *metadata;  /* the role's, which holds the overlay */
	struct json_object *overlay;   /* NULL: none */
	bool overlay_varies;	       /* it may have macros */
	char *overlay_path;
};

/* Prepare role INDEX. 0, or an errno that is in the build's errors. *R is to be cleared anyway. */
int spec_pod_role_init(struct spec_pod_role *r, struct spec_pods *p, size_t index);
void spec_pod_role_clear(struct spec_pod_role *r);

/*
 * Make the pod of replica K, whose container is NAME: {metadata, spec}, both its own. NULL: an error, which is in the
 * build's errors.
 */
struct json_object *spec_pod_make(struct spec_pod_role *r, unsigned k, const char *name);

/*
 * The I-th item of OBJECT, of KIND, that may have a pod or a template at the path KIND->pod. NULL: there are no more.
 */
struct json_object *spec_pods_at(const struct spec_kind *kind, struct json_object *object,
				 size_t i);

/* How often all of the job may be tried again: the least that a role allows. */
int64_t spec_pods_least_retries(const struct spec_app *app);
/* How many digits N has. */
size_t spec_pods_digits(size_t n);

/*
 * A lower bound of the bytes that the pods of APP take as JSON in an object of KIND, which shows before it is made that
 * an object is far too large.
 */
uint64_t spec_pods_least_bytes(const struct spec_kind *kind, const struct spec_app *app);
