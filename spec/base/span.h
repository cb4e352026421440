/* SPDX-License-Identifier: MIT */
/*
 * Finds members in JSON text without parsing it: it counts brackets that are not in strings. kxfs
 * uses it for objects of up to a megabyte of which only a few bytes matter. Private to spec/.
 */
#pragma once

#include "spec/base/base.h"

/* A part of a text; END is the address after its last byte. Plain data. */
struct spec_span {
	const char *p, *end;
};

static inline size_t spec_span_len(struct spec_span s)
{
	return (size_t)(s.end - s.p);
}

/*
 * Find the value of KEY in the map S. If S has several members KEY, use the last one, as a parser
 * would. A key with escapes is never found. Return false if S has no such member, or if the text
 * before this member is not JSON.
 */
bool spec_span_member(struct spec_span s, const char *key, struct spec_span *ret);

/* Like spec_span_member, for N members in one pass. RET[i].P is NULL if KEYS[i] is not found. */
void spec_span_members(struct spec_span s, const char *const *keys, size_t n,
		       struct spec_span *ret);

/*
 * Like spec_span_member, but also accept a truncated value: S ends before the value does. *RET is
 * then the part of the value that is in S.
 */
bool spec_span_begun(struct spec_span s, const char *key, struct spec_span *ret);

/* True if S is a JSON string (with its quotes) whose contents are TEXT. */
bool spec_span_is(struct spec_span s, const char *text);

/*
 * The state of a scan that skips a value in brackets. The value may arrive in several chunks. After
 * the opening bracket, set DEPTH to 1 and all other members to false. After the matching closing
 * bracket, the scan sets DEPTH to 0. The scan does not compare the kinds of brackets: "]" also
 * closes "{".
 */
struct spec_nest {
	size_t depth;
	/*
	 * STRING is true if the next byte is in a string. ESCAPE is also true if a backslash
	 * escapes that byte.
	 */
	bool string, escape;
};

/*
 * Continue the scan with the bytes from P to END. Return the address after the last skipped byte.
 * The scan stops at END, and after the matching closing bracket. It also stops after a bracket that
 * opens a level deeper than MAX; then DEPTH is MAX + 1.
 */
const char *spec_span_nest(struct spec_nest *n, size_t max, const char *p, const char *end);

/*
 * P points into a string. Return the address of the next quote, backslash or control character, or
 * END if there is none.
 */
const char *spec_span_plain(const char *p, const char *end);
