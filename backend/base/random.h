/* SPDX-License-Identifier: MIT */
/* Random bytes from the system (any thread), and randomly varied pauses before retries. */
#pragma once

#include "spec/base/base.h"

/*
 * random_bytes puts N random bytes, at most 256, into P. random_uuid puts a random UUID into RET.
 * Both return 0 or -EIO.
 */
int must_check random_bytes(void *p, size_t n);
int must_check random_uuid(char ret[37]);
/*
 * Set *RET to a random number from which spec_name_suffix makes a suffix of at least 12 characters,
 * so that it differs from suffixes that people choose. Return 0 or -EIO.
 */
int must_check random_name(uint64_t *ret);
/*
 * Return MS, randomly varied by up to a quarter, so that operations with the same delay do not all
 * run at the same time.
 */
unsigned random_about(unsigned ms);

/* Growing pauses between the retries of an operation. Plain data, for one thread at a time. */
struct backoff {
	unsigned first, last; /* the first and the longest pause, in ms */
	unsigned failures;    /* number of failures in a row */
};

/* Return a backoff without failures, whose pauses grow from FIRST to at most LAST ms. */
static inline struct backoff backoff_begin(unsigned first, unsigned last)
{
	return (struct backoff){first, last, 0};
}

/*
 * Count a failure, and return the pause in ms before the next retry. The pause is FIRST, doubled
 * for each earlier failure, at most LAST, and varied as by random_about. It is never shorter than
 * ASKED_MS, the server's Retry-After (0 if there is none).
 */
static inline unsigned backoff_next(struct backoff *b, unsigned asked_ms)
{
	unsigned doublings = min_of(b->failures, 10u);
	unsigned pause = random_about(min_of(b->first << doublings, b->last));

	b->failures++;
	return max_of(pause, asked_ms ? random_about(asked_ms + asked_ms / 3 + 1) : 0);
}

/* Do not count the last failure, so that the next pause is as long as the last pause. */
static inline void backoff_undo(struct backoff *b)
{
	b->failures -= b->failures > 0;
}

/* Forget all failures. Call this after a success. */
static inline void backoff_reset(struct backoff *b)
{
	b->failures = 0;
}
