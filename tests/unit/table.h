/* SPDX-License-Identifier: MIT */
/* The table of kinds, created in the same way as in main. */
#pragma once

#include "spec/kinds/kinds.h"

static inline const struct spec_kinds *test_table_of_kinds(void)
{
	static struct spec_kinds kinds;

	if (!kinds.n)
		spec_kinds_init(&kinds);
	return &kinds;
}

/* Return the kind NAME. */
static inline const struct spec_kind *test_kind(const char *name)
{
	return spec_kind_find(test_table_of_kinds(), name);
}
