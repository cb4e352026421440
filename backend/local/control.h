/* SPDX-License-Identifier: MIT */
/*
 * Requests about existing jobs: cancel, control, forget. A request about a job that is not over
 * takes effect immediately. It is answered when the published job shows the effect and the record
 * on disk has it; or with an error if the disk refuses the record. Jobs that are over are changed
 * by saved.h. I/O thread.
 */
#pragma once

#include "backend/local/job.h"
#include "backend/local/saved.h"

struct control;

struct control *control_new(struct backend *b, struct local_jobs *jobs, struct saved *saved);
void control_free(struct control *c);

void control_cancel(struct control *c, struct backend_request *rq);
void control_action(struct control *c, struct backend_request *rq);
void control_forget(struct control *c, struct backend_request *rq);
/* Answer RQ, which has launched JOB, when JOB is published. */
void control_await(struct control *c, struct local_job *job, struct backend_request *rq);

/* See local_jobs_events. */
void control_published(struct control *c, struct local_job *job, const struct spec_job *snap);
void control_unwritten(struct control *c, struct local_job *job, int err, uint64_t change);
void control_leaving(struct control *c, struct local_job *job);
