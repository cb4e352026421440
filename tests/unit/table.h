/* SPDX-License-Identifier: MIT */
/* The table of kinds, as main makes it. */
#pragma once

#include "spec/kinds/kinds.h"

static inline const struct spec_kinds *test_table_of_kinds(void)
{
	static struct spec_kinds kinds;

	if (!kinds.n)
		spec_kinds_init(&kinds);
	return &kinds;
}

/* The kind of this name. */
static inline const struct spec_kind *test_kind(const char *name)
{
	return spec_kind_find(test_table_of_kinds(), name);
}
