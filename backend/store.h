/* SPDX-License-Identifier: MIT */
/*
 * Which snapshot is the current one of each job: two tables (jobs, history) by id, one by uid.
 * Written by the I/O thread only, read by any. One lock, a leaf. After each write the listener
 * (backend_events.job) is told, without the lock.
 */
#ifndef KXFS_BACKEND_STORE_H
#define KXFS_BACKEND_STORE_H

#include "backend/backend.h"

struct store;

/* EVENTS is borrowed. */
int store_new(const struct backend_events *events, struct store **ret);
void store_free(struct store *store);

/*
 * I/O thread: make JOB (whose reference the store takes over) the current snapshot of its uid. It
 * stands in the place that JOB->history says, and leaves the other; a job of another uid that has
 * its id in that place is gone for good. -ENOMEM: nothing has changed, the reference is the caller's.
 */
int store_put(struct store *store, struct spec_job *job);
/* I/O thread: the job of this uid is gone for good. */
void store_remove(struct store *store, const char *uid);

/* Any thread; as in backend.h. */
const struct spec_job *store_get(struct store *store, enum backend_place place, const char *id);
const struct spec_job *store_get_uid(struct store *store, const char *uid);
int store_list(struct store *store, enum backend_place place, const struct spec_job ***ret,
	       size_t *ret_n);
size_t store_count(struct store *store, enum backend_place place);
int64_t store_changed(struct store *store, enum backend_place place);

#endif
