/* SPDX-License-Identifier: MIT */
/*
 * The body of a LIST or of a watch, as it arrives: cuts it into objects without ever holding the
 * whole, and drops what kxfs has no use for (managedFields; the environment of pods) before anything
 * is stored. Bounded: an object of at most SPEC_MAX_WATCHED bytes after dropping, nested 2 *
 * SPEC_MAX_DEPTH deep. Brackets, strings and separators are checked; what is between them is
 * checked by who parses the object. Pure; a splitter belongs to one thread.
 */
#ifndef KXFS_SPEC_API_SPLIT_H
#define KXFS_SPEC_API_SPLIT_H

#include "spec/base/base.h"

struct spec_split;

enum spec_split_form {
	SPEC_SPLIT_LIST,  /* {"metadata": {...}, "items": [OBJECT, ...]}: each OBJECT */
	SPEC_SPLIT_WATCH, /* {"type": "ADDED", "object": OBJECT}, one after the other: each whole */
};

/*
 * One object, compact, NUL-terminated, borrowed. A negative errno ends the feeding with it. Must not
 * feed or free the splitter.
 */
typedef int (*spec_split_fn)(void *data, const char *json, size_t len);

/*
 * DROP_ENV: drop the "env" of containers too (pods; jobs need theirs for manifest.yaml, and it is in
 * their templates, where it stays).
 */
struct spec_split *spec_split_new(enum spec_split_form form, bool drop_env, spec_split_fn fn,
				  void *data);
void spec_split_free(struct spec_split *s); /* NULL is allowed */

/*
 * More bytes, any pieces. 0, -EINVAL: not JSON or not of the form; -EFBIG; what FN
 * returned. After an error every call gives the same again.
 */
int spec_split_feed(struct spec_split *s, const char *bytes, size_t n);

/*
 * The body is over. A LIST: its metadata, valid until spec_split_free; -EINVAL: it is not whole. A
 * watch cut in the middle of an event is no error: the rest is dropped. RET may be NULL.
 */
struct spec_list_meta {
	const char *resource_version; /* "" none */
	const char *next;	      /* the token of the next page, "" none */
};
int spec_split_end(struct spec_split *s, struct spec_list_meta *ret);

#endif
