/* SPDX-License-Identifier: MIT */
/* Parses SOURCE. The name of a backend is never read as a namespace. */
#include "fs/cli/source.h"

#include <errno.h>

#include "fs/cli/refuse.h"
#include "spec/base/error.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/kinds/kinds.h"

const char *source_backend_at(const struct spec_kinds *kinds, size_t i)
{
	return i < kinds->n ? kinds->v[i]->name : i == kinds->n ? "local" : NULL;
}

/* Return all backends, for people: "volcano:, job: and local:"; malloc'ed. */
static char *backends_text(const struct spec_kinds *kinds)
{
	char *text = text_copy("");

	for (size_t i = 0; source_backend_at(kinds, i); i++)
		text_set(&text, "%s%s%s:", text,
			 i == 0				   ? ""
			 : source_backend_at(kinds, i + 1) ? ", "
							   : " and ",
			 source_backend_at(kinds, i));
	return text;
}

/* Return the name of the backend at the start of TEXT, or NULL. */
static const char *find_backend(const struct spec_kinds *kinds, const char *text)
{
	const char *colon = strchr(text, ':'), *name;

	for (size_t i = 0; colon && (name = source_backend_at(kinds, i)); i++)
		if (strlen(name) == (size_t)(colon - text) &&
		    strncmp(name, text, strlen(name)) == 0)
			return name;
	return NULL;
}

bool source_has_backend(const struct spec_kinds *kinds, const char *text)
{
	return find_backend(kinds, text) != NULL;
}

/*
 * Refuse TEXT, which has no known backend: either the backend does not exist or the colon is
 * missing.
 */
static int refuse_unknown(const struct spec_kinds *kinds, const char *text, char **ret_text)
{
	const char *colon = strchr(text, ':');
	cleanup_free char *word = mem_copy(text, colon ? (size_t)(colon - text) : strlen(text));
	const char *names[SPEC_MAX_KINDS + 2] = {NULL};
	cleanup_free char *all = backends_text(kinds);
	const char *near;

	for (size_t i = 0; (names[i] = source_backend_at(kinds, i)); i++)
		;
	near = spec_suggest(word, names);

	/* A namespace may be called "training" or "spark", although there is a kind "trainjob". */
	if (near && !colon && !streq(word, near))
		return 0;
	if (near)
		return refuse(-EINVAL, ret_text, "%s: unknown backend; did you mean %s: ?", text,
			      near);
	if (colon && !strchr(text, '/'))
		return refuse(-EINVAL, ret_text, "%s: unknown backend '%s'; backends are %s", text,
			      word, all);
	return 0;
}

int source_parse(const struct spec_kinds *kinds, const char *text, struct source *ret,
		 char **ret_text)
{
	const char *backend = find_backend(kinds, text);
	const char *rest = backend ? text + strlen(backend) + 1 : text;
	const char *slash = strrchr(rest, '/');
	int r;

	*ret = (struct source){0};
	if (text[0] == '/')
		return refuse(
			-EINVAL, ret_text,
			"%s: a source does not begin with '/'; mount(8) makes a path of a word "
			"that names a file here: name the backend, "
			"like local:",
			text);
	ret->backend = text_copy(backend ? backend : "");
	ret->context = mem_copy(rest, slash ? (size_t)(slash - rest) : 0);
	ret->namespace = text_copy(slash ? slash + 1 : rest);
	if (streq(ret->backend, "local")) {
		if (ret->context[0] || ret->namespace[0] || !streq(text, "local:"))
			return refuse(-EINVAL, ret_text, "%s: local: takes nothing after the colon",
				      text);
		return 0;
	}
	if (!ret->backend[0]) {
		r = refuse_unknown(kinds, text, ret_text);
		if (r < 0)
			return r;
	}
	if (ret->namespace[0] && !spec_name_is_label(ret->namespace))
		return refuse(-EINVAL, ret_text, "%s: '%s' can't be the name of a namespace", text,
			      ret->namespace);
	return 0;
}
