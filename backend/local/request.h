/* SPDX-License-Identifier: MIT */
/*
 * Requests. A submission: the pool parses the AppDef, and the job's record is written; then the replicas are started,
 * the job is published, and the request is answered. If the record can't be written, nothing is started.
 *
 * A request about a job that is not over takes effect immediately. It is answered when the published job shows the
 * effect and the record on disk has it; or with an error if the disk refuses the record. Jobs that are over are changed
 * by saved.h. I/O thread.
 */
#pragma once

#include "backend/local/job.h"
#include "backend/local/saved.h"

struct local_requests;

/* Submissions enter GROUP. GPUS is the number of GPUs for jobs. */
struct local_requests *local_requests_new(struct backend *b, struct group *group,
					  struct local_jobs *jobs, struct saved *saved,
					  unsigned gpus);
/* The mount ends: launch no more jobs. */
void local_requests_stop(struct local_requests *c);
void local_requests_free(struct local_requests *c); /* NULL is allowed */

void local_requests_submit(struct local_requests *c, struct backend_request *rq);
void local_requests_dry_run(struct local_requests *c, struct backend_request *rq);
void local_requests_cancel(struct local_requests *c, struct backend_request *rq);
void local_requests_action(struct local_requests *c, struct backend_request *rq);
void local_requests_forget(struct local_requests *c, struct backend_request *rq);

/* See local_jobs_events. */
void local_requests_published(struct local_requests *c, struct local_job *job,
			      const struct spec_job *snap);
void local_requests_unwritten(struct local_requests *c, struct local_job *job, int err,
			      uint64_t change);
void local_requests_leaving(struct local_requests *c, struct local_job *job);
