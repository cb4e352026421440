/* SPDX-License-Identifier: MIT */
/*
 * The table of kinds, and what follows from it.
 */
#include "spec/kinds/kinds.h"

#include <assert.h>
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/read.h"

/* In the order of preference; of those that share a slot the last one is the newest, and is preferred. */
static const struct spec_kind *const kinds[] = {&spec_volcano, &spec_mcad, &spec_appwrapper,
						&spec_jobset, &spec_job};

const struct spec_kind *const *spec_kind_all(size_t *ret_n)
{
	*ret_n = array_size(kinds);
	return kinds;
}

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

/* The word of SOURCE that names the slot of KIND. */
static const char *slot_of(const struct spec_kind *kind)
{
	return kind->source ? kind->source : kind->name;
}

static bool is_meant(const struct spec_kind *kind, const char *source)
{
	return !*source || streq(source, kind->name) || streq(source, slot_of(kind));
}

const struct spec_kind *spec_kind_meant(const char *source, size_t i)
{
	for (size_t k = 0; k < array_size(kinds); k++)
		if (is_meant(kinds[k], source) && i-- == 0)
			return kinds[k];
	return NULL;
}

char *spec_kinds_text(const char *source)
{
	const char *words[array_size(kinds)];
	char *text = text_copy("");
	size_t n = 0;

	for (size_t i = 0; i < array_size(kinds); i++)
		if (is_meant(kinds[i], source) && (!n || !streq(words[n - 1], kinds[i]->jobs)))
			words[n++] = kinds[i]->jobs;
	for (size_t i = 0; i < n; i++)
		text_set(&text, "%s%s%s", text, i == 0 ? "" : i < n - 1 ? ", " : " or ", words[i]);
	return text;
}

/* True if VERSION ("batch/v1") is in LIST. */
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

int spec_kinds_served(const char *list, size_t len, const char *source,
		      const struct spec_kind *ret[SPEC_MAX_SLOTS])
{
	const char *slots[SPEC_MAX_SLOTS] = {NULL};
	cleanup_free struct spec_value *value = NULL;

	if (list &&
	    (spec_value_parse_map(list, len, &value) < 0 || !spec_read_list(value, "groups")))
		return -EINVAL;
	memset(ret, 0, SPEC_MAX_SLOTS * sizeof(struct spec_kind *));
	for (size_t i = 0; i < array_size(kinds); i++) {
		size_t at = 0;

		if (!is_meant(kinds[i], source))
			continue;
		while (slots[at] && !streq(slots[at], slot_of(kinds[i])))
			at++;
		assert(at < SPEC_MAX_SLOTS);
		slots[at] = slot_of(kinds[i]);
		if (!list || lists(value, kinds[i]->api_version))
			ret[at] = kinds[i];
	}
	return 0;
}

bool spec_kind_makes(const struct spec_kind *kind, const struct spec_job_view *view)
{
	size_t group = strcspn(kind->api_version, "/") + 1, word = strlen(kind->kind);

	return strncmp(view->owner_api, kind->api_version, group) == 0 &&
	       strncmp(view->meta.owner, kind->kind, word) == 0 && view->meta.owner[word] == ' ';
}
