/* SPDX-License-Identifier: MIT */
/*
 * The jobs that are over: each is only a record on disk and a snapshot in the store. Users and
 * jobs/expiry.h request changes: move a job to history/, remove it, or remove its output. This
 * object makes one change at a time. At the start, it recovers all local jobs. I/O thread.
 */
#pragma once

#include "backend/local/job.h"

struct saved;

/* Changes, and the recovery at the start, enter GROUP. */
struct saved *saved_new(struct backend *b, struct group *group, struct local_jobs *jobs);
void saved_free(struct saved *saved);
/* Remove no more old jobs, because the mount is ending. */
void saved_stop(struct saved *saved);
/* See backend_ops.is_settled. */
bool saved_is_settled(struct saved *saved, const struct spec_job *job);
/* A job is over now: check soon what can be removed. */
void saved_soon(struct saved *saved);

/*
 * Continue jobs that are not over. Then call backend_started, with an error if kxfs can't reach
 * their processes, or can't read the output on disk.
 */
void saved_recover(struct saved *saved);

/* CANCEL: move to history/. FORGET, EXPIRE: remove the job. DROP: remove only its output. */
enum saved_change { SAVED_CANCEL, SAVED_FORGET, SAVED_EXPIRE, SAVED_DROP };
/* Change job UID, then answer RQ, which is NULL if no user has requested the change. */
void saved_change(struct saved *saved, enum saved_change kind, const char *uid,
		  struct backend_request *rq);
