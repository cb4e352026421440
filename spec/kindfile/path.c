/* SPDX-License-Identifier: MIT */
/*
 * Paths are a subset of JSONPath: ".a.b", "['a/b']" and "[*]". They have no expressions, so finding
 * a value takes time linear in the size of the object.
 */
#include "spec/kindfile/path.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/view/reader.h"

void *arena_new(struct arena *arena, size_t n, size_t size)
{
	arena->v = mem_grow(arena->v, arena->n + 1, sizeof(*arena->v));
	return arena->v[arena->n++] = mem_zero_n(n, size);
}

const char *arena_text(struct arena *arena, char *text)
{
	arena->v = mem_grow(arena->v, arena->n + 1, sizeof(*arena->v));
	return arena->v[arena->n++] = text;
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
 * Copy the key of the step at *P to *TO, and move both after it; the key of [*] is empty. Return
 * the error (static), or NULL.
 */
static const char *parse_step(const char **p, char **to)
{
	const char *from = *p, *end = from + 3;
	size_t n = 0;

	if (strncmp(from, "['", 2) == 0) {
		from += 2;
		end = strstr(from, "']");
		if (!end || end == from)
			return "a key in brackets is written ['KEY']";
		n = (size_t)(end - from);
		end += 2;
	} else if (*from == '.') {
		n = strspn(++from, NAME_BYTES);
		end = from + n;
		if (n == 0)
			return "there is no name after a dot; a name has letters, digits, - and "
			       "_, and any other key is written ['KEY']";
	} else if (strncmp(from, "[*]", 3) != 0) {
		return "a step begins with a dot, [' or [*]";
	}
	memcpy(*to, from, n);
	(*to)[n] = '\0';
	*to += n + 1;
	*p = end;
	return NULL;
}

static int parse_path(struct arena *arena, const char *text, struct value *ret, char **ret_why)
{
	const char *p = text, *why = NULL;
	/* A step has at least as many bytes as its key and a NUL. */
	char *to = mem_zero(strlen(text) + 1);

	ret->from = FROM_PATH;
	ret->steps = arena_text(arena, to);
	for (; *p && !why; ret->n++) {
		ret->last = to;
		why = parse_step(&p, &to);
		if (!why && !*ret->last && ret->many)
			why = "it has [*] twice";
		ret->many |= !*ret->last;
	}
	if (!why && !*ret->last)
		why = "it has to end with a name";
	if (why)
		*ret_why = text_print("'%s' is not a path: %s", text, why);
	return why ? -EINVAL : 0;
}

int value_parse(struct arena *arena, const char *text, struct value *ret, char **ret_why)
{
	*ret = (struct value){.text = arena_text(arena, text_copy(text))};
	if (*text == '.' || *text == '[')
		return parse_path(arena, text, ret, ret_why);
	if (streq(text, "key") || streq(text, "name"))
		ret->from = *text == 'k' ? FROM_KEY : FROM_NAME;
	else if (strncmp(text, "label ", 6) == 0 || strncmp(text, "annotation ", 11) == 0)
		ret->from = *text == 'l' ? FROM_LABEL : FROM_ANNOTATION;
	if (ret->from == FROM_LABEL || ret->from == FROM_ANNOTATION)
		ret->text = strchr(ret->text, ' ') + 1;
	if (*ret->text)
		return 0;
	*ret_why = text_copy("is empty");
	return -EINVAL;
}

/* --- evaluating --- */

static const char *next(const char *step)
{
	return step + strlen(step) + 1;
}

/*
 * Return the value whose member is the last step of V; NULL if it does not exist, or V is not a
 * path.
 */
static const struct spec_value *parent(const struct value *v, const struct spec_value *o)
{
	for (const char *step = v->steps; step != v->last; step = next(step))
		o = spec_read_member(o, step);
	return v->from == FROM_PATH ? o : NULL;
}

const struct spec_value *value_at(const struct value *v, const struct spec_value *object)
{
	const struct spec_value *at = v->many ? NULL : spec_read_member(parent(v, object), v->last);

	return at && at->type != SPEC_VALUE_NULL ? at : NULL;
}

int64_t value_time(const struct value *v, const struct spec_value *object)
{
	return spec_read_time(parent(v, object), v->last);
}

const char *value_text(const struct value *v, const struct spec_value *object, const char *key)
{
	const struct spec_value *at;
	const char *dash;

	switch (v->from) {
	case FROM_CONSTANT:
		return v->text;
	case FROM_KEY:
		return key;
	case FROM_NAME:
		dash = strrchr(spec_read_text(spec_read_map(object, "metadata"), "name"), '-');
		return dash ? dash + 1 : "";
	case FROM_LABEL:
		return spec_read_text(spec_view_labels(object), v->text);
	case FROM_ANNOTATION:
		return spec_read_text(spec_read_map(spec_read_map(object, "metadata"),
						    "annotations"),
				      v->text);
	case FROM_PATH:
		break;
	}
	at = value_at(v, object);
	return at && at->type != SPEC_VALUE_MAP && at->type != SPEC_VALUE_LIST ? at->text : "";
}

const char *values_text(const struct values *v, const struct spec_value *object, const char *key)
{
	const char *ret = "";

	for (size_t i = 0; i < v->n && !*ret; i++)
		ret = value_text(&v->v[i], object, key);
	return ret;
}

/*
 * Return the number in a label or a constant, which must have only digits, or at a path; -1 if it
 * has none.
 */
static int number_of(const struct value *v, const struct spec_value *object)
{
	return v->from == FROM_PATH ? spec_read_int(parent(v, object), v->last, -1)
				    : spec_read_digits(value_text(v, object, ""));
}

int values_number(const struct values *v, const struct spec_value *object, int none)
{
	int ret = -1;

	for (size_t i = 0; i < v->n && ret < 0; i++)
		ret = number_of(&v->v[i], object);
	return ret < 0 ? none : ret;
}

int value_largest(const struct value *v, const struct spec_value *object, int each, int none)
{
	struct value rest = *v;
	int ret = none;

	if (!v->many)
		return values_number(&(struct values){&rest, 1}, object, none);
	for (; *rest.steps; rest.steps = next(rest.steps))
		object = spec_read_member(object, rest.steps);
	rest.steps = next(rest.steps);
	if (!object || object->type != SPEC_VALUE_LIST)
		return none;
	for (size_t i = 0; i < spec_read_count(object); i++) {
		int n = number_of(&rest, spec_read_at(object, i));

		ret = max_of(ret, n < 0 ? each : n);
	}
	return ret;
}
