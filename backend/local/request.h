/* SPDX-License-Identifier: MIT */
/*
 * Requests about local jobs. For a submission, the pool parses the AppDef, and kxfs writes the
 * job's record. After that, kxfs starts the replicas, publishes the job, and answers.
 *
 * Other requests take effect immediately. kxfs answers when the published job and the record on
 * disk show the effect, or with an error if the record can't be written. If the job is over,
 * saved.c makes the change. I/O thread.
 */
#pragma once

#include "backend/local/job.h"
#include "backend/local/saved.h"

struct local_requests;

/* Receive the events of JOBS. Submissions enter GROUP. GPUS is the number of GPUs for jobs. */
struct local_requests *local_requests_new(struct backend *b, struct group *group,
					  struct local_jobs *jobs, struct saved *saved,
					  unsigned gpus);
/* Launch no more jobs, because the mount is ending. */
void local_requests_stop(struct local_requests *c);
void local_requests_free(struct local_requests *c); /* NULL is allowed */

void local_requests_take(struct local_requests *c, struct backend_request *rq);
