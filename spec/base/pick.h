/* SPDX-License-Identifier: MIT */
/*
 * The members of a JSON object that somebody reads, copied out of its text in one pass. Of an object of the cluster a
 * dozen members of a hundred matter, and a tree of these few is made much sooner than one of all. Private to spec/.
 */
#ifndef KXFS_SPEC_BASE_PICK_H
#define KXFS_SPEC_BASE_PICK_H

#include "spec/base/base.h"

/* A table of the members to keep; the last row has no KEY. */
struct spec_pick {
	const char *key;
	/*
	 * What to keep within it; NULL: all. Where the member is a list, this is said of each item. A value that is
	 * neither an object nor a list is kept.
	 */
	const struct spec_pick *of;
};

/*
 * The object JSON (LEN bytes), with nothing but what PICK says; malloc'ed, *RET_LEN bytes and a NUL. What is left out
 * is checked as well: NULL if JSON is not an object, or has anything that json-c may read in another way than this scan
 * does, such as escapes in keys. Then the whole text is to be parsed, which gives the same.
 */
char *spec_pick(const char *json, size_t len, const struct spec_pick *pick, size_t *ret_len);

#endif
