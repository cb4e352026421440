/* SPDX-License-Identifier: MIT */
/*
 * Finding members in JSON text without parsing it: by counting brackets outside strings. For objects
 * of a megabyte of which a few bytes are wanted. Private to spec/.
 */
#pragma once

#include "spec/base/base.h"

/* A part of the text, END is behind it. Plain data. */
struct spec_span {
	const char *p, *end;
};

static inline size_t spec_span_len(struct spec_span s)
{
	return (size_t)(s.end - s.p);
}

/*
 * The value of KEY in the map that S is: the last, if there are several, as a parser would take it; a
 * key with escapes is not recognised. False: the map has no such member, or what comes before it is no JSON.
 */
bool spec_span_member(struct spec_span s, const char *key, struct spec_span *ret);

/* As spec_span_member; of a text that ends within the value, what there is of the value. */
bool spec_span_begun(struct spec_span s, const char *key, struct spec_span *ret);

/* Is S the string TEXT? */
bool spec_span_is(struct spec_span s, const char *text);

/*
 * Passing over what stands in brackets, which may come in pieces. DEPTH is 1 behind the bracket that opens it, and 0
 * behind the one that closes it; all else is false at first. Whether brackets are of one sort is not looked at.
 */
struct spec_nest {
	size_t depth;
	bool string, escape; /* within a string; behind a backslash in it */
};

/*
 * Goes on at P. Returns where it stops: at END, behind the closing bracket, or behind one that goes deeper than MAX
 * (then the DEPTH is MAX + 1).
 */
const char *spec_span_nest(struct spec_nest *n, size_t max, const char *p, const char *end);

/* Where the run of plain characters of a string ends that begins at P: at END, a quote, a backslash or a control. */
const char *spec_span_plain(const char *p, const char *end);
