/* SPDX-License-Identifier: MIT */
/*
 * Makes the objects in an AppWrapper as TorchX does for MCAD: pod groups, pods and one headless
 * service. Also reads the pods. appwrapper.c and mcad.c handle the list of objects, which depends
 * on the version.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/view/reader.h"

/* The run options of all AppWrappers. */
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

/*
 * Implement spec_kind.build. ITEM makes an item of the AppWrapper's list from its argument, and
 * takes ownership of the argument. OBJECT makes the AppWrapper. Its list is P->parts.
 */
int wrap_build(struct spec_build *b, struct json_object *(*item)(struct json_object *object),
	       struct json_object *(*object)(struct spec_pods *p));
/*
 * Implement spec_reader.job. Each item of LIST has an object under KEY. Each object that is a pod
 * is a task. Pods in other objects, such as a Job, are not tasks. Also set V's app and HIDDEN.
 */
size_t wrap_tasks(const struct spec_value *list, const char *key, struct spec_job_view *v,
		  struct spec_task_source **ret_tasks);
/* Implement spec_reader.pod. */
void wrap_pod(const struct spec_reader *reader, const struct spec_value *object,
	      struct spec_pod_view *v);
