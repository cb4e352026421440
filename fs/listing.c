/* SPDX-License-Identifier: MIT */
/* Names of a directory in one block of memory: 10 000 jobs are two allocations that double. */
#include <errno.h>

#include "fs/listing.h"

struct listing *listing_new(void)
{
	struct listing *l cleanup(listing_freep) = calloc(1, sizeof(*l));

	if (!l || listing_add(l, ".") || listing_add(l, ".."))
		return NULL;
	return take_ptr(l);
}

void listing_free(struct listing *l)
{
	if (!l)
		return;
	free(l->names);
	free(l->starts);
	free(l);
}

/* Make *P hold at least NEED items of SIZE bytes. */
static int listing_grow(void *p, size_t *room, size_t need, size_t size)
{
	size_t n = max_of(*room, (size_t)64);
	void *grown;

	if (need <= *room)
		return 0;
	while (n < need)
		n *= 2;
	grown = reallocarray(*(void **)p, n, size);
	if (!grown)
		return -ENOMEM;
	*(void **)p = grown;
	*room = n;
	return 0;
}

int listing_add(struct listing *l, const char *name)
{
	size_t len = strlen(name) + 1;

	if (listing_grow(&l->names, &l->room, l->used + len, 1) ||
	    listing_grow(&l->starts, &l->slots, l->n + 1, sizeof(*l->starts)))
		return -ENOMEM;
	memcpy(l->names + l->used, name, len);
	l->starts[l->n++] = l->used;
	l->used += len;
	return 0;
}

const char *listing_name(const struct listing *l, size_t i)
{
	return i < l->n ? l->names + l->starts[i] : NULL;
}
