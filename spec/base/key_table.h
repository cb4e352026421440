/* SPDX-License-Identifier: MIT */
/*
 * A hash table of items. Each item contains its key, which is a string. The table stores only the
 * addresses of the items. So it needs about 16 bytes per item, while a UT_hash_handle has 56. This
 * matters for tables of all jobs.
 */
#pragma once

#include "spec/base/base.h"

struct key_table {
	/* Return the key of ITEM. The key must not change while ITEM is in the table. */
	const char *(*key)(const void *item);
	void **slots; /* malloc'ed; a free slot is NULL */
	size_t n;     /* number of items */
	size_t room;  /* number of slots: 0 or a power of two */
};

/* Return the item that has KEY, or NULL. */
void *key_table_find(const struct key_table *t, const char *key);
/* Add ITEM. The table must not have an item with the same key. */
void key_table_add(struct key_table *t, void *item);
/* Remove ITEM, which must be in the table. */
void key_table_remove(struct key_table *t, const void *item);
/* Remove all items, and free the table's memory but not the items. */
void key_table_clear(struct key_table *t);
/*
 * Call this repeatedly to visit all items, in no particular order. Return the next item, or NULL
 * after the last one. *I must be 0 before the first call; each call advances it.
 */
void *key_table_next(const struct key_table *t, size_t *i);
