/* SPDX-License-Identifier: MIT */
/*
 * Random bytes of the operating system. Any thread.
 */
#pragma once

#include "spec/base/base.h"

/* 0 or -EIO. */
int must_check random_bytes(void *p, size_t n);
int must_check random_uuid(char ret[37]);
/* For the name of a job: a number whose suffix (spec_name_suffix) can be told from what people choose. 0 or -EIO. */
int must_check random_name(uint64_t *ret);
/* MS, up to a quarter more or less: so that what waits is not done all at once. */
unsigned random_about(unsigned ms);
/*
 * The pause in ms before another try, after N failures in a row before the last one: MS, doubled for each of them, up
 * to MAX_MS, spread as above. What a server has asked for (ASKED_MS; 0: nothing) is spread upwards alone.
 */
static inline unsigned random_pause(unsigned ms, unsigned n, unsigned max_ms, unsigned asked_ms)
{
	unsigned doublings = min_of(n, 10u), pause = random_about(min_of(ms << doublings, max_ms));

	return max_of(pause, asked_ms ? random_about(asked_ms + asked_ms / 3 + 1) : 0);
}
