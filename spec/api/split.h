/* SPDX-License-Identifier: MIT */
/*
 * The body of a LIST or of a watch, as it arrives: cuts it into objects without ever holding the
 * whole, and drops what kxfs has no use for before anything is stored. Bounded: an object of at most
 * SPEC_MAX_WATCHED bytes after dropping, nested 2 * SPEC_MAX_DEPTH deep. One that is more is passed over to its
 * end, and all others still come, since anybody may make such an object. Of what is kept or dropped as a whole
 * no more is checked than that its brackets and strings end; what is kept is checked by who parses the object.
 * Pure; a splitter belongs to one thread.
 */
#pragma once

#include "spec/base/pick.h"

struct spec_split;

enum spec_split_form {
	SPEC_SPLIT_LIST,  /* {"metadata": {...}, "items": [OBJECT, ...]}: each OBJECT */
	SPEC_SPLIT_WATCH, /* {"type": "ADDED", "object": OBJECT}, one after the other: each whole */
};

/*
 * One object, NUL-terminated, borrowed. WRONG is 0; -EFBIG: it is too large, -ELOOP: it is nested too deep, and JSON
 * has no more of it than name, uid and resourceVersion, each if it stands before the place where that was found. A
 * negative errno ends the feeding with it. Must not feed or free the splitter.
 */
typedef int (*spec_split_fn)(void *data, const char *json, size_t len, int wrong);

/*
 * Of each object is kept what PICK says, which must stay; NULL: all but metadata.managedFields. A watch that fails
 * gives a Status in place of an object, of which the code is needed. A key with escapes, or one of 32 bytes or more,
 * is in no table, and kept.
 */
struct spec_split *spec_split_new(enum spec_split_form form, const struct spec_pick *pick,
				  spec_split_fn fn, void *data);
void spec_split_free(struct spec_split *s); /* NULL is allowed */

/*
 * More bytes, any pieces. 0, -EINVAL: not JSON or not of the form; -EFBIG: a list's metadata is; what FN
 * returned. After an error every call gives the same again.
 */
int spec_split_feed(struct spec_split *s, const char *bytes, size_t n);

/* Of a LIST, the token of the next page; "" it has not come yet, or there is none. Valid until the next call. */
const char *spec_split_next(const struct spec_split *s);

/*
 * The body is over. A LIST: its metadata, valid until spec_split_free; -EINVAL: it is not whole. A
 * watch cut in the middle of an event is no error: the rest is dropped. RET may be NULL.
 */
struct spec_list_meta {
	const char *resource_version; /* "" none */
	const char *next;	      /* the token of the next page, "" none */
};
int spec_split_end(struct spec_split *s, struct spec_list_meta *ret);
