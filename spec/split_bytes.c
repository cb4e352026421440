/* SPDX-License-Identifier: MIT */
/*
 * Bytes that come piece by piece.
 */
#include "spec/split_bytes.h"

#include <errno.h>

#define FIRST_ROOM 4096

static int grow(struct split_bytes *b, size_t need)
{
	size_t room = max_of(b->room, (size_t)FIRST_ROOM);
	char *v;

	while (room < need)
		room *= 2;
	v = realloc(b->v, room);
	if (!v)
		return -ENOMEM;
	b->v = v;
	b->room = room;
	return 0;
}

int split_bytes_add(struct split_bytes *b, const char *v, size_t n, size_t max)
{
	if (b->len > max || n > max - b->len)
		return -EFBIG;
	if (b->len + n >= b->room && grow(b, b->len + n + 1) < 0)
		return -ENOMEM;
	memcpy(b->v + b->len, v, n);
	b->len += n;
	b->v[b->len] = '\0';
	return 0;
}

void split_bytes_reset(struct split_bytes *b, size_t most)
{
	b->len = 0;
	if (b->room > most)
		split_bytes_free(b);
}

void split_bytes_free(struct split_bytes *b)
{
	free(b->v);
	*b = (struct split_bytes){0};
}
