/* SPDX-License-Identifier: MIT */
/*
 * How long to wait before the next retry of an operation that keeps failing. Plain data, for one
 * thread at a time.
 */
#pragma once

#include "spec/base/base.h"

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
unsigned backoff_next(struct backoff *b, unsigned asked_ms);

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
