/* SPDX-License-Identifier: MIT */
/*
 * What an AppWrapper wraps, whatever its version: pod groups, pods and one headless service, as TorchX
 * makes them for MCAD. A version says how each of them stands in its list, and makes the rest. Only
 * kinds include this.
 */
#ifndef KXFS_SPEC_WRAP_H
#define KXFS_SPEC_WRAP_H

#include "spec/pod.h"

/* Run options of all versions, for the kind's table. */
#define WRAP_OPTIONS                                                                               \
	{.name = "service_account",                                                                \
	 .type = SPEC_OPTION_NAME,                                                                 \
	 .help = "service account of the pods"},                                                   \
		{.name = "image_repo", .help = "repository of local images (sha256:...)"},         \
		{.name = "image_secret",                                                           \
		 .type = SPEC_OPTION_NAME,                                                         \
		 .help = "secret to pull images with"},                                            \
		{.name = "coscheduler_name",                                                       \
		 .help = "scheduler that places the pods of a role together"},                     \
		{.name = "priority_class_name",                                                    \
		 .type = SPEC_OPTION_NAME,                                                         \
		 .help = "priority class of the pods"},                                            \
	{                                                                                          \
		.name = "network", .help = "additional network of the pods (Multus)"               \
	}

struct wrap {
	struct spec_build *build;
	/* OBJECT (taken over) as one of the list; IS_POD: it is a pod. NULL: out of memory. */
	struct json_object *(*item)(struct spec_tree *t, struct json_object *object, bool is_pod);
	/* made by wrap_all */
	struct spec_pods pods; /* its tree is the object's */
	struct json_object *items;
	/* private */
	const char *coscheduler;	  /* NULL: none */
	struct json_object *pull_secrets; /* NULL: none */
	char *app_name;			  /* cut, if the whole leaves no room for a suffix */
	char *rank0_env;
};

/* Choose the job's name and make all items. 0, or an errno that is in the build's errors. */
int wrap_all(struct wrap *w);
void wrap_clear(struct wrap *w);

/*
 * An object with its head; *METADATA, which is the caller's, has no labels yet and is to be added once
 * it is complete.
 */
struct json_object *wrap_object(struct wrap *w, const char *version, const char *kind,
				struct json_object *name, struct json_object **metadata);
/* How often the whole job may be tried again: what all its roles allow. */
int64_t wrap_retries(const struct wrap *w);

#endif
