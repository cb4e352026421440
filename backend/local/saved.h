/* SPDX-License-Identifier: MIT */
/*
 * The jobs that are over. Each of them is only a record on disk and a snapshot in the store. This
 * object makes one change at a time: it moves a job to history/, removes it, or removes its output.
 * Users request such changes, and jobs/expiry.h requests them for old jobs. When kxfs starts, it
 * parses the records of all local jobs, and resumes those that are not over. I/O thread.
 */
#pragma once

#include "backend/local/job.h"

struct saved;

/* Make the object. Changes, and the recovery at the start, enter GROUP. */
struct saved *saved_new(struct backend *b, struct group *group, struct local_jobs *jobs);
void saved_free(struct saved *saved);
/* Remove no more old jobs, because the mount is ending. */
void saved_stop(struct saved *saved);
/* See backend_ops.is_settled. */
bool saved_is_settled(struct saved *saved, const struct spec_job *job);
/* Check soon what can be removed, because a job is over now. */
void saved_soon(struct saved *saved);

/*
 * Resume the jobs that are not over, then call backend_started. If kxfs can't reach the processes
 * of these jobs, it passes an error to backend_started.
 */
void saved_recover(struct saved *saved);

/*
 * CANCEL: move the job to history/. FORGET, EXPIRE: remove the job. DROP: remove only its output.
 */
enum saved_change { SAVED_CANCEL, SAVED_FORGET, SAVED_EXPIRE, SAVED_DROP };
/* Change job UID, and then answer RQ. RQ is NULL if no user has requested the change. */
void saved_change(struct saved *saved, enum saved_change kind, const char *uid,
		  struct backend_request *rq);
