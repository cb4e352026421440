/* SPDX-License-Identifier: MIT */
/*
 * Submissions and dry runs. The AppDef is read and the job recorded on the pool; then its replicas are started, it
 * becomes visible, and only then the request is answered. If it can't be recorded nothing runs. I/O thread.
 */
#pragma once

#include "backend/local/control.h"

/* What submissions need of the rest; owned by who makes it. */
struct submit_context {
	struct backend *b;
	struct group *group;
	struct local_jobs *jobs;
	struct control *control;
	unsigned gpus; /* that the machine has for its jobs */
	bool stopping; /* the mount ends: nothing is launched any more */
};

void submit_begin(struct submit_context *c, struct backend_request *rq);
void submit_dry_run(struct submit_context *c, struct backend_request *rq);
