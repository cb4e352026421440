/* SPDX-License-Identifier: MIT */
/* Pairs of texts, and maps of them that keep their order: environments, metadata, options. */
#pragma once

#include "spec/base/base.h"

/* Plain data: the caller sets both texts. */
struct spec_pair {
	char *key;
	char *value;
};

/* An ordered map of text to text. Plain data: the caller fills it in. */
struct spec_map {
	struct spec_pair *v;
	size_t n;
};

/* Release all that M owns; it is empty afterwards. */
static inline void spec_map_clear(struct spec_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].key);
		free(m->v[i].value);
	}
	free(m->v);
	*m = (struct spec_map){0};
}
