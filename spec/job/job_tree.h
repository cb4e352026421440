/* SPDX-License-Identifier: MIT */
/* Makes JSON trees of jobs. spec/record/ uses these functions, too. Private to spec/. */
#pragma once

#include "spec/base/tree.h"
#include "spec/base/value.h"
#include "spec/job/job.h"

enum spec_snapshot_form {
	SPEC_SNAPSHOT_WHOLE,
	SPEC_SNAPSHOT_NO_LOGS, /* without logs; the caller adds the logs after reading */
};

struct json_object *spec_snapshot_tree(const struct spec_job *job, enum spec_snapshot_form form);
/* Set *RET to the job in the tree ROOT, which has FORM. Do not pack it. Return 0 or -EINVAL. */
int spec_snapshot_of(const struct spec_value *root, enum spec_snapshot_form form,
		     struct spec_job **ret);

/* Add T to O as the member "transitions", for the state directory. */
void spec_transitions_write(struct json_object *o, const struct spec_transitions *t);
/*
 * Read the member "transitions" of O into T, which must be empty. A missing member is not an error.
 * Return 0 or -EINVAL.
 */
int spec_transitions_read(const struct spec_value *o, struct spec_transitions *t);

/* Return the usage of R, or of all replicas if R is NULL. Unknown values are null. */
struct json_object *spec_usage_tree(const struct spec_job *job, const struct spec_replica *r);
