/* SPDX-License-Identifier: MIT */
/*
 * Submissions and dry runs. On the pool the AppDef is read and the job's record written; then its replicas are started,
 * the job is published, and only then the request is answered. If the record can't be written, nothing runs. I/O
 * thread.
 */
#pragma once

#include "backend/local/control.h"

/* What submissions need of other parts; whoever makes it owns it. */
struct submit_context {
	struct backend *b;
	struct group *group;
	struct local_jobs *jobs;
	struct control *control;
	unsigned gpus; /* how many GPUs the machine has for its jobs */
	bool stopping; /* the mount ends: nothing is launched any more */
};

void submit_begin(struct submit_context *c, struct backend_request *rq);
void submit_dry_run(struct submit_context *c, struct backend_request *rq);
