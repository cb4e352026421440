/* SPDX-License-Identifier: MIT */
/* The table of kinds, and functions that search it. */
#include "spec/kinds/kinds.h"

#include <assert.h>
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/value.h"

/*
 * The kinds that are at least partly written in C, in order of preference. A slot is a group of
 * kinds that users select by the same word in SOURCE (slot_of). In a slot, the newest kind is last.
 * If a kind has no reader in C, a file in share/kinds/ describes how kxfs reads its objects, and
 * the C code only makes them.
 */
static const struct spec_kind *const compiled[] = {&spec_volcano, &spec_mcad, &spec_appwrapper,
						   &spec_jobset, &spec_job};

static const struct spec_kind *find_compiled(const char *name)
{
	for (size_t i = 0; i < array_size(compiled); i++)
		if (streq(compiled[i]->name, name))
			return compiled[i];
	return NULL;
}

void spec_kinds_init(struct spec_kinds *ret)
{
	*ret = (struct spec_kinds){0};
	for (size_t i = 0; i < array_size(compiled); i++)
		if (compiled[i]->reader)
			ret->v[ret->n++] = compiled[i];
	for (const struct spec_shipped_kind *s = spec_shipped_kinds; s->name; s++) {
		cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
		struct spec_kind *kind = NULL;

		spec_kind_file_read(s->text, strlen(s->text), find_compiled(s->name), &kind, &e);
		/* A test checks all shipped kind files. */
		assert(kind && ret->n < SPEC_MAX_KINDS);
		ret->v[ret->n++] = kind;
	}
}

void spec_kinds_clear(struct spec_kinds *kinds)
{
	for (size_t i = 0; i < kinds->n; i++)
		spec_kind_file_free(kinds->v[i]);
	kinds->n = 0;
}

/* Return why KIND, from a user's file, can't be at index AT of KINDS (malloc'ed), or NULL. */
static char *refusal_of(const struct spec_kinds *kinds, const struct spec_kind *kind, size_t at)
{
	size_t parts = kind->n_parts;

	if (find_compiled(kind->name) || streq(kind->name, "local"))
		return text_print("%s is a built-in kind and can't be replaced: choose another "
				  "name",
				  kind->name);
	if (at == SPEC_MAX_KINDS)
		return text_print("kxfs supports at most %d kinds", SPEC_MAX_KINDS);
	for (size_t i = 0; i < kinds->n; i++)
		parts += i == at ? 0 : kinds->v[i]->n_parts;
	if (parts > SPEC_MAX_PARTS)
		return text_print("kxfs supports at most %d parts of all kinds together",
				  SPEC_MAX_PARTS);
	for (size_t i = 0; i < kinds->n; i++)
		if (i != at && streq(kinds->v[i]->api_version, kind->api_version) &&
		    streq(kinds->v[i]->kind, kind->kind))
			return text_print("the kind %s also describes %s %s: remove this file or "
					  "that kind",
					  kinds->v[i]->name, kind->api_version, kind->kind);
	return NULL;
}

int spec_kinds_add(struct spec_kinds *kinds, const char *text, size_t len,
		   const struct spec_kind **ret, struct spec_errors *e)
{
	cleanup_free char *why = NULL;
	struct spec_kind *kind;
	size_t at = 0;

	if (spec_kind_file_read(text, len, NULL, &kind, e) < 0)
		return e->err;
	while (at < kinds->n && !streq(kinds->v[at]->name, kind->name))
		at++;
	why = refusal_of(kinds, kind, at);
	if (why) {
		spec_kind_file_free(kind);
		return spec_errors_add(e, -EINVAL, 0, 0, "", "%s", why);
	}
	kind->users = true;
	if (at < kinds->n)
		spec_kind_file_free(kinds->v[at]);
	kinds->v[at] = *ret = kind;
	kinds->n = max_of(kinds->n, at + 1);
	return 0;
}

const struct spec_kind *spec_kind_find(const struct spec_kinds *kinds, const char *name)
{
	for (size_t i = 0; i < kinds->n; i++) {
		if (streq(kinds->v[i]->name, name))
			return kinds->v[i];
	}
	return NULL;
}

/* --- rules for reading AppDefs --- */

bool spec_kind_has_scheduler(const struct spec_kind *kind, const char *scheduler)
{
	return streq(kind->name, scheduler) || streq(kind->scheduler, scheduler) ||
	       streq(kind->also, scheduler);
}

const struct spec_kind *spec_kind_of_scheduler(const struct spec_kinds *kinds,
					       const char *scheduler)
{
	for (size_t i = 0; i < kinds->n; i++)
		if (kinds->v[i]->build && spec_kind_has_scheduler(kinds->v[i], scheduler))
			return kinds->v[i];
	return NULL;
}

