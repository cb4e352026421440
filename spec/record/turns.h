/* SPDX-License-Identifier: MIT */
/*
 * The queue of one machine: how many of its jobs run at once, which of its GPUs each of their replicas has, and what
 * the others wait for. First come, first served: no job gets its turn while one before it waits. A job keeps what it
 * was given until it is over, also between the attempts of its replicas and while it is suspended. Pure.
 */
#pragma once

#include "spec/record/record.h"

#define SPEC_MAX_GPUS 64 /* as many GPUs as a replica's set has bits */

/* The limits, and what has been counted so far. Plain data. */
struct spec_turns {
	unsigned jobs;		 /* how many jobs may run at once; 0: any number */
	uint64_t gpus;		 /* the GPUs that are given out, a bit each; 0: none are */
	bool passive;		 /* this mount starts no job */
	size_t running, waiting; /* how many jobs run, and how many wait */
	uint64_t taken;		 /* GPUs that are taken, a bit each */
};

/* The GPUs that all replicas of APP (NULL: none) need together. */
int64_t spec_turns_need(const struct spec_app *app);
/* Count R, which has its turn and is not over. All such jobs are counted before spec_turns_give is called. */
void spec_turns_take(struct spec_turns *t, const struct spec_record *r);
/*
 * Called for the jobs that wait, in their order. True: it is R's turn now, and its replicas have their GPUs. False: R's
 * snapshot says what it waits for; *RET_MOVED: that is news. A job that can never get its turn is in nobody's way.
 */
bool spec_turns_give(struct spec_turns *t, struct spec_record *r, bool *ret_moved);

/* The first N GPUs of SET. */
uint64_t spec_turns_first(uint64_t set, int64_t n);
/* The numbers of a set of GPUs, "0,3", malloc'ed. */
char *spec_turns_numbers(uint64_t gpus);
/* The text of queues/local/status, YAML: the limits of T and what it has counted, and the N snapshots V of jobs/. */
void spec_turns_text(const struct spec_turns *t, const struct spec_job *const *v, size_t n,
		     char **ret, size_t *ret_len);
