/* SPDX-License-Identifier: MIT */
/*
 * The tables of kinds, and of what clusters serve.
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

static const struct spec_served served[] = {
	{
		.source = "volcano",
		.api_version = "batch.volcano.sh/v1alpha1",
		.plural = "jobs",
		.kind = &spec_volcano,
	},
	{
		.source = "mcad",
		.api_version = "workload.codeflare.dev/v1beta2",
		.plural = "appwrappers",
		.kind = &spec_appwrapper,
	},
	{
		.source = "mcad",
		.api_version = "workload.codeflare.dev/v1beta1",
		.plural = "appwrappers",
		.kind = &spec_mcad,
	},
	{
		.source = "mcad",
		.api_version = "mcad.ibm.com/v1beta1",
		.plural = "appwrappers",
		.instead =
			"It has an MCAD older than 1.34. Ask who runs it to install MCAD 1.34.1 or "
			"newer, or AppWrapper, its successor.",
	},
};

const struct spec_served *spec_served_at(const char *source, size_t i)
{
	for (size_t k = 0; k < array_size(served); k++) {
		if (*source && !streq(served[k].source, source))
			continue;
		if (i-- == 0)
			return &served[k];
	}
	return NULL;
}
