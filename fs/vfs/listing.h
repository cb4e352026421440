/* SPDX-License-Identifier: MIT */
/*
 * The names that a directory had when it was opened. Its handle stores them, so that a reader
 * neither skips nor repeats an entry while jobs are added and removed. FUSE thread only.
 */
#pragma once

#include "spec/base/base.h"

struct listing {
	char *names; /* the names, each with its NUL, one after the other */
	size_t used, room;
	size_t *starts; /* offset of each name */
	size_t n, slots;
};

/* Make a listing that contains "." and "..". */
struct listing *listing_new(void);
void listing_free(struct listing *l);
define_cleanup(listing_freep, struct listing *, listing_free)

/* Append a copy of NAME. */
void listing_add(struct listing *l, const char *name);

/* Return the I-th name; NULL at the end. */
const char *listing_name(const struct listing *l, size_t i);
