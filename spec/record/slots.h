/* SPDX-License-Identifier: MIT */
/*
 * The queue of one machine: how many of its jobs run at once, which of its GPUs each of their
 * replicas has, and what the others wait for. Strictly first come, first served: no job starts
 * while an earlier one waits. A job keeps its slot and GPUs until it is over, also between the
 * attempts of its replicas and while it is suspended. Pure.
 */
#pragma once

#include "spec/record/record.h"

#define SPEC_MAX_GPUS 64 /* the number of bits of a replica's set */

/* The limits, and the counts so far. Plain data. */
struct spec_slots {
	unsigned jobs;		 /* the maximum number of running jobs; 0: no limit */
	uint64_t gpus;		 /* the GPUs that jobs may get, a bit each; or 0 */
	bool passive;		 /* this mount starts no job */
	size_t running, waiting; /* how many jobs run, and how many wait */
	uint64_t taken;		 /* GPUs in use, a bit each */
};

/* Return the number of GPUs that all replicas of APP (NULL: none) need together. */
int64_t spec_slots_need(const struct spec_app *app);
/* Count R, which has its slot and is not over. Count all such jobs before spec_slots_give. */
void spec_slots_take(struct spec_slots *t, const struct spec_record *r);
/*
 * Decide whether the waiting job R may start; call this for all waiting jobs in their order. If it
 * may, give GPUs to its replicas and return true. Otherwise write the reason into R's snapshot, and
 * set *RET_MOVED if the reason has changed. A job that can never start does not hold up others.
 */
bool spec_slots_give(struct spec_slots *t, struct spec_record *r, bool *ret_moved);

/* Return the first N GPUs of SET. */
uint64_t spec_slots_first(uint64_t set, int64_t n);
/* Return the numbers of a set of GPUs, "0,3", malloc'ed. */
char *spec_slots_numbers(uint64_t gpus);
/*
 * Return the text of queues/local/status, YAML: the limits and counts of T, and the N snapshots V
 * of jobs/.
 */
void spec_slots_text(const struct spec_slots *t, const struct spec_job *const *v, size_t n,
		     char **ret, size_t *ret_len);
