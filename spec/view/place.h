/* SPDX-License-Identifier: MIT */
/* Finds which pod belongs to which replica. Private to spec/view. */
#pragma once

#include "spec/view/pod.h"

/*
 * The pods among PODS that belong to the job, in order; the list is malloc'ed. BEFORE: the last snapshot; NULL: none.
 */
struct spec_placed_pods spec_place_pods(const struct spec_job_view *view,
					const struct spec_pod_view *const *pods, size_t n,
					const struct spec_job *before);
