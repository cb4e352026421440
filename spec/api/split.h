/* SPDX-License-Identifier: MIT */
/*
 * Cuts the body of a LIST or of a watch, as it arrives, into objects without ever holding the whole, and drops the
 * members that kxfs does not use before anything is stored. Bounded: an object of at most SPEC_MAX_WATCHED bytes after
 * dropping, nested 2 * SPEC_MAX_DEPTH deep. An object that is more is passed over to its end, and all others still
 * come, since anybody may make such an object. Values that are kept or dropped as a whole are only checked for brackets
 * and strings that end; whoever parses the object checks the rest. Pure; a splitter belongs to one thread.
 */
#pragma once

#include "spec/base/pick.h"

struct spec_split;

enum spec_split_form {
	SPEC_SPLIT_LIST,  /* {"metadata": {...}, "items": [OBJECT, ...]}: each OBJECT */
	SPEC_SPLIT_WATCH, /* {"type": "ADDED", "object": OBJECT}, one after the other: each whole */
};

/*
 * One object, NUL-terminated, borrowed. WRONG is 0; or -EFBIG: it is too large, -ELOOP: it is nested too deep; then
 * JSON only has its name, uid and resourceVersion, each if it stands before the place where that was found. If this
 * returns a negative errno, the feeding ends with it. It must not feed or free the splitter.
 */
typedef int (*spec_split_fn)(void *data, const char *json, size_t len, int wrong);

/*
 * Of each object the members that PICK names are kept; PICK must stay; NULL: all but metadata.managedFields. A watch
 * that fails gives a Status in place of an object, whose code is needed. A key with escapes, or one of 32 bytes or
 * more, is in no table, and is kept.
 */
struct spec_split *spec_split_new(enum spec_split_form form, const struct spec_pick *pick,
				  spec_split_fn fn, void *data);
void spec_split_free(struct spec_split *s); /* NULL is allowed */

/*
 * Feed more bytes, cut anywhere. 0; -EINVAL: not JSON, or not of the form; -EFBIG: a list's metadata is too large; or
 * what FN returned. After an error every call gives the same error again.
 */
int spec_split_feed(struct spec_split *s, const char *bytes, size_t n);

/* In a LIST, the token of the next page; "": it has not come yet, or there is none. Valid until the next call. */
const char *spec_split_next(const struct spec_split *s);

/*
 * The body is over. For a LIST RET gets its metadata, valid until spec_split_free; -EINVAL: it is not whole. A watch
 * that is cut in the middle of an event is no error: the rest is dropped. RET may be NULL.
 */
struct spec_list_meta {
	const char *resource_version; /* "" none */
	const char *next;	      /* the token of the next page, "" none */
};
int spec_split_end(struct spec_split *s, struct spec_list_meta *ret);
