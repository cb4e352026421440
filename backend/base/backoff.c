/* SPDX-License-Identifier: MIT */
/* The length of a pause; see backoff.h. */
#include "backend/base/backoff.h"

#include "backend/base/random.h"

unsigned backoff_next(struct backoff *b, unsigned asked_ms)
{
	unsigned doublings = min_of(b->failures, 10u);
	unsigned pause = random_about(min_of(b->first << doublings, b->last));

	b->failures++;
	return max_of(pause, asked_ms ? random_about(asked_ms + asked_ms / 3 + 1) : 0);
}
