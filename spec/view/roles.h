/* SPDX-License-Identifier: MIT */
/* Roles and tasks of a job's view. Private to spec/view. */
#pragma once

#include "spec/view/reader.h"

/* Make roles and tasks of SOURCES, in the display order of the job's replicas. */
void roles_arrange(struct spec_job_view *v, const struct spec_task_source *sources, size_t n);
/* Free roles and tasks. */
void roles_clear(struct spec_job_view *v);
/*
 * If PODS decide roles of VIEW, return a view that also has the roles and replicas of the pods and of
 * BEFORE, the last snapshot (or NULL). Everything else in it is borrowed from VIEW: free it after
 * roles_clear. Return NULL if the object has all roles.
 */
struct spec_job_view *roles_grow(const struct spec_job_view *view,
				 const struct spec_pod_view *const *pods, size_t n,
				 const struct spec_job *before);
