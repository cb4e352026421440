/* SPDX-License-Identifier: MIT */
/* How long to wait before the next try of what fails again and again. Plain data, for one thread at a time. */
#pragma once

#include "spec/base/base.h"

struct backoff {
	unsigned first, last; /* ms */
	unsigned failures;    /* in a row */
};

/* No failure yet: the first pause is FIRST ms, and pauses grow to LAST ms. */
static inline struct backoff backoff_begin(unsigned first, unsigned last)
{
	return (struct backoff){first, last, 0};
}

/*
 * Count a failure and return the pause in ms before the next try: FIRST, doubled for each earlier failure, at most
 * LAST, and spread as random_about does. ASKED_MS is what a server has asked for (0 if it has not): the pause is never
 * shorter than that.
 */
unsigned backoff_next(struct backoff *b, unsigned asked_ms);

/* Do not count the last failure: the next pause is as long as the last one. */
static inline void backoff_undo(struct backoff *b)
{
	b->failures -= b->failures > 0;
}

/* A try has succeeded. */
static inline void backoff_reset(struct backoff *b)
{
	b->failures = 0;
}
