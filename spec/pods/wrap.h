/* SPDX-License-Identifier: MIT */
/*
 * Makes the objects in an AppWrapper of any version, as TorchX makes them for MCAD: pod groups,
 * pods and one headless service. Also reads the pods. The form of the list of objects depends on
 * the version, so appwrapper.c and mcad.c handle the list.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/view/reader.h"

/* The run options of AppWrappers of all versions, for the option tables of these kinds. */
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
		 .refusal = "no controller removes finished AppWrappers: leave ttl out, or use "   \
			    "Volcano or JobSet"},                                                  \
	{                                                                                          \
		.name = "network", .help = "additional network of the pods (Multus)"               \
	}

/* The AppWrapper that is being made. */
struct wrap {
	struct spec_build *build;
	/* Makes an item of the AppWrapper's list from OBJECT, and takes ownership of OBJECT. */
	struct json_object *(*item)(struct json_object *object, bool is_pod);
	struct spec_pods pods; /* parts that all pods share */
	struct json_object *items;
	const char *coscheduler; /* or NULL */
	/* the app's name in labels, perhaps shortened */
	char *app_name;
	char *rank0_env;
};

/*
 * Implement spec_kind.build: choose the job's name, make all items with ITEM (see struct wrap), and
 * make the AppWrapper from them with OBJECT.
 */
int wrap_build(struct spec_build *b, struct json_object *(*item)(struct json_object *, bool is_pod),
	       struct json_object *(*object)(struct wrap *w));
/*
 * Implement spec_reader.job. LIST has the items of an AppWrapper, each with its object under KEY.
 * Each pod is a task; pods in other objects, such as a Job, are not. Also set the app's name in V.
 */
size_t wrap_tasks(const struct spec_value *list, const char *key, struct spec_job_view *v,
		  struct spec_task_source **ret_tasks);
/* Implement spec_reader.pod. */
void wrap_pod(const struct spec_reader *reader, const struct spec_value *object,
	      struct spec_pod_view *v);
