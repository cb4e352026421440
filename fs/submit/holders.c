/* SPDX-License-Identifier: MIT */
/* A small set of numbers of processes; see holders.h. */
#include "fs/submit/holders.h"

static size_t find(const struct holders *h, uint64_t who)
{
	size_t i = 0;

	while (i < h->n && h->who[i] != who)
		i++;
	return i;
}

static void add(struct holders *h, uint64_t who)
{
	if (find(h, who) < h->n)
		return;
	if (h->n == HOLDERS_MAX)
		h->crowded = true;
	else
		h->who[h->n++] = who;
}

void holders_wrote(struct holders *h, uint64_t who)
{
	h->written = true;
	if (who)
		add(h, who);
}

bool holders_closed(struct holders *h, uint64_t who)
{
	size_t i = find(h, who);

	if (i < h->n)
		h->who[i] = h->who[--h->n];
	else if (!h->written)
		add(h, who);
	return h->n == 0 && !h->crowded;
}
