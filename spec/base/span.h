/* SPDX-License-Identifier: MIT */
/*
 * Finds members in JSON text without parsing it: only counts brackets outside strings. This is
 * faster, since an object may have a megabyte, of which only a few bytes matter. Private to spec/.
 */
#pragma once

#include "spec/base/base.h"

/* Plain data. END is the address after the last byte. */
struct spec_span {
	const char *p, *end;
};

static inline size_t spec_span_len(struct spec_span s)
{
	return (size_t)(s.end - s.p);
}

/*
 * Find the value of KEY in the map S. If KEY occurs several times, use its last value, as a parser
 * would. A key with an escape is never found. Return false if the map has no such member, or if the
 * text before the member is not JSON.
 */
bool spec_span_member(struct spec_span s, const char *key, struct spec_span *ret);

/* Like spec_span_member, for N keys in one pass. RET[i].P is NULL if KEYS[i] is not found. */
void spec_span_members(struct spec_span s, const char *const *keys, size_t n,
		       struct spec_span *ret);

/* Like spec_span_member, but also accept a value that is cut off at the end of S. */
bool spec_span_begun(struct spec_span s, const char *key, struct spec_span *ret);

/* True if S is a JSON string, in quotes, with the contents TEXT. */
bool spec_span_is(struct spec_span s, const char *text);

/*
 * The state of a scan that skips a map or list, which may arrive in chunks. After the opening
 * bracket, the caller sets DEPTH to 1. After the matching closing bracket, DEPTH is 0. The scan
 * does not check the kind of a bracket: "]" also closes "{".
 */
struct spec_nest {
	size_t depth;
	/* STRING: the next byte is in a string. ESCAPE: a backslash escapes the next byte. */
	bool string, escape;
};

/*
 * Continue the scan from P to END. Return the address after the last skipped byte. Stop early after
 * the matching closing bracket. Also stop early after a bracket that makes DEPTH greater than MAX.
 */
const char *spec_span_nest(struct spec_nest *n, size_t max, const char *p, const char *end);

/* Return the next quote, backslash or control character in a string, or END. */
const char *spec_span_plain(const char *p, const char *end);
