/* SPDX-License-Identifier: MIT */
/*
 * The names of a directory in one block of memory, and their offsets in another. Each block doubles
 * when it is full, so 10 000 jobs cost few allocations.
 */
#include "fs/vfs/listing.h"

#include "spec/base/mem.h"

struct listing *listing_new(void)
{
	struct listing *l = new0(struct listing);

	listing_add(l, ".");
	listing_add(l, "..");
	return l;
}

void listing_free(struct listing *l)
{
	if (!l)
		return;
	free(l->names);
	free(l->starts);
	free(l);
}

/* Return a new capacity for NEED items; the present one is ROOM. */
static size_t listing_room(size_t room, size_t need)
{
	room = max_of(room, (size_t)64);
	while (room < need)
		room *= 2;
	return room;
}

void listing_add(struct listing *l, const char *name)
{
	size_t len = strlen(name) + 1;

	if (l->used + len > l->room) {
		l->room = listing_room(l->room, l->used + len);
		l->names = mem_grow(l->names, l->room, 1);
	}
	if (l->n == l->slots) {
		l->slots = listing_room(l->slots, l->n + 1);
		l->starts = mem_grow(l->starts, l->slots, sizeof(*l->starts));
	}
	memcpy(l->names + l->used, name, len);
	l->starts[l->n++] = l->used;
	l->used += len;
}

const char *listing_name(const struct listing *l, size_t i)
{
	return i < l->n ? l->names + l->starts[i] : NULL;
}
