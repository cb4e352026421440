/* SPDX-License-Identifier: MIT */
/*
 * The queue of one machine. It limits how many jobs run at the same time, gives GPUs to their
 * replicas, and shows what other jobs wait for. Jobs start in the order in which they were queued.
 * A job keeps its slot and GPUs until it has finished, also between attempts and while it is
 * suspended. Pure.
 */
#pragma once

#include "spec/record/record.h"

#define SPEC_MAX_GPUS 64 /* bits in a set of GPUs */

/* Plain data. */
struct spec_slots {
	unsigned jobs; /* maximum number of running jobs; 0 if unlimited */
	uint64_t gpus; /* GPUs that jobs may use, one bit each; 0 if kxfs does not manage GPUs */
	bool passive;  /* this mount does not start jobs */
	size_t running, waiting; /* numbers of jobs */
	uint64_t taken;		 /* GPUs in use, one bit each */
};

/* Return how many GPUs all replicas of APP need together; 0 if APP is NULL. */
int64_t spec_slots_need(const struct spec_app *app);
/* Count the job R, which has a slot. Count all such jobs before the first spec_slots_give. */
void spec_slots_take(struct spec_slots *t, const struct spec_record *r);
/*
 * Decide whether the waiting job R may start. Call this for all waiting jobs, in the order of the
 * queue. If R may start, give GPUs to its replicas and return true. Otherwise set the cause in R's
 * snapshot, set *RET_MOVED to true if its text has changed, and return false. A job that can never
 * start does not delay other jobs.
 */
bool spec_slots_give(struct spec_slots *t, struct spec_record *r, bool *ret_moved);

uint64_t spec_slots_first(uint64_t set, int64_t n);
/* Return the numbers of GPUs as text, "0,3", malloc'ed. */
char *spec_slots_numbers(uint64_t gpus);
/* Set *RET to the text of queues/local/status. V has the snapshots of all N jobs in jobs/. */
void spec_slots_text(const struct spec_slots *t, const struct spec_job *const *v, size_t n,
		     char **ret, size_t *ret_len);
