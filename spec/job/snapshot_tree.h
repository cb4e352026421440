/* SPDX-License-Identifier: MIT */
/* A snapshot as a JSON tree, for a text that holds more than a snapshot (spec/record/). Private to spec/. */
#pragma once

#include "spec/base/read.h"
#include "spec/base/tree.h"
#include "spec/job/job.h"

enum spec_snapshot_form {
	SPEC_SNAPSHOT_WHOLE,
	SPEC_SNAPSHOT_NO_LOGS, /* without logs: whoever reads it knows the logs of each replica */
	/* For people, who want to know of a job and its replicas; it can't be read back. */
	SPEC_SNAPSHOT_PEOPLE,
};

struct json_object *spec_snapshot_tree(const struct spec_job *job, enum spec_snapshot_form form);
/* 0 and a job with one reference, which is not packed; -EINVAL. FORM: WHOLE or NO_LOGS. */
int spec_snapshot_of(const struct spec_value *root, enum spec_snapshot_form form,
		     struct spec_job **ret);
