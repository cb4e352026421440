/* SPDX-License-Identifier: MIT */
/* The usage of a job or a replica as a JSON tree, for the texts that show it. Private to spec/. */
#pragma once

#include "spec/base/tree.h"
#include "spec/job/job.h"

/*
 * Return the usage of R, a replica of JOB, or the total of all of JOB's replicas (R is NULL). All
 * keys are present; an unknown value is null. It depends only on the snapshot, so a running replica
 * has the values of its last sample.
 */
struct json_object *spec_usage_tree(const struct spec_job *job, const struct spec_replica *r);
