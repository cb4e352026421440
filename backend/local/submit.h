/* SPDX-License-Identifier: MIT */
/*
 * Submissions and dry runs. The pool parses the AppDef, and the job's record is written; then the replicas are started,
 * the job is published, and the request is answered. If the record can't be written, nothing is started. I/O thread.
 */
#pragma once

#include "backend/local/control.h"

/* What submissions need of other modules. Plain data of the caller, which outlives them. */
struct submit_context {
	struct backend *b;
	struct group *group;
	struct local_jobs *jobs;
	struct control *control;
	unsigned gpus; /* number of GPUs for jobs */
	bool stopping; /* the mount ends: nothing is launched */
};

void submit_begin(struct submit_context *c, struct backend_request *rq);
void submit_dry_run(struct submit_context *c, struct backend_request *rq);
