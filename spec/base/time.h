/* SPDX-License-Identifier: MIT */
/* Converts RFC 3339 times to ns since 1970 and back. Parses and prints durations. */
#pragma once

#include <time.h>

#include "spec/base/base.h"

#define NS_PER_S INT64_C(1000000000)

static inline int64_t spec_time_of(struct timespec t)
{
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline struct timespec spec_time_spec(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

/*
 * Parse the time at the start of TEXT ("2026-11-21T09:08:40Z"), which may have a fraction or an
 * offset. Return the length of the time in bytes; 0 if TEXT does not begin with a time, or if the
 * date does not exist. If the time does not fit in int64_t, *RET_NS is INT64_MIN or INT64_MAX.
 */
size_t spec_time_parse(const char *text, size_t len, int64_t *ret_ns);

/*
 * Parse a duration: digits and a unit (s, m, h or d). Without a unit, the digits are seconds.
 * Return false if TEXT is malformed. If the duration is too long, *RET_SECONDS is INT64_MAX.
 */
bool spec_time_span_parse(const char *text, int64_t *ret_seconds);
/* Write a duration with the largest unit that divides it: "90s", "4h", "2d". */
void spec_time_span_text(int64_t seconds, char ret[24]);

/* Write a time as "2026-11-21T09:08:40Z"; "" if NS is 0. */
void spec_time_text(int64_t ns, char ret[32]);
