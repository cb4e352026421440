/* SPDX-License-Identifier: MIT */
/*
 * Turns times as Kubernetes and container runtimes write them (RFC 3339) into ns since 1970 and back; and spans of
 * time.
 */
#pragma once

#include <time.h>

#include "spec/base/base.h"

#define NS_PER_S INT64_C(1000000000)

/* A time as the kernel tells it, in ns, and back. */
static inline int64_t spec_time_of(struct timespec t)
{
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline struct timespec spec_time_spec(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

/*
 * Parse the time with which TEXT begins: "2026-11-21T09:08:40Z", with or without a fraction, with an offset instead of
 * Z, too. Returns how many bytes it has; 0: TEXT begins with no time, or with a day that its month does not have.
 * Digits beyond ns are dropped; a time that int64_t can't hold becomes the nearest one that it can.
 */
size_t spec_time_parse(const char *text, size_t len, int64_t *ret_ns);

/*
 * Parse a span that a person writes: digits and one of s m h d, or digits alone, which are seconds. A span that int64_t
 * can't hold becomes the longest one that it can. False: TEXT is no span.
 */
bool spec_time_span_parse(const char *text, int64_t *ret_seconds);
/* The text of a span, in the largest unit that divides it: "90s", "4h", "2d". */
void spec_time_span_text(int64_t seconds, char ret[24]);

/* The text "2026-11-21T09:08:40Z" of a time in ns, which loses everything below a second; "" for 0. */
void spec_time_text(int64_t ns, char ret[32]);
