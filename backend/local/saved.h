/* SPDX-License-Identifier: MIT */
/*
 * Jobs that are over: they stand on disk and, as a snapshot, in the store, and cost nothing else. All that changes such
 * a job is done here, one change after another: to move it to the history, to remove it for good, or to remove its
 * output. When the mount starts, all records of jobs are parsed here, and those that are not over go on. I/O thread.
 */
#pragma once

#include "backend/local/job.h"

struct saved;
struct expiry;

/* Whenever a job has gone, EXPIRY is told to look again. Whatever is under way enters GROUP. */
struct saved *saved_new(struct backend *b, struct group *group, struct local_jobs *jobs,
			struct expiry *expiry);
void saved_free(struct saved *saved);
/* The mount ends, and EXPIRY is gone. */
void saved_stop(struct saved *saved);
/* Is a change under way? */
bool saved_is_busy(const struct saved *saved);

/* Go on with the jobs that run; then call backend_started, with an error if they can't be reached. */
void saved_recover(struct saved *saved);

/* SAVED_DROP: only the job's output is removed. */
enum saved_change { SAVED_CANCEL, SAVED_FORGET, SAVED_EXPIRE, SAVED_DROP };
/* Change job UID. RQ is answered when that is done; NULL for SAVED_EXPIRE and SAVED_DROP. */
void saved_change(struct saved *saved, enum saved_change kind, const char *uid,
		  struct backend_request *rq);
