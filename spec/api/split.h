/* SPDX-License-Identifier: MIT */
/*
 * Splits the body of a LIST or of a watch, as it arrives, into objects without ever storing the
 * whole body, and drops unused members before anything is stored. Bounded: an object of at most
 * SPEC_MAX_WATCHED bytes after dropping, nested 2 * SPEC_MAX_DEPTH deep. A larger object is skipped
 * to its end, and all others are still delivered, since any user may create such an object. Values
 * that are kept or dropped as a whole are only checked for matching brackets and quotes; the parser
 * of the object checks the rest. Pure; a splitter belongs to one thread.
 */
#pragma once

#include "spec/base/base.h"

/*
 * A row of a table of the members of an object that kxfs reads: an object may have a hundred, but
 * only a dozen matter, and the others are dropped before anything is stored. The last row has no
 * KEY, and determines whether all other members are kept.
 */
struct spec_pick {
	const char *key;
	bool keep;
	/*
	 * A table of the members to keep within this one; if it is a list, within each of its
	 * items. A value that is neither an object nor a list is kept. NULL: KEEP applies to all of
	 * it.
	 */
	const struct spec_pick *of;
};

struct spec_split;

enum spec_split_form {
	SPEC_SPLIT_LIST,  /* {"metadata": {...}, "items": [OBJECT, ...]}: each OBJECT */
	SPEC_SPLIT_WATCH, /* {"type": "ADDED", "object": OBJECT}, one after the other: each whole */
};

/*
 * Called with one object, NUL-terminated, borrowed. WRONG is 0; or -EFBIG if the object is too
 * large, -ELOOP if it is nested too deep: then JSON has only those of its name, uid and
 * resourceVersion that precede the error. If the function returns a negative errno, spec_split_feed
 * returns it. The function must not feed or free the splitter.
 */
typedef int (*spec_split_fn)(void *data, const char *json, size_t len, int wrong);

/*
 * Create a splitter that keeps the members of each object that PICK names; without PICK all but
 * metadata.managedFields. PICK must outlive the splitter. A PICK for a watch must keep "code",
 * since a failing watch sends a Status instead of an object. A key with escapes, or one of 32 bytes
 * or more, is in no table, and is kept.
 */
struct spec_split *spec_split_new(enum spec_split_form form, const struct spec_pick *pick,
				  spec_split_fn fn, void *data);
/* The members of metadata that are kept without a PICK. */
extern const struct spec_pick spec_metadata_pick[];
void spec_split_free(struct spec_split *s); /* NULL is allowed */

/*
 * Feed more bytes, cut anywhere. Return 0; -EINVAL: not JSON, or not of the form; -EFBIG: a list's
 * metadata is too large; or what FN returned. After an error every call returns the same error
 * again.
 */
int spec_split_feed(struct spec_split *s, const char *bytes, size_t n);

/*
 * Return the token of the next page of a LIST; "" if it has not arrived yet, or there is none.
 * Valid until the next call.
 */
const char *spec_split_next(const struct spec_split *s);

/*
 * End the body. For a LIST, set RET to its metadata, valid until spec_split_free; -EINVAL: it is
 * incomplete. A watch that is cut in the middle of an event is not an error: the rest is dropped.
 * RET may be NULL.
 */
struct spec_list_meta {
	const char *resource_version; /* or "" */
	const char *next;	      /* the token of the next page, or "" */
};
int spec_split_end(struct spec_split *s, struct spec_list_meta *ret);
