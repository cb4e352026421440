/* SPDX-License-Identifier: MIT */
/*
 * A role as one Indexed Job of Kubernetes, whose completions are the replicas: all its pods have
 * one template. This file makes the Job itself, and the object around it.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/view/reader.h"

/* The label that the Job controller gives to all pods. */
#define INDEXED_POD_SELECTOR "batch.kubernetes.io/job-name"

/* Run options of all such kinds, for the kind's table. */
#define INDEXED_OPTIONS                                                                            \
	{.name = "queue", .type = SPEC_OPTION_NAME, .help = "queue of Kueue that jobs wait in"},   \
		{.name = "priority_class",                                                         \
		 .type = SPEC_OPTION_NAME,                                                         \
		 .help = "priority class of Kueue's workload"},                                    \
		POD_OPTIONS, SPEC_TIME_LIMIT_OPTION, SPEC_TTL_OPTION,                              \
	{                                                                                          \
		.name = "no_annotations", .type = SPEC_OPTION_BOOL,                                \
		.help = "leave the annotations and the label kxfs/... out"                         \
	}

/*
 * Prepare P for B, whose id is chosen. RANK0_HOST: rank 0's host name, the same for all pods,
 * borrowed; NULL if there is none.
 */
void indexed_init(struct spec_pods *p, struct spec_build *b, const char *rank0_host);
/*
 * Make the spec of the Job for role INDEX, with the members that RETRIES adds. NULL and a build
 * error on failure.
 */
struct json_object *indexed_job(struct spec_pods *p, size_t index, int64_t parallelism,
				void (*retries)(struct json_object *spec,
						const struct spec_role *role));
/* Return the object of P's build without its spec, with the labels that Kueue reads. */
struct json_object *indexed_object(struct spec_pods *p);
