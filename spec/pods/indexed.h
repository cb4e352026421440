/* SPDX-License-Identifier: MIT */
/*
 * A role as one Indexed Job of Kubernetes, whose completions are the replicas: all its pods are made from one template.
 * This file has what the kinds have in common that are such Jobs, or make them: the Job itself, the object around it,
 * and how the conditions and the pods are read back.
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

/* Prepare P for B, whose id is chosen. RANK0_HOST: rank 0's host as all pods know it, borrowed; NULL: none has one. */
void indexed_init(struct spec_pods *p, struct spec_build *b, const char *rank0_host);
/*
 * Make the spec of the Job that role INDEX becomes, with what RETRIES puts into it. NULL: an error, which is in the
 * build's errors.
 */
struct json_object *indexed_job(struct spec_pods *p, size_t index, int64_t parallelism,
				void (*retries)(struct json_object *spec,
						const struct spec_role *role));
/* The object of P's build without its spec, with the labels by which Kueue knows it. */
struct json_object *indexed_object(struct spec_pods *p);

/* The condition of this type in STATUS if it holds; NULL: it does not. */
const struct spec_value *indexed_condition(const struct spec_value *status, const char *type);
/*
 * The first of TYPES (which end with NULL) that holds in STATUS; if none does: "Running", or "" if no controller has
 * said anything.
 */
const char *indexed_phase(const struct spec_value *status, const char *const *types);
/* Set in V what OBJECT's labels say, the phase, when that changed, and why the job is suspended, if it is. */
void indexed_status(struct spec_job_view *v, const struct spec_value *object, const char *phase);
/* The number that KEY of LABELS holds; NONE: there is none. */
int indexed_number(const struct spec_value *labels, const char *key, int none);
/* Set index and failures of a pod; the index is UINT32_MAX if its Job does not number it. */
void indexed_pod(const struct spec_value *object, struct spec_pod_view *v);
