/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as a JSON tree, for a text that contains more than a snapshot (spec/record/). Private
 * to spec/.
 */
#pragma once

#include "spec/base/read.h"
#include "spec/base/tree.h"
#include "spec/job/job.h"

enum spec_snapshot_form {
	SPEC_SNAPSHOT_WHOLE,
	SPEC_SNAPSHOT_NO_LOGS, /* without logs: the reader knows the logs of each replica */
	/* For people, who look at a job and its replicas; it can't be parsed back. */
	SPEC_SNAPSHOT_PEOPLE,
};

struct json_object *spec_snapshot_tree(const struct spec_job *job, enum spec_snapshot_form form);
/*
 * Return 0 and a job with one reference, which is not packed; or -EINVAL. FORM: WHOLE or NO_LOGS.
 */
int spec_snapshot_of(const struct spec_value *root, enum spec_snapshot_form form,
		     struct spec_job **ret);
