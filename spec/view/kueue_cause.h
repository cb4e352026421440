/* SPDX-License-Identifier: MIT */
/* Finds what Kueue says of a job in one of its queues. Private to spec/view. */
#pragma once

#include "spec/view/view.h"

/* Does Kueue keep the job from running until somebody sets its Workload to active again? */
bool spec_kueue_is_off(const struct spec_view_context *ctx);
/* The job's queue; if the job names none, that of its owner. Borrowed; "": none. */
const char *spec_kueue_queue(const struct spec_job_view *view, const struct spec_view_context *ctx);
/* The ClusterQueue in which the job has its quota, or to which its queue belongs. Borrowed; "": not known. */
const char *spec_kueue_cluster_queue(const struct spec_view_context *ctx);
/* Has Kueue let the job in, and not evicted it since? Then its pods show how it is. */
bool spec_kueue_lets_run(const struct spec_view_context *ctx);
/* Why Kueue does not let JOB run, or not yet, or no longer. The caller owns the text. */
struct spec_cause spec_kueue_cause(const struct spec_job *job, const struct spec_job_view *view,
				   const struct spec_view_context *ctx);
