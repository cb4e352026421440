/* SPDX-License-Identifier: MIT */
/*
 * Makes JSON trees from a job: from the snapshot (spec/record/ writes it as a part of its records),
 * from the transitions, and from the usage. Private to spec/.
 */
#pragma once

#include "spec/base/tree.h"
#include "spec/base/value.h"
#include "spec/job/job.h"

enum spec_snapshot_form {
	SPEC_SNAPSHOT_WHOLE,
	SPEC_SNAPSHOT_NO_LOGS, /* without logs, for a reader that knows the logs of each replica */
	/* For people: only the most important fields, and times as dates. kxfs can't parse it. */
	SPEC_SNAPSHOT_PEOPLE,
};

struct json_object *spec_snapshot_tree(const struct spec_job *job, enum spec_snapshot_form form);
/*
 * Make a job from ROOT, a snapshot that was written in FORM (WHOLE or NO_LOGS). Return 0 and a job
 * with one reference, which is not packed. Otherwise return -EINVAL.
 */
int spec_snapshot_of(const struct spec_value *root, enum spec_snapshot_form form,
		     struct spec_job **ret);

/* Add T to O as the member "transitions", for the state directory. */
void spec_transitions_write(struct json_object *o, const struct spec_transitions *t);
/*
 * Read the member "transitions" of O into T. If O does not have it, leave T empty. Return 0, or
 * -EINVAL.
 */
int spec_transitions_read(const struct spec_value *o, struct spec_transitions *t);

/*
 * Return the usage of R, a replica of JOB. If R is NULL, return the total of all replicas. All keys
 * are present, and an unknown value is null. The usage depends only on the snapshot, so for a
 * running replica it ends with the last sample.
 */
struct json_object *spec_usage_tree(const struct spec_job *job, const struct spec_replica *r);
