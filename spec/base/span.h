/* SPDX-License-Identifier: MIT */
/*
 * Finding members in JSON text without parsing it: by counting brackets outside strings. For objects
 * of a megabyte of which a few bytes are wanted. Private to spec/.
 */
#pragma once

#include "spec/base/base.h"

/* A part of a text; END is behind it. Plain data. */
struct spec_span {
	const char *p, *end;
};

static inline size_t spec_span_len(struct spec_span s)
{
	return (size_t)(s.end - s.p);
}

/*
 * Find the value of KEY in the map S; if there are several, the last one, as a parser would. A key with escapes is not
 * recognised. False: the map has no such member, or what comes before it is no JSON.
 */
bool spec_span_member(struct spec_span s, const char *key, struct spec_span *ret);

/* Like spec_span_member; if the text ends within the value, *RET is the part that is there. */
bool spec_span_begun(struct spec_span s, const char *key, struct spec_span *ret);

/* Is S the string TEXT? */
bool spec_span_is(struct spec_span s, const char *text);

/*
 * Passes over what is in brackets, which may come in several parts. DEPTH is 1 behind the bracket that opens, and 0
 * behind the one that closes it; all other members are false at first. It is not checked that two brackets are of one
 * sort.
 */
struct spec_nest {
	size_t depth;
	bool string, escape; /* within a string; behind a backslash in it */
};

/*
 * Go on at P. Returns where it stops: at END, behind the closing bracket, or behind a bracket that goes deeper than MAX
 * (then the DEPTH is MAX + 1).
 */
const char *spec_span_nest(struct spec_nest *n, size_t max, const char *p, const char *end);

/*
 * Where the run of plain characters ends that begins at P in a string: at END, a quote, a backslash or a control
 * character.
 */
const char *spec_span_plain(const char *p, const char *end);
