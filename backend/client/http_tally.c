/* SPDX-License-Identifier: MIT */
/* Paths are /api/VERSION/... or /apis/GROUP/VERSION/..., then [namespaces/NAME/]RESOURCE[/NAME[/PART]]. */
#include "backend/client/http_tally.h"

#define PARTS 8

/* A part of the path between two slashes. */
struct tally_part {
	const char *at;
	int len;
};

static size_t split(const char *path, struct tally_part parts[PARTS])
{
	size_t n = 0;

	while (n < PARTS && *path == '/') {
		parts[n].at = ++path;
		parts[n].len = (int)strcspn(path, "/?");
		path += parts[n++].len;
	}
	return n;
}

static bool part_is(const struct tally_part *part, const char *text)
{
	return (size_t)part->len == strlen(text) && !memcmp(part->at, text, (size_t)part->len);
}

static const char *verb_of(enum http_method method, const char *path, bool named)
{
	const char *query = strchr(path, '?');

	switch (method) {
	case HTTP_POST:
		return "create";
	case HTTP_PATCH:
		return "patch";
	case HTTP_DELETE:
		return "delete";
	case HTTP_GET:
		break;
	}
	if (named)
		return "get";
	return query && !strncmp(query, "?watch=true", 11) ? "watch" : "list";
}

static void name_request(enum http_method method, const char *path, const char **ret_verb,
			 char ret_resource[TALLY_TEXT])
{
	struct tally_part parts[PARTS] = {0};
	size_t n = split(path, parts);
	bool core = n > 0 && part_is(&parts[0], "api");
	const struct tally_part *group = core ? NULL : &parts[1];
	size_t at = core ? 2 : 3;

	if (at + 2 < n && part_is(&parts[at], "namespaces"))
		at += 2;
	if (at >= n) { /* the path of the server as a whole, such as /version */
		*ret_verb = verb_of(method, path, true);
		*ret_resource = '\0';
		return;
	}
	*ret_verb = verb_of(method, path, at + 1 < n);
	snprintf(ret_resource, TALLY_TEXT, "%.*s%s%.*s%s%.*s", parts[at].len, parts[at].at,
		 group ? "." : "", group ? group->len : 0, group ? group->at : "",
		 at + 2 < n ? "/" : "", at + 2 < n ? parts[at + 2].len : 0,
		 at + 2 < n ? parts[at + 2].at : "");
}

void http_tally_add(struct tally *t, enum http_method method, const char *path, int status)
{
	char resource[TALLY_TEXT], code[16] = "none";
	const char *verb;

	name_request(method, path, &verb, resource);
	if (status)
		snprintf(code, sizeof(code), "%d", status);
	tally_add(t, (const char *const[]){verb, resource, code});
}
