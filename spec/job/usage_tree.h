/* SPDX-License-Identifier: MIT */
/* What a job or a replica has used as a JSON tree, for the texts that show it. Private to spec/. */
#pragma once

#include "spec/base/tree.h"
#include "spec/job/job.h"

/*
 * Of R, a replica of JOB, or of all of JOB's replicas together (R is NULL). All keys are there; what is not known is
 * null. It depends on the snapshot alone: what runs is shown as it was when it was looked at last.
 */
struct json_object *spec_usage_tree(const struct spec_job *job, const struct spec_replica *r);