const struct spec_kind *spec_kind_of_option(const char *name)
{
	for (size_t i = 0; i < array_size(compiled); i++) {
		if (spec_option_find(compiled[i]->options, name))
			return compiled[i];
	}
	return NULL;
}

const struct spec_kind *spec_kind_default(const struct spec_kind *const *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i]->build)
			return all[i];
	return all[0];
}

void spec_kind_app_rules(struct spec_app_rules *ret, const struct spec_kind *kind, const char *home)
{
	const size_t n = array_size(compiled);

	*ret = (struct spec_app_rules){.home = home,
				       .n_known = n + 1,
				       .scheduler = kind ? kind->name : NULL};
	static_assert(array_size(compiled) < SPEC_MAX_SCHEDULERS, "there is room for each kind");
	for (size_t i = 0; i < n; i++)
		ret->known[i] = (struct spec_scheduler){.name = compiled[i]->name,
							.also = compiled[i]->also,
							.torchx = compiled[i]->scheduler,
							.pod_name_len = compiled[i]->pod_name_len};
	/* Volcano's limits are the strictest, so a local job's AppDef fits any cluster. */
	ret->known[n] = (struct spec_scheduler){.name = "local",
						.torchx = "local_cwd",
						.pod_name_len = spec_volcano.pod_name_len};
}

/* --- the meaning of SOURCE --- */

/* Return the word in SOURCE that selects KIND. Kinds with the same word share a slot. */
static const char *slot_of(const struct spec_kind *kind)
{
	return kind->source ? kind->source : kind->name;
}

static bool is_meant(const struct spec_kind *kind, const char *source)
{
	return !*source || streq(source, kind->name) || streq(source, slot_of(kind));
}

const struct spec_kind *spec_kind_meant(const struct spec_kinds *kinds, const char *source,
					size_t i)
{
	for (size_t k = 0; k < kinds->n; k++)
		if (is_meant(kinds->v[k], source) && i-- == 0)
			return kinds->v[k];
	return NULL;
}

const char *spec_kinds_text(const struct spec_kinds *kinds, const char *source)
{
	return *source ? spec_kind_meant(kinds, source, 0)->jobs : "jobs that kxfs can show";
}

/* True if the APIGroupList LIST contains VERSION ("batch/v1"). */
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

int spec_kinds_served(const struct spec_kinds *kinds, const char *list, size_t len,
		      const char *source, const struct spec_kind *ret[SPEC_MAX_KINDS])
{
	const char *slots[SPEC_MAX_KINDS];
	cleanup_free struct spec_value *value = NULL;
	size_t n = 0;

	if (list &&
	    (spec_value_parse_map(list, len, &value) < 0 || !spec_read_list(value, "groups")))
		return -EINVAL;
	for (size_t i = 0; i < kinds->n; i++) {
		const struct spec_kind *kind = kinds->v[i];
		size_t at = 0;

		if (!is_meant(kind, source))
			continue;
		while (at < n && !streq(slots[at], slot_of(kind)))
			at++;
		if (at == n) {
			ret[n] = NULL;
			slots[n++] = slot_of(kind);
		}
		if (!list || lists(value, kind->api_version))
			ret[at] = kind;
	}
	return (int)n;
}

/* True if the controller of VIEW's object has this kind and the API group of API_VERSION. */
static bool is_of(const struct spec_job_view *view, const char *api_version, const char *kind)
{
	size_t group = strcspn(api_version, "/") + 1, word = strlen(kind);

	return strncmp(view->owner_api, api_version, group) == 0 &&
	       strncmp(view->meta.owner, kind, word) == 0 && view->meta.owner[word] == ' ';
}

bool spec_kind_makes(const struct spec_kind *kind, const struct spec_job_view *view)
{
	return is_of(view, kind->api_version, kind->kind);
}

bool spec_kind_links(const struct spec_kind *kind, const struct spec_kind *own,
		     const struct spec_job_view *view)
{
	bool is = false, owned = spec_kind_makes(kind, view);

	for (size_t i = 0; i < kind->n_parts; i++) {
		const struct spec_part *part = &kind->parts[i];

		is |= spec_part_is(part, own);
		owned |= is_of(view, part->api_version, part->kind);
	}
	return is && owned;
}

bool spec_part_is(const struct spec_part *part, const struct spec_kind *kind)
{
	return streq(part->kind, kind->kind) && strncmp(part->api_version, kind->api_version,
							strcspn(kind->api_version, "/") + 1) == 0;
}
