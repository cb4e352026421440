/* SPDX-License-Identifier: MIT */
/*
 * Jobs that are over: they stand on disk and, as a snapshot, in the store, and cost nothing else. What changes them is
 * done here, one after another: moving one to the history, removing one for good, or its output. And what is read when
 * the mount starts, and jobs that are not over are taken up again. I/O thread.
 */
#pragma once

#include "backend/local/job.h"

struct saved;
struct expiry;

/* EXPIRY is looked at again whenever a job has gone. GROUP is entered for what is under way. */
struct saved *saved_new(struct backend *b, struct group *group, struct local_jobs *jobs,
			struct expiry *expiry);
void saved_free(struct saved *saved);
/* The mount ends, EXPIRY is gone. */
void saved_stop(struct saved *saved);
/* Is something under way? */
bool saved_is_busy(const struct saved *saved);

/* Read what the state directory holds, go on with what runs; then backend_started. */
void saved_recover(struct saved *saved);

/* DROP: its output alone is removed. */
enum saved_change { SAVED_CANCEL, SAVED_FORGET, SAVED_EXPIRE, SAVED_DROP };
/* RQ is answered when it is done; NULL for SAVED_EXPIRE and SAVED_DROP. */
void saved_change(struct saved *saved, enum saved_change kind, const char *uid,
		  struct backend_request *rq);
