/* SPDX-License-Identifier: MIT */
/*
 * Bytes that come piece by piece, up to a limit. Always followed by NUL once something was added.
 * Private to split.c.
 */
#ifndef KXFS_SPEC_SPLIT_BYTES_H
#define KXFS_SPEC_SPLIT_BYTES_H

#include "spec/base.h"

struct split_bytes {
	char *v;
	size_t len, room;
};

/* Append N bytes of V. 0, -EFBIG: they would be more than MAX in all; -ENOMEM. */
int must_check split_bytes_add(struct split_bytes *b, const char *v, size_t n, size_t max);

/* Empty B, for the next use; room beyond MOST is given back. */
void split_bytes_reset(struct split_bytes *b, size_t most);

void split_bytes_free(struct split_bytes *b);

#endif
