/* SPDX-License-Identifier: MIT */
/*
 * Splits the body of a LIST or of a watch into objects while the body arrives, and drops unused
 * members before it stores an object.
 *
 * Any user of the cluster can create a very large object. If an object exceeds SPEC_MAX_WATCHED
 * bytes or a depth of 2 * SPEC_MAX_DEPTH, the splitter skips the rest of the object and continues
 * with the next object. Dropped members do not count. In values that are kept or dropped as a
 * whole, the splitter checks only that brackets and quotes match. A splitter belongs to one thread.
 */
#pragma once

#include "spec/base/base.h"

struct spec_split;

enum spec_split_form {
	/* {"metadata": {...}, "items": [OBJECT, ...]}: deliver each OBJECT */
	SPEC_SPLIT_LIST,
	/* {"type": "ADDED", "object": OBJECT} repeated: deliver each whole event */
	SPEC_SPLIT_WATCH,
};

/*
 * The splitter calls this for each object or event. JSON is NUL-terminated and borrowed. WRONG is
 * 0; -EFBIG if the object is too large; -ELOOP if it is nested too deeply. After such an error,
 * JSON has only those of name, uid and resourceVersion that arrived before the error. Return 0, or
 * a negative errno that spec_split_feed then returns. The callback must not feed or free the
 * splitter.
 */
typedef int (*spec_split_fn)(void *data, const char *json, size_t len, int wrong);

/*
 * Create a splitter that drops metadata.managedFields and, if IGNORED is not NULL, the members of
 * status with these keys. NULL ends IGNORED, which must outlive the splitter. Keys with escapes, or
 * of 32 bytes or more, are always kept.
 */
struct spec_split *spec_split_new(enum spec_split_form form, const char *const *ignored,
				  spec_split_fn fn, void *data);
void spec_split_free(struct spec_split *s); /* NULL is allowed */

/*
 * Feed the next N bytes of the body. Chunks may end at any byte. Return 0; -EINVAL if the body is
 * malformed, or if a list's metadata is too large or too deep; or the error of FN. After an error,
 * every further call returns this error.
 */
int spec_split_feed(struct spec_split *s, const char *bytes, size_t n);

/* Return the token of a LIST's next page, valid until the next call; "" if it has not arrived. */
const char *spec_split_next(const struct spec_split *s);

/* The metadata of a LIST. A text is "" if it is absent. */
struct spec_list_meta {
	const char *resource_version;
	const char *next; /* the token of the next page */
};
/*
 * Call this after the last bytes. Set *RET (may be NULL) to a LIST's metadata, valid until
 * spec_split_free. Return 0; -EINVAL if a LIST is incomplete; or the error of spec_split_feed. An
 * incomplete event of a watch is dropped.
 */
int spec_split_end(struct spec_split *s, struct spec_list_meta *ret);
