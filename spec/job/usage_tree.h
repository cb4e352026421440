/* SPDX-License-Identifier: MIT */
/* What a job or a replica has used as a JSON tree, for the texts that show it. Private to spec/. */
#pragma once

#include "spec/base/tree.h"
#include "spec/job/job.h"

/*
 * The usage of R, a replica of JOB, or of all of JOB's replicas together (R is NULL). All keys are there; a value that
 * is not known is null. It depends on the snapshot alone, so a replica that runs is shown as the last look has found
 * it.
 */
struct json_object *spec_usage_tree(const struct spec_job *job, const struct spec_replica *r);
