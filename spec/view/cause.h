/* SPDX-License-Identifier: MIT */
/*
 * Finds what blocks a waiting job if neither the job nor its pods have a reason. Private to
 * spec/view.
 */
#pragma once

#include "spec/view/pod.h"

/*
 * Return the cause why JOB, which is not ending and has its state and its replicas, waits. The
 * caller owns the text.
 */
struct spec_cause spec_cause_find(const struct spec_job *job, const struct spec_job_view *view,
				  struct spec_placed_pods pods,
				  const struct spec_view_context *ctx);

/*
 * Return why a job was abandoned whose pods could not be made, in whole sentences, from events. JOB
 * has its replicas, but no state yet. The reason is empty if nothing is known.
 */
struct spec_cause spec_cause_given_up(const struct spec_job *job, const struct spec_job_view *view,
				      struct spec_placed_pods pods,
				      const struct spec_view_context *ctx);
/*
 * Return the message of the probe that ended the main container of POD; borrowed. NULL if none is
 * known.
 */
const char *spec_cause_probe(const struct spec_pod_view *pod, const struct spec_view_context *ctx);
