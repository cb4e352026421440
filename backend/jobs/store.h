/* SPDX-License-Identifier: MIT */
/*
 * Knows which snapshot is the current one of each job: two tables (jobs, history) by id, one by uid. Only the I/O
 * thread writes, any thread reads, under one lock. After each write the listener is called, without the lock.
 *
 * The folder jobs/ holds what does not depend on what runs the jobs: the store, last words, and expiry, which removes
 * what is old. The backend owns the store, its implementation the expiry.
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
 * I/O thread: make JOB (whose reference the store takes over) the current snapshot of its uid. It stands in the place
 * that JOB->history says, and leaves the other. Of the jobs of one id in the history the newest (by creation, then uid)
 * has that id when it comes there, and each other is called ID~UID8, UID8 being the beginning of its uid; such an id is
 * recognized in JOB, too, and stays until a newer job needs the id. In jobs/ the one that was put last has the id. A
 * job of ours with another uid takes the place of the held job whose uid is its submission. JOB gets its revision here.
 */
void store_put(struct store *store, struct spec_job *job);
/* I/O thread: the job of this uid is gone for good. */
void store_remove(struct store *store, const char *uid);

/*
 * Any thread; see backend.h. A job of ours is found by the UUID of its submission, too: that is its uid while it is
 * held, and in a cluster it has another one afterwards.
 */
const struct spec_job *store_get(struct store *store, enum backend_place place, const char *id);
const struct spec_job *store_get_uid(struct store *store, const char *uid);
void store_list(struct store *store, enum backend_place place, const struct spec_job ***ret,
		size_t *ret_n);
size_t store_count(struct store *store, enum backend_place place);
int64_t store_changed(struct store *store, enum backend_place place);
uint64_t store_revision(struct store *store, enum backend_place place);
