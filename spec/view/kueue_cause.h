/* SPDX-License-Identifier: MIT */
/* Finds Kueue's reasons for a job in one of its queues. Private to spec/view. */
#pragma once

#include "spec/view/view.h"

/* True if Kueue does not admit the job until its Workload is set to active again. */
bool spec_kueue_is_off(const struct spec_view_context *ctx);
/* Return the job's queue; if the job names none, that of its owner. Borrowed, or "". */
const char *spec_kueue_queue(const struct spec_job_view *view, const struct spec_view_context *ctx);
/*
 * Return the ClusterQueue in which the job has its quota, or to which its queue belongs. Borrowed;
 * "" if unknown.
 */
const char *spec_kueue_cluster_queue(const struct spec_view_context *ctx);
/* True if Kueue has admitted the job and not evicted it since. Its pods then show its state. */
bool spec_kueue_lets_run(const struct spec_view_context *ctx);
/* Return why Kueue does not admit JOB, or not yet, or no longer. The caller owns the text. */
struct spec_cause spec_kueue_cause(const struct spec_job *job, const struct spec_job_view *view,
				   const struct spec_view_context *ctx);
