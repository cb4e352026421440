/* SPDX-License-Identifier: MIT */
/* What Kueue says of a job in one of its queues. Private to spec/view. */
#pragma once

#include "spec/view/view.h"

/* Does Kueue keep the job from running until somebody sets its Workload to active again? */
bool spec_kueue_is_off(const struct spec_view_context *ctx);
/* The job's queue: that of what owns it, if it names none itself. Borrowed; "": none. */
const char *spec_kueue_queue(const struct spec_job_view *view, const struct spec_view_context *ctx);
/* The ClusterQueue in which it has its quota, or to which that queue belongs. Borrowed; "": not known. */
const char *spec_kueue_cluster_queue(const struct spec_view_context *ctx);
/* Has Kueue let it in, and not put it out again? Then its pods say how it is. */
bool spec_kueue_lets_run(const struct spec_view_context *ctx);
/* Why Kueue does not let JOB run, or not yet, or no longer. The text is the caller's. */
struct spec_cause spec_kueue_cause(const struct spec_job *job, const struct spec_job_view *view,
				   const struct spec_view_context *ctx);
