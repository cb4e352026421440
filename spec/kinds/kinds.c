/* SPDX-License-Identifier: MIT */
/*
 * The tables of kinds, and of what clusters serve.
 */
#include "spec/kinds/kinds.h"

#include <assert.h>
#include <errno.h>

#include "spec/base/read.h"

static const struct spec_kind *const kinds[] = {&spec_volcano, &spec_mcad, &spec_appwrapper,
						&spec_jobset, &spec_job};

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

const struct spec_kind *spec_kind_of_scheduler(const char *scheduler)
{
	for (size_t i = 0; i < array_size(kinds); i++) {
		if (streq(kinds[i]->name, scheduler) || streq(kinds[i]->scheduler, scheduler))
			return kinds[i];
	}
	return NULL;
}

const struct spec_kind *spec_kind_of_option(const char *name)
{
	for (size_t i = 0; i < array_size(kinds); i++) {
		if (spec_option_find(kinds[i]->options, name))
			return kinds[i];
	}
	return NULL;
}

void spec_kind_app_rules(struct spec_app_rules *ret, const struct spec_kind *kind, const char *home)
{
	const size_t n = array_size(kinds);

	*ret = (struct spec_app_rules){.home = home,
				       .n_known = n + 1,
				       .scheduler = kind ? kind->name : NULL};
	static_assert(array_size(kinds) < SPEC_MAX_SCHEDULERS, "there is room for each kind");
	for (size_t i = 0; i < n; i++)
		ret->known[i] = (struct spec_scheduler){.name = kinds[i]->name,
							.also = kinds[i]->also,
							.torchx = kinds[i]->scheduler,
							.pod_name_len = kinds[i]->pod_name_len};
	/* A job that runs here today should run in a cluster tomorrow, and Volcano has the strictest rules. */
	ret->known[n] = (struct spec_scheduler){.name = "local",
						.torchx = "local_cwd",
						.pod_name_len = spec_volcano.pod_name_len};
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
		.source = "jobset",
		.api_version = "jobset.x-k8s.io/v1alpha2",
		.plural = "jobsets",
		.kind = &spec_jobset,
	},
	{
		.source = "mcad",
		.api_version = "mcad.ibm.com/v1beta1",
		.plural = "appwrappers",
		.instead =
			"It has an MCAD older than 1.34. Ask who runs it to install MCAD 1.34.1 or "
			"newer, or AppWrapper, its successor.",
	},
	{
		/* Every cluster serves it, so it comes last. */
		.source = "job",
		.api_version = "batch/v1",
		.plural = "jobs",
		.kind = &spec_job,
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

/* Is VERSION ("batch/v1") in LIST? */
static bool lists(const struct spec_value *list, const char *version)
{
	const struct spec_value *groups = spec_read_list(list, "groups");

	for (size_t i = 0; i < spec_read_count(groups); i++) {
		const struct spec_value *versions =
			spec_read_list(spec_read_at(groups, i), "versions");

		for (size_t k = 0; k < spec_read_count(versions); k++)
			if (streq(spec_read_text(spec_read_at(versions, k), "groupVersion"),
				  version))
				return true;
	}
	return false;
}

int spec_served_find(const char *list, size_t len, const struct spec_served *ret[SPEC_MAX_SOURCES])
{
	const char *sources[SPEC_MAX_SOURCES] = {NULL};
	cleanup_free struct spec_value *value = NULL;

	if (list &&
	    (spec_value_parse_map(list, len, &value) < 0 || !spec_read_list(value, "groups")))
		return -EINVAL;
	memset(ret, 0, SPEC_MAX_SOURCES * sizeof(struct spec_served *));
	for (size_t i = 0; i < array_size(served); i++) {
		size_t at = 0;

		while (sources[at] && !streq(sources[at], served[i].source))
			at++;
		assert(at < SPEC_MAX_SOURCES);
		sources[at] = served[i].source;
		if (!ret[at] && (!list || lists(value, served[i].api_version)))
			ret[at] = &served[i];
	}
	return 0;
}

bool spec_kind_makes(const struct spec_kind *kind, const struct spec_job_view *view)
{
	size_t group = strcspn(kind->api_version, "/") + 1, word = strlen(kind->kind);

	return strncmp(view->owner_api, kind->api_version, group) == 0 &&
	       strncmp(view->meta.owner, kind->kind, word) == 0 && view->meta.owner[word] == ' ';
}
