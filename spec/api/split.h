/* SPDX-License-Identifier: MIT */
/*
 * Splits the body of a LIST or of a watch into objects while the body arrives. It never stores the
 * whole body, and drops unused members before it stores an object.
 *
 * Without its dropped members, an object may have at most SPEC_MAX_WATCHED bytes and be nested at
 * most 2 * SPEC_MAX_DEPTH deep. Any user of the cluster can create a larger object. The splitter
 * skips the rest of such an object, and continues with the next one. Some values are kept or
 * dropped as a whole. In these values, the splitter only checks that brackets and quotes match. The
 * code that parses the object later checks the rest. All functions are pure; a splitter belongs to
 * one thread.
 */
#pragma once

#include "spec/base/base.h"

/*
 * One row of a table, which selects the members that the splitter keeps in an object: often a dozen
 * of a hundred. The last row has no KEY; its KEEP applies to all members that have no row of their
 * own.
 */
struct spec_pick {
	const char *key;
	bool keep;
	/*
	 * A table for the value of KEY. If the value is an object, the table applies to the value's
	 * members. If the value is a list, the table applies to the members of each item. Any other
	 * value is kept. If OF is NULL, KEEP determines whether the whole value is kept.
	 */
	const struct spec_pick *of;
};

struct spec_split;

enum spec_split_form {
	/* {"metadata": {...}, "items": [OBJECT, ...]}: the splitter delivers each OBJECT */
	SPEC_SPLIT_LIST,
	/* {"type": "ADDED", "object": OBJECT} repeated: the splitter delivers each whole event */
	SPEC_SPLIT_WATCH,
};

/*
 * Called for each object, or for each event of a watch. JSON is its text, NUL-terminated and
 * borrowed. WRONG is 0; -EFBIG if the object is too large; or -ELOOP if it is nested too deeply.
 * After such an error, JSON contains only the object's name, uid and resourceVersion, and only
 * those that come before the error. If the function returns a negative errno, spec_split_feed
 * returns it. The function must not feed or free the splitter.
 */
typedef int (*spec_split_fn)(void *data, const char *json, size_t len, int wrong);

/*
 * Create a splitter. It keeps those members of each object that PICK selects. If PICK is NULL, it
 * keeps all except metadata.managedFields. PICK must outlive the splitter. A PICK for a watch must
 * keep "code", since a failing watch sends a Status instead of an object. Keys with escapes, and
 * keys of 32 bytes or more, can't be in a table; the splitter always keeps them.
 */
struct spec_split *spec_split_new(enum spec_split_form form, const struct spec_pick *pick,
				  spec_split_fn fn, void *data);
/* The table for metadata that the splitter uses if PICK is NULL. */
extern const struct spec_pick spec_metadata_pick[];
void spec_split_free(struct spec_split *s); /* NULL is allowed */

/*
 * Feed the next bytes of the body, which may be cut anywhere. Return 0; -EINVAL if the body is not
 * JSON or does not have the splitter's form; -EFBIG if the metadata of a list is too large; or the
 * error that FN returned. After an error, every further call returns this error.
 */
int spec_split_feed(struct spec_split *s, const char *bytes, size_t n);

/*
 * Return the token of the next page of a LIST. Return "" if there is no next page, or the token has
 * not arrived yet. The text is valid until the next call.
 */
const char *spec_split_next(const struct spec_split *s);

/* The metadata of a LIST. */
struct spec_list_meta {
	const char *resource_version; /* or "" */
	const char *next;	      /* the token of the next page, or "" */
};
/*
 * Call this after the last bytes of the body. Set *RET to the metadata of a LIST, which is valid
 * until spec_split_free. RET may be NULL. Return 0; -EINVAL if a LIST is incomplete; or the error
 * of spec_split_feed. If a watch ends in the middle of an event, drop this event and return 0.
 */
int spec_split_end(struct spec_split *s, struct spec_list_meta *ret);
