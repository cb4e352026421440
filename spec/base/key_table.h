/* SPDX-License-Identifier: MIT */
/*
 * A hash table of items that contain their key, a string. It needs about 16 bytes per item, while
 * the UT_hash_handle of uthash has 56 bytes. This matters for tables of all jobs.
 */
#pragma once

#include "spec/base/base.h"

struct key_table {
	/* The key of an item must not change while the item is in the table. */
	const char *(*key)(const void *item);
	void **slots; /* a free slot is NULL */
	size_t n;     /* number of items */
	size_t room;  /* number of slots: 0 or a power of two */
};

void *key_table_find(const struct key_table *t, const char *key);
/* The table must not have an item with the same key. */
void key_table_add(struct key_table *t, void *item);
/* ITEM must be in the table. */
void key_table_remove(struct key_table *t, const void *item);
/* Remove all items without freeing them, and free the table's memory. */
void key_table_clear(struct key_table *t);
/*
 * Return the next item, in no particular order; NULL after the last item. *I must be 0 before the
 * first call.
 */
void *key_table_next(const struct key_table *t, size_t *i);
