/* SPDX-License-Identifier: MIT */
/*
 * Parses values and finds them in objects. A path is a subset of JSONPath: ".a.b" and "['a/b']".
 */
#include "spec/kindfile/path.h"

#include "spec/base/mem.h"

void *arena_own(struct arena *arena, void *p)
{
	arena->v = mem_grow(arena->v, arena->n + 1, sizeof(*arena->v));
	return arena->v[arena->n++] = p;
}

void arena_clear(struct arena *arena)
{
	for (size_t i = 0; i < arena->n; i++)
		free(arena->v[i]);
	free(arena->v);
	*arena = (struct arena){0};
}

/* --- parsing --- */

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/*
 * Parse the step of a path at *P, and copy its key to *TO. Advance *P past the step, and *TO past
 * the copy. Return NULL, or the error (static).
 */
static const char *parse_step(const char **p, char **to)
{
	const char *from = *p, *end;
	size_t n;

	if (strncmp(from, "['", 2) == 0) {
		from += 2;
		end = strstr(from, "']");
		if (!end || end == from)
			return "write a key in brackets as ['KEY']";
		n = (size_t)(end - from);
		end += 2;
	} else if (*from == '.') {
		n = strspn(++from, NAME_BYTES);
		end = from + n;
		if (n == 0)
			return "a dot has no name after it. A name has only letters, digits, - and "
			       "_; write any other key as ['KEY']";
	} else {
		return "each part of a path must begin with a dot or ['";
	}
	memcpy(*to, from, n);
	(*to)[n] = '\0';
	*to += n + 1;
	*p = end;
	return NULL;
}

/* Parse the path P into V. TO has space for all keys. Return NULL, or the error (static). */
static const char *parse_path(struct value *v, const char *p, char *to)
{
	const char *why = *p ? NULL : "it is empty";

	v->from = FROM_PATH;
	v->steps = to;
	while (*p && !why) {
		v->last = to;
		why = parse_step(&p, &to);
	}
	return why;
}

char *value_parse(struct arena *arena, const char *text, struct value *ret)
{
	cleanup_free char *path = NULL;
	const char *why;

	*ret = (struct value){.text = arena_own(arena, text_copy(text))};
	if (streq(text, "key"))
		ret->from = FROM_KEY;
	else if (streq(text, "name"))
		ret->from = FROM_NAME;
	else if (strncmp(text, "label ", 6) == 0)
		path = text_print(".metadata.labels['%s']", text + 6);
	else if (strncmp(text, "annotation ", 11) == 0)
		path = text_print(".metadata.annotations['%s']", text + 11);
	else if (!*text || *text == '.' || *text == '[')
		path = text_copy(text);
	if (!path)
		return NULL;
	/* A step is not shorter than its key and a NUL, so there is space for all keys. */
	why = parse_path(ret, path, arena_own(arena, mem_zero(strlen(path) + 1)));
	return why ? text_print("'%s' is not a path: %s", text, why) : NULL;
}

/* --- evaluating --- */

static const char *next(const char *step)
{
	return step + strlen(step) + 1;
}

/* Return the map that should have the last key of the path V, or NULL. It may lack this key. */
static const struct spec_value *parent(const struct value *v, const struct spec_value *o)
{
	for (const char *step = v->steps; step != v->last; step = next(step))
		o = spec_read_member(o, step);
	return v->from == FROM_PATH ? o : NULL;
}

const struct spec_value *value_at(const struct value *v, const struct spec_value *object)
{
	const struct spec_value *at = spec_read_member(parent(v, object), v->last);

	return at && at->type != SPEC_VALUE_NULL ? at : NULL;
}

int64_t value_time(const struct value *v, const struct spec_value *object)
{
	return spec_read_time(parent(v, object), v->last);
}

const char *value_text(const struct value *v, const struct spec_value *object)
{
	const struct spec_value *at;
	const char *dash;

	switch (v->from) {
	case FROM_CONSTANT:
		return v->text ? v->text : "";
	case FROM_KEY:
		return object->key;
	case FROM_NAME:
		dash = strrchr(spec_read_text(spec_read_map(object, "metadata"), "name"), '-');
		return dash ? dash + 1 : "";
	case FROM_PATH:
		break;
	}
	at = value_at(v, object);
	return at ? at->text : "";
}

const char *values_text(const struct values *v, const struct spec_value *object)
{
	const char *ret = "";

	for (size_t i = 0; i < v->n && !*ret; i++)
		ret = value_text(&v->v[i], object);
	return ret;
}

int values_number(const struct values *v, const struct spec_value *object, int none)
{
	int ret = -1;

	for (size_t i = 0; i < v->n && ret < 0; i++)
		ret = spec_read_digits(value_text(&v->v[i], object));
	return ret < 0 ? none : ret;
}
