/* SPDX-License-Identifier: MIT */
/* Finds what blocks a job that waits, as far as neither the job nor its pods say so. Private to spec/view. */
#pragma once

#include "spec/view/pod.h"

/* The cause why JOB, which is not ending and has its state and its replicas, waits. The caller owns the text. */
struct spec_cause spec_cause_find(const struct spec_job *job, const struct spec_job_view *view,
				  struct spec_placed_pods pods,
				  const struct spec_view_context *ctx);

/*
 * Why a job was given up whose pods could not be made, in whole sentences, as far as events tell. JOB has its replicas,
 * but no state yet. The reason is empty if nothing is known.
 */
struct spec_cause spec_cause_given_up(const struct spec_job *job, const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx);
/* The message of the probe because of which the main container of POD was ended; borrowed. NULL: none is known. */
const char *spec_cause_probe(const struct spec_pod_view *pod, const struct spec_view_context *ctx);
