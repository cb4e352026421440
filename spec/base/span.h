/* SPDX-License-Identifier: MIT */
/*
 * Finds members in JSON text without parsing it, by counting brackets outside strings. For objects
 * of a megabyte where only a few bytes matter. Private to spec/.
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
 * Find the value of KEY in the map S; if there are several, the last one, as a parser would. A key
 * with escapes is not recognised. Return false if the map has no such member, or the text before it
 * is not JSON.
 */
bool spec_span_member(struct spec_span s, const char *key, struct spec_span *ret);

/*
 * Like spec_span_member, for the N members KEYS in one pass. For a member that does not exist, P of
 * its span is NULL.
 */
void spec_span_members(struct spec_span s, const char *const *keys, size_t n,
		       struct spec_span *ret);

/* Like spec_span_member; if the text ends within the value, *RET is the existing part. */
bool spec_span_begun(struct spec_span s, const char *key, struct spec_span *ret);

/* True if S is the string TEXT. */
bool spec_span_is(struct spec_span s, const char *text);

/*
 * The state of skipping a bracketed value, which may arrive in several chunks. DEPTH is 1 after the
 * opening bracket, and 0 after the matching closing one; all other members are false at first. An
 * opening "{" may be closed by "]": the kinds of brackets are not compared.
 */
struct spec_nest {
	size_t depth;
	bool string, escape; /* within a string; after a backslash in it */
};

/*
 * Continue to skip at P. Return the address after the skipped bytes: END, or after the closing
 * bracket, or after a bracket that opens a level deeper than MAX (then DEPTH is MAX + 1).
 */
const char *spec_span_nest(struct spec_nest *n, size_t max, const char *p, const char *end);

/*
 * Return the end of the run of plain characters that begins at P in a string: END, a quote, a
 * backslash or a control character.
 */
const char *spec_span_plain(const char *p, const char *end);
