/* SPDX-License-Identifier: MIT */
/*
 * Reading SOURCE. The name of a backend is never taken for a namespace.
 */
#include "fs/cli/source.h"

#include <errno.h>

#include "fs/cli/refuse.h"
#include "spec/base/error.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

const char *const source_backends[] = {"volcano", "mcad",  "appwrapper", "jobset",
				       "job",	  "local", NULL};

/* The name of the backend with which TEXT begins; NULL: none. */
static const char *find_backend(const char *text)
{
	const char *colon = strchr(text, ':');

	if (!colon)
		return NULL;
	for (const char *const *b = source_backends; *b; b++)
		if (strlen(*b) == (size_t)(colon - text) && strncmp(*b, text, strlen(*b)) == 0)
			return *b;
	return NULL;
}

bool source_has_backend(const char *text)
{
	return find_backend(text) != NULL;
}

/* Refuse TEXT, which has no known backend: most probably its backend does not exist, or the colon is missing. */
static int refuse_unknown(const char *text, char **ret_text)
{
	const char *colon = strchr(text, ':');
	cleanup_free char *word = mem_copy(text, colon ? (size_t)(colon - text) : strlen(text));
	const char *near = spec_suggest(word, source_backends);

	/* A word this short is near to many names that a namespace may have. */
	if (near && !colon && strlen(near) <= 3 && !streq(word, near))
		return 0;
	if (near)
		return refuse(-EINVAL, ret_text, "%s: unknown backend; did you mean %s: ?", text,
			      near);
	if (colon && !strchr(text, '/'))
		return refuse(
			-EINVAL, ret_text,
			"%s: unknown backend '%s'; backends are volcano:, mcad:, appwrapper:, jobset:, "
			"job: and local:",
			text, word);
	return 0;
}

int source_parse(const char *text, struct source *ret, char **ret_text)
{
	const char *backend = find_backend(text);
	const char *rest = backend ? text + strlen(backend) + 1 : text;
	const char *slash = strrchr(rest, '/');
	int r;

	*ret = (struct source){0};
	if (text[0] == '/')
		return refuse(-EINVAL, ret_text,
			      "%s: a source does not begin with '/'; mount(8) makes a path of a "
			      "word that is the name of a file here: write it with its backend, "
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
		r = refuse_unknown(text, ret_text);
		if (r < 0)
			return r;
	}
	if (ret->namespace[0] && !spec_name_is_label(ret->namespace))
		return refuse(-EINVAL, ret_text, "%s: '%s' can't be the name of a namespace", text,
			      ret->namespace);
	return 0;
}
