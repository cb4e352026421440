/* SPDX-License-Identifier: MIT */
/*
 * The table of kinds.
 */
#include "spec/kind.h"

static const struct spec_kind *const kinds[] = {&spec_volcano, &spec_mcad, &spec_appwrapper};

const struct spec_kind *spec_kind_at(size_t i)
{
	return i < array_size(kinds) ? kinds[i] : NULL;
}

const struct spec_kind *spec_kind_find(const char *name)
{
	for (size_t i = 0; i < array_size(kinds); i++) {
		if (streq(kinds[i]->name, name))
			return kinds[i];
	}
	return NULL;
}

bool spec_kind_takes(const struct spec_kind *kind, const char *name)
{
	return streq(kind->name, name) || (kind->also && streq(kind->also, name));
}
