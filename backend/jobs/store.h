/* SPDX-License-Identifier: MIT */
/*
 * The store has the current snapshot of each job, in three tables: jobs/ by id, history/ by id, and
 * all jobs by uid. Only the I/O thread changes the store; any thread may read it. After each change
 * the store calls the listener without a lock.
 *
 * This folder has the code that local jobs and jobs of a cluster share: records, the store, last
 * words, and expiry, which removes old jobs and output.
 */
#pragma once

#include "spec/job/job.h"

enum backend_place { BACKEND_JOBS, BACKEND_HISTORY };
#define BACKEND_N_PLACES 2

struct store;

struct store_events {
	/* See backend_events.job. May be NULL. */
	void (*changed)(void *data, const struct spec_job *old, const struct spec_job *new_job);
	void *data;
};

/* A list of references to snapshots. Plain data. */
struct store_jobs {
	const struct spec_job **v;
	size_t n;
};

struct store *store_new(const struct store_events *events);
void store_free(struct store *store);

/*
 * Make JOB the current snapshot of its uid, and take ownership of the reference to JOB. If
 * JOB->history is true, put JOB into history/, otherwise into jobs/. Remove it from the other
 * place. If JOB was submitted here, it also replaces the held job whose uid is JOB->submission. Set
 * JOB->revision. I/O thread.
 *
 * An id is unique in each place. If two jobs have the same id, one keeps it: in jobs/ the job that
 * was put last, in history/ the newest job (by creation, then uid). The store renames the other job
 * to ID~UID8, where UID8 is the beginning of its uid. In history/ a renamed job keeps its new id.
 */
void store_put(struct store *store, struct spec_job *job);
/* Remove the job with this uid. I/O thread. */
void store_remove(struct store *store, const char *uid);

/*
 * See backend_job, backend_jobs and others in backend.h. A job that was submitted here is also
 * found by the UUID of its submission, which was its uid while it was held. Any thread.
 */
const struct spec_job *store_get(struct store *store, enum backend_place place, const char *id);
const struct spec_job *store_get_uid(struct store *store, const char *uid);
void store_list(struct store *store, enum backend_place place, struct store_jobs *ret);
void store_jobs_clear(struct store_jobs *jobs);
#define cleanup_jobs cleanup(store_jobs_clear)
size_t store_count(struct store *store, enum backend_place place);
int64_t store_changed(struct store *store, enum backend_place place);
uint64_t store_revision(struct store *store, enum backend_place place);
