/* SPDX-License-Identifier: MIT */
/*
 * Random bytes of the operating system, on any thread; and the pauses before retries, which they
 * spread.
 */
#pragma once

#include "spec/base/base.h"

/* Return 0 or -EIO. */
int must_check random_bytes(void *p, size_t n);
int must_check random_uuid(char ret[37]);
/*
 * Return a random number for a job's name, whose suffix (spec_name_suffix) differs from what people
 * choose. 0 or -EIO.
 */
int must_check random_name(uint64_t *ret);
/*
 * Return MS plus or minus up to a quarter, so that operations with the same delay do not all run at
 * once.
 */
unsigned random_about(unsigned ms);

/*
 * How long to wait before the next retry of an operation that keeps failing. Plain data, for one
 * thread at a time.
 */
struct backoff {
	unsigned first, last; /* ms */
	unsigned failures;    /* in a row */
};

/* Start with no failure: the first pause is FIRST ms, and pauses grow to LAST ms. */
static inline struct backoff backoff_begin(unsigned first, unsigned last)
{
	return (struct backoff){first, last, 0};
}

/*
 * Count a failure and return the pause in ms before the next retry: FIRST, doubled for each earlier
 * failure, at most LAST, and spread as random_about does. ASKED_MS is the server's Retry-After, or
 * 0: the pause is never shorter.
 */
static inline unsigned backoff_next(struct backoff *b, unsigned asked_ms)
{
	unsigned doublings = min_of(b->failures, 10u);
	unsigned pause = random_about(min_of(b->first << doublings, b->last));

	b->failures++;
	return max_of(pause, asked_ms ? random_about(asked_ms + asked_ms / 3 + 1) : 0);
}

/* Do not count the last failure: the next pause is as long as the last one. */
static inline void backoff_undo(struct backoff *b)
{
	b->failures -= b->failures > 0;
}

/* Reset after a success. */
static inline void backoff_reset(struct backoff *b)
{
	b->failures = 0;
}
