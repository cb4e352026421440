/* SPDX-License-Identifier: MIT */
/*
 * Makes the objects in an AppWrapper of any version, as TorchX makes them for MCAD: pod groups,
 * pods and one headless service. Also reads its pods. The form of an AppWrapper's list of objects
 * depends on the version; appwrapper.c and mcad.c handle it.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/view/reader.h"

/*
 * The run options that all versions of AppWrapper support. The option tables of these kinds include
 * this macro.
 */
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

/* The state of making an AppWrapper. */
struct wrap {
	struct spec_build *build;
	/*
	 * Make an item of the AppWrapper's list from OBJECT, and take ownership of OBJECT. IS_POD
	 * is true if OBJECT is a pod.
	 */
	struct json_object *(*item)(struct json_object *object, bool is_pod);
	struct spec_pods pods; /* parts that all pods share */
	struct json_object *items;
	const char *coscheduler;	  /* or NULL */
	struct json_object *pull_secrets; /* or NULL */
	char *app_name;			  /* the app's name for labels, perhaps shortened */
	char *rank0_env;
};

/*
 * Implement spec_kind.build. Choose the job's name, make all items with ITEM (see struct wrap), and
 * make the AppWrapper from these items with OBJECT.
 */
int wrap_build(struct spec_build *b, struct json_object *(*item)(struct json_object *, bool is_pod),
	       struct json_object *(*object)(struct wrap *w));

/*
 * Make an object that has apiVersion VERSION, KIND and metadata with NAME. Set *METADATA to the
 * metadata. The caller adds labels to it, and then adds it to the object.
 */
struct json_object *wrap_object(struct wrap *w, const char *version, const char *kind,
				struct json_object *name, struct json_object **metadata);
/*
 * Implement spec_reader.job for LIST, the items of an AppWrapper. Each item has its object under
 * KEY. Each object that is a pod is a task. Objects that create pods, such as a batch Job, are not
 * inspected. Also set the app's name in V.
 */
size_t wrap_tasks(const struct spec_value *list, const char *key, struct spec_job_view *v,
		  struct spec_task_source **ret_tasks);
/* Implements spec_reader.pod. */
void wrap_pod(const struct spec_reader *reader, const struct spec_value *object,
	      struct spec_pod_view *v);
