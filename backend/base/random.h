/* SPDX-License-Identifier: MIT */
/*
 * Random bytes of the operating system. Any thread.
 */
#pragma once

#include "spec/base/base.h"

/* 0 or -EIO. */
int must_check random_bytes(void *p, size_t n);
int must_check random_uuid(char ret[37]);
/* A random number for the name of a job, whose suffix (spec_name_suffix) differs from what people choose. 0 or -EIO. */
int must_check random_name(uint64_t *ret);
/* MS, up to a quarter more or less, so that things that wait for the same time are not all done at once. */
unsigned random_about(unsigned ms);
/*
 * The pause in ms before another try, after N + 1 failures in a row: MS, doubled for each failure but the last, up to
 * MAX_MS, and spread as random_about does. If a server has asked for ASKED_MS (0: it has not), the pause is never
 * shorter than that.
 */
static inline unsigned random_pause(unsigned ms, unsigned n, unsigned max_ms, unsigned asked_ms)
{
	unsigned doublings = min_of(n, 10u), pause = random_about(min_of(ms << doublings, max_ms));

	return max_of(pause, asked_ms ? random_about(asked_ms + asked_ms / 3 + 1) : 0);
}
