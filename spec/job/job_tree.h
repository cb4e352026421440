/* SPDX-License-Identifier: MIT */
/*
 * Makes JSON trees of a job: of the snapshot (also for records in spec/record/), its transitions,
 * and its usage. Private to spec/.
 */
#pragma once

#include "spec/base/tree.h"
#include "spec/base/value.h"
#include "spec/job/job.h"

enum spec_snapshot_form {
	SPEC_SNAPSHOT_WHOLE,
	SPEC_SNAPSHOT_NO_LOGS, /* without logs, which the reader knows */
	/* for people: the most important fields, and times as dates; kxfs can't parse it */
	SPEC_SNAPSHOT_PEOPLE,
};

struct json_object *spec_snapshot_tree(const struct spec_job *job, enum spec_snapshot_form form);
/*
 * Make a job from ROOT, a snapshot that was written in FORM (WHOLE or NO_LOGS). Return 0 and a job
 * with one reference, not packed, or -EINVAL.
 */
int spec_snapshot_of(const struct spec_value *root, enum spec_snapshot_form form,
		     struct spec_job **ret);

/* Add T to O as the member "transitions", for the state directory. */
void spec_transitions_write(struct json_object *o, const struct spec_transitions *t);
/* Read the member "transitions" of O into T, which stays empty without it. Return 0, or -EINVAL. */
int spec_transitions_read(const struct spec_value *o, struct spec_transitions *t);

/*
 * Return the usage of R, a replica of JOB, or of all replicas if R is NULL. All keys are present;
 * an unknown value is null. It depends only on the snapshot, so for a running replica it ends with
 * the last sample.
 */
struct json_object *spec_usage_tree(const struct spec_job *job, const struct spec_replica *r);
