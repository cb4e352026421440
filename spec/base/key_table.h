/* SPDX-License-Identifier: MIT */
/*
 * A hash table of items; the key is a string in each item. The table stores only the addresses of
 * the items, so an item costs about 16 bytes instead of the 56 of a UT_hash_handle. This matters
 * for tables of all jobs.
 */
#pragma once

#include "spec/base/base.h"

struct key_table {
	/* Return the key of ITEM. It does not change while ITEM is in the table. */
	const char *(*key)(const void *item);
	void **slots; /* malloc'ed; a free slot is NULL */
	size_t n;     /* items */
	size_t room;  /* slots: 0 or a power of two */
};

/* Return the item with the key KEY, or NULL. */
void *key_table_find(const struct key_table *t, const char *key);
/* Add ITEM, whose key must not be in the table yet. */
void key_table_add(struct key_table *t, void *item);
/* Remove ITEM, which is in the table. */
void key_table_remove(struct key_table *t, const void *item);
/* Empty the table, and free its memory. */
void key_table_clear(struct key_table *t);
/* Iterate over the items, in no order: return the next one from slot *I on, or NULL. *I is 0 first. */
void *key_table_next(const struct key_table *t, size_t *i);
