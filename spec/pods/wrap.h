/* SPDX-License-Identifier: MIT */
/*
 * Makes the objects in an AppWrapper of any version: pod groups, pods and one headless service, as
 * TorchX makes them for MCAD. Also reads its pods. How the AppWrapper's list contains each object
 * depends on the version: appwrapper.c and mcad.c.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/view/reader.h"

/* Run options of all versions, for the kind's table. */
#define WRAP_OPTIONS                                                                               \
	POD_OPTIONS,                                                                               \
		{.name = "coscheduler_name",                                                       \
		 .help = "scheduler that places the pods of a role together"},                     \
		{.name = "priority_class_name",                                                    \
		 .type = SPEC_OPTION_NAME,                                                         \
		 .help = "priority class of the pods"},                                            \
		SPEC_TIME_LIMIT_OPTION,                                                            \
		{.name = "ttl",                                                                    \
		 .type = SPEC_OPTION_TIME,                                                         \
		 .refusal =                                                                        \
			 "no controller of AppWrappers removes one by itself when it has ended: "  \
			 "leave ttl out, or use Volcano or JobSet"},                               \
	{                                                                                          \
		.name = "network", .help = "additional network of the pods (Multus)"               \
	}

/* An AppWrapper while its items are made. */
struct wrap {
	struct spec_build *build;
	/* Make an item of the list of OBJECT, which is taken over; IS_POD: it is a pod. */
	struct json_object *(*item)(struct json_object *object, bool is_pod);
	struct spec_pods pods; /* its tree is the object's */
	struct json_object *items;
	const char *coscheduler;	  /* or NULL */
	struct json_object *pull_secrets; /* or NULL */
	char *app_name;			  /* cut, if the whole leaves no space for a suffix */
	char *rank0_env;
};

/*
 * Implement spec_kind.build: choose the job's name, make all items with ITEM (see struct wrap), and
 * make the object from them with OBJECT.
 */
int wrap_build(struct spec_build *b, struct json_object *(*item)(struct json_object *, bool is_pod),
	       struct json_object *(*object)(struct wrap *w));

/* Make an object with its version and kind. The caller adds labels to *METADATA, and then *METADATA to the object. */
struct json_object *wrap_object(struct wrap *w, const char *version, const char *kind,
				struct json_object *name, struct json_object **metadata);
/*
 * Implement spec_reader.job for the items of LIST. Each item has its object under KEY; each pod
 * among these objects is a task. Objects that create pods, such as a batch Job, are not inspected.
 * Also set the app's name.
 */
size_t wrap_tasks(const struct spec_value *list, const char *key, struct spec_job_view *v,
		  struct spec_task_source **ret_tasks);
/* Implement spec_reader.pod. */
void wrap_pod(const struct spec_reader *reader, const struct spec_value *object,
	      struct spec_pod_view *v);
