/* SPDX-License-Identifier: MIT */
/* A hash table with open addressing and linear probing. At most 3/4 of its slots are used. */
#include "spec/base/key_table.h"

#include <assert.h>

#include "spec/base/encode.h"
#include "spec/base/mem.h"

#define FIRST_ROOM 16

/* Return the slot where the search for KEY begins. */
static size_t home(const struct key_table *t, const char *key)
{
	const uint64_t hash = spec_fnv1a(SPEC_FNV1A_INIT, key, strlen(key));

	return (size_t)(hash ^ hash >> 32) & (t->room - 1);
}

/* Return the slot of KEY's item, or the free slot at which the search for KEY ends. */
static size_t find(const struct key_table *t, const char *key)
{
	size_t i = home(t, key);

	while (t->slots[i] && !streq(t->key(t->slots[i]), key))
		i = (i + 1) & (t->room - 1);
	return i;
}

void *key_table_find(const struct key_table *t, const char *key)
{
	return t->room ? t->slots[find(t, key)] : NULL;
}

static void grow(struct key_table *t)
{
	struct key_table old = *t;
	size_t i = 0;
	void *item;

	t->room = max_of(2 * old.room, (size_t)FIRST_ROOM);
	t->slots = new0_n(void *, t->room);
	while ((item = key_table_next(&old, &i)))
		t->slots[find(t, t->key(item))] = item;
	free(old.slots);
}

void key_table_add(struct key_table *t, void *item)
{
	size_t i;

	if (4 * (t->n + 1) > 3 * t->room)
		grow(t);
	i = find(t, t->key(item));
	assert(!t->slots[i]);
	t->slots[i] = item;
	t->n++;
}

void key_table_remove(struct key_table *t, const void *item)
{
	const size_t mask = t->room - 1;
	size_t gap = find(t, t->key(item));

	assert(t->slots[gap] == item);
	t->n--;
	/*
	 * GAP is the slot of the removed item. A search ends at a free slot, so it would no longer
	 * find an item that it can reach only past GAP. Move such an item into GAP; its old slot is
	 * then the new gap.
	 */
	for (size_t i = (gap + 1) & mask; t->slots[i]; i = (i + 1) & mask) {
		const size_t from = home(t, t->key(t->slots[i]));

		if (((i - from) & mask) < ((i - gap) & mask))
			continue;
		t->slots[gap] = t->slots[i];
		gap = i;
	}
	t->slots[gap] = NULL;
}

void key_table_clear(struct key_table *t)
{
	free(t->slots);
	*t = (struct key_table){.key = t->key};
}

void *key_table_next(const struct key_table *t, size_t *i)
{
	while (*i < t->room && !t->slots[*i])
		(*i)++;
	return *i < t->room ? t->slots[(*i)++] : NULL;
}
