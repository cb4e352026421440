/* SPDX-License-Identifier: MIT */
/*
 * Parts of a job as JSON trees: its snapshot, for a text that contains more than a snapshot
 * (spec/record/), its transitions and its usage. Private to spec/.
 */
#pragma once

#include "spec/base/tree.h"
#include "spec/base/value.h"
#include "spec/job/job.h"

enum spec_snapshot_form {
	SPEC_SNAPSHOT_WHOLE,
	SPEC_SNAPSHOT_NO_LOGS, /* without logs: the reader knows the logs of each replica */
	/* For people, who look at a job and its replicas; it can't be parsed back. */
	SPEC_SNAPSHOT_PEOPLE,
};

struct json_object *spec_snapshot_tree(const struct spec_job *job, enum spec_snapshot_form form);
/*
 * Read a job from the snapshot at ROOT, which was written in FORM (WHOLE or NO_LOGS). Return 0 and
 * a job with one reference, which is not packed; or -EINVAL.
 */
int spec_snapshot_of(const struct spec_value *root, enum spec_snapshot_form form,
		     struct spec_job **ret);

/* Write T as the member "transitions" of O, for the state directory. */
void spec_transitions_write(struct json_object *o, const struct spec_transitions *t);
/* Read the member "transitions" of O into T; if O has none, T stays empty. Return 0, or -EINVAL. */
int spec_transitions_read(const struct spec_value *o, struct spec_transitions *t);

/*
 * Return the usage of R, a replica of JOB, or the total of all of JOB's replicas (R is NULL). All
 * keys are present; an unknown value is null. It depends only on the snapshot, so a running replica
 * has the values of its last sample.
 */
struct json_object *spec_usage_tree(const struct spec_job *job, const struct spec_replica *r);
