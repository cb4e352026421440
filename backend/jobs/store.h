/* SPDX-License-Identifier: MIT */
/*
 * The current snapshots of all jobs: two tables by id (jobs, history), and one by uid. Only the I/O
 * thread writes, any thread reads, under one lock. After each write the listener is called, without
 * the lock. This folder has the code that local jobs and jobs of a cluster share: records, the
 * store, last words, and expiry, which removes old jobs and output. The backend owns the store, and
 * its implementation (local, kube) owns the expiry.
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

struct store *store_new(const struct store_events *events);
void store_free(struct store *store);

/*
 * I/O thread: make JOB (whose reference the store takes over) the current snapshot of its uid.
 * JOB->history determines the place of the job; it is removed from the other place. An id is unique
 * in each place. In jobs/, the job that was put last gets the id; in history, the newest job does
 * (by creation, then uid). The other job is renamed to ID~UID8, where UID8 is the beginning of its
 * uid. A JOB that already has an id of this form keeps it, unless a newer job needs it. If JOB is
 * ours, it replaces the held job whose uid is JOB's submission. The store sets JOB's revision.
 */
void store_put(struct store *store, struct spec_job *job);
/* I/O thread: remove the job with this uid from all tables. */
void store_remove(struct store *store, const char *uid);

/*
 * Any thread; see backend.h. A job of ours is also found by the UUID of its submission. That is its
 * uid while it is held; in a cluster it gets another uid when it is launched.
 */
const struct spec_job *store_get(struct store *store, enum backend_place place, const char *id);
const struct spec_job *store_get_uid(struct store *store, const char *uid);
void store_list(struct store *store, enum backend_place place, const struct spec_job ***ret,
		size_t *ret_n);
size_t store_count(struct store *store, enum backend_place place);
int64_t store_changed(struct store *store, enum backend_place place);
uint64_t store_revision(struct store *store, enum backend_place place);
