/* SPDX-License-Identifier: MIT */
/*
 * An event of a watch. The object in it may have a megabyte and is parsed by who wants it, so here the
 * text is only scanned: members are found by counting brackets outside strings.
 */
#include "spec/event.h"

#include <errno.h>

#include "spec/tree.h"

/* A part of the text. */
struct span {
	const char *p, *end;
};

static const char *const type_names[] = {
	[SPEC_EVENT_ADDED] = "ADDED",	  [SPEC_EVENT_MODIFIED] = "MODIFIED",
	[SPEC_EVENT_DELETED] = "DELETED", [SPEC_EVENT_BOOKMARK] = "BOOKMARK",
	[SPEC_EVENT_ERROR] = "ERROR",
};

static void skip_space(struct span *s)
{
	while (s->p < s->end && strchr(" \t\r\n", *s->p) && *s->p)
		s->p++;
}

/* Move S behind the string that it begins with. */
static bool skip_string(struct span *s)
{
	if (s->p == s->end || *s->p != '"')
		return false;
	for (s->p++; s->p < s->end; s->p++) {
		if (*s->p == '"') {
			s->p++;
			return true;
		}
		if (*s->p == '\\' && ++s->p == s->end)
			return false;
	}
	return false;
}

/* Move S behind a bracket and all up to the one that closes it. */
static bool skip_brackets(struct span *s)
{
	size_t depth = 0;

	do {
		if (s->p == s->end)
			return false;
		if (*s->p == '"') {
			if (!skip_string(s))
				return false;
			continue;
		}
		depth += *s->p == '{' || *s->p == '[';
		depth -= *s->p == '}' || *s->p == ']';
		s->p++;
	} while (depth > 0);
	return true;
}

/* Move S behind the value that it begins with; *RET is the value. */
static bool take_value(struct span *s, struct span *ret)
{
	bool ok;

	skip_space(s);
	ret->p = s->p;
	if (s->p == s->end)
		return false;
	if (*s->p == '"') {
		ok = skip_string(s);
	} else if (*s->p == '{' || *s->p == '[') {
		ok = skip_brackets(s);
	} else {
		while (s->p < s->end && !strchr(",}] \t\r\n", *s->p))
			s->p++;
		ok = s->p > ret->p;
	}
	ret->end = s->p;
	return ok;
}

/* Move S behind C, which comes next. */
static bool take_char(struct span *s, char c)
{
	skip_space(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static bool is_text(struct span value, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(value.end - value.p) == n + 2 && *value.p == '"' &&
	       memcmp(value.p + 1, text, n) == 0;
}

/* The value of KEY in the map OBJECT, the last if there are several. False: there is none. */
static bool member(struct span object, const char *key, struct span *ret)
{
	struct span name, value;
	bool found = false;

	if (!take_char(&object, '{'))
		return false;
	do {
		if (!take_value(&object, &name) || !take_char(&object, ':') ||
		    !take_value(&object, &value))
			return found;
		if (is_text(name, key)) {
			*ret = value;
			found = true;
		}
	} while (take_char(&object, ','));
	return found;
}

static int read_version(struct span object, char **ret)
{
	struct span metadata, version;
	size_t n;

	if (!member(object, "metadata", &metadata) ||
	    !member(metadata, "resourceVersion", &version) || *version.p != '"')
		return -EINVAL;
	n = (size_t)(version.end - version.p) - 2;
	if (n == 0 || memchr(version.p, '\\', n + 1))
		return -EINVAL;
	*ret = strndup(version.p + 1, n);
	return *ret ? 0 : -ENOMEM;
}

/* The code of the Status of an ERROR. */
static int read_code(const char *status)
{
	struct json_object *o cleanup_json = spec_tree_parse(status), *code;

	if (!json_object_is_type(o, json_type_object) ||
	    !json_object_object_get_ex(o, "code", &code))
		return 0;
	return json_object_get_int(code);
}

static int read_type(struct span type, enum spec_event_type *ret)
{
	for (size_t i = 0; i < array_size(type_names); i++) {
		if (is_text(type, type_names[i])) {
			*ret = (enum spec_event_type)i;
			return 0;
		}
	}
	return -EINVAL;
}

int spec_event_parse(const char *json, size_t len, struct spec_event *ret)
{
	struct span whole = {json, json + len}, type, object;
	struct spec_event e = {0};
	int err = -EINVAL;

	*ret = e;
	if (!member(whole, "type", &type) || !member(whole, "object", &object) ||
	    *object.p != '{' || read_type(type, &e.type) < 0)
		return -EINVAL;
	e.len = (size_t)(object.end - object.p);
	e.object = strndup(object.p, e.len);
	if (!e.object)
		return -ENOMEM;
	if (strlen(e.object) != e.len)
		err = -EINVAL; /* a NUL */
	else if (e.type == SPEC_EVENT_ERROR) {
		e.code = read_code(e.object);
		e.resource_version = strdup("");
		err = e.resource_version ? 0 : -ENOMEM;
	} else {
		err = read_version(object, &e.resource_version);
	}
	if (err)
		spec_event_clear(&e);
	*ret = e;
	return err;
}

void spec_event_clear(struct spec_event *e)
{
	free(e->resource_version);
	free(e->object);
	*e = (struct spec_event){0};
}
