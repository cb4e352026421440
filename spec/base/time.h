/* SPDX-License-Identifier: MIT */
/*
 * Converts times as Kubernetes and container runtimes write them (RFC 3339) to ns since 1970 and
 * back; and durations.
 */
#pragma once

#include <time.h>

#include "spec/base/base.h"

#define NS_PER_S INT64_C(1000000000)

/* Convert a struct timespec to ns, and back. */
static inline int64_t spec_time_of(struct timespec t)
{
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline struct timespec spec_time_spec(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

/*
 * Parse the time at the start of TEXT: "2026-11-21T09:08:40Z", with or without a fraction, also
 * with an offset instead of Z. Return its length in bytes; 0 if TEXT does not begin with a time, or
 * the month does not have that day. Digits beyond ns are dropped; a time beyond int64_t becomes the
 * nearest one within.
 */
size_t spec_time_parse(const char *text, size_t len, int64_t *ret_ns);

/*
 * Parse a duration that a person writes: digits and one of s m h d, or only digits, which are
 * seconds. A duration beyond int64_t becomes the longest one within. Return false if TEXT is not a
 * duration.
 */
bool spec_time_span_parse(const char *text, int64_t *ret_seconds);
/* Write the text of a duration, in the largest unit that divides it: "90s", "4h", "2d". */
void spec_time_span_text(int64_t seconds, char ret[24]);

/*
 * Write the text "2026-11-21T09:08:40Z" of a time in ns, without fractions of a second; "" for 0.
 */
void spec_time_text(int64_t ns, char ret[32]);
