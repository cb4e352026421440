/* SPDX-License-Identifier: MIT */
/* Random bytes and names, and growing pauses before retries. Any thread. */
#pragma once

#include "spec/base/base.h"

/*
 * random_bytes: set P to N random bytes, at most 256. random_uuid: set RET to a random UUID. Return
 * 0 or -EIO.
 */
int must_check random_bytes(void *p, size_t n);
int must_check random_uuid(char ret[37]);
/*
 * Set *RET to a random number from which spec_name_suffix makes a suffix of at least 12 characters,
 * so that the suffix differs from suffixes that people choose. Return 0 or -EIO.
 */
int must_check random_name(uint64_t *ret);
/* Return MS, varied by up to a quarter, so that operations don't all run at the same time. */
unsigned random_about(unsigned ms);

/* Growing pauses between retries. Plain data. */
struct backoff {
	unsigned first, last; /* first and longest pause, in ms */
	unsigned failures;    /* in a row */
};

static inline struct backoff backoff_begin(unsigned first, unsigned last)
{
	return (struct backoff){first, last, 0};
}

/*
 * Count a failure, and return the pause in ms before the next retry: FIRST, doubled for each
 * earlier failure, at most LAST, and varied by random_about. The pause is at least ASKED_MS, the
 * server's Retry-After (0 if there is none).
 */
static inline unsigned backoff_next(struct backoff *b, unsigned asked_ms)
{
	unsigned doublings = min_of(b->failures, 10u);
	unsigned pause = random_about(min_of(b->first << doublings, b->last));

	b->failures++;
	return max_of(pause, asked_ms ? random_about(asked_ms + asked_ms / 3 + 1) : 0);
}

static inline void backoff_reset(struct backoff *b)
{
	b->failures = 0;
}
