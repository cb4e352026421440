/* SPDX-License-Identifier: MIT */
/* Assigns pods to replicas. Private to spec/view. */
#pragma once

#include "spec/view/pod.h"

/*
 * Return the pods among PODS that belong to the job, in order; the list is malloc'ed. BEFORE: the
 * last snapshot, or NULL.
 */
struct spec_placed_pods spec_place_pods(const struct spec_job_view *view,
					const struct spec_pod_view *const *pods, size_t n,
					const struct spec_job *before);
