/* SPDX-License-Identifier: MIT */
/*
 * Paths are a subset of JSONPath: ".a.b", "['a/b']" and "[*]". There are no expressions, so the cost of a value is
 * linear in the object.
 */
#include "spec/kindfile/path.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/view/reader.h"

#define MAX_STEPS 16

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
 * Parse the step at *P: set *RET_KEY, and move *P after the step. Return the error, static; NULL if there is none.
 */
static const char *parse_step(struct arena *arena, const char **p, const char **ret_key)
{
	const char *from = *p, *end;

	if (strncmp(from, "[*]", 3) == 0) {
		*p = from + 3;
		return NULL;
	}
	if (strncmp(from, "['", 2) == 0) {
		from += 2;
		end = strstr(from, "']");
		if (!end || end == from)
			return "a key in brackets is written ['KEY']";
		*p = end + 2;
	} else if (*from == '.') {
		from++;
		end = from + strspn(from, NAME_BYTES);
		if (end == from)
			return "there is no name after a dot; a name has letters, digits, - and "
			       "_, and any other key is written ['KEY']";
		*p = end;
	} else {
		return "a step begins with a dot, [' or [*]";
	}
	*ret_key = arena_text(arena, mem_copy(from, (size_t)(end - from)));
	return NULL;
}

static int parse_path(struct arena *arena, const char *text, struct value *ret, char **ret_why)
{
	const char *p = text, *why = NULL;

	ret->from = FROM_PATH;
	ret->steps = arena_new(arena, MAX_STEPS, sizeof(*ret->steps));
	for (; *p; ret->n++) {
		const char *key = NULL;

		why = ret->n == MAX_STEPS ? "it has more than 16 steps"
					  : parse_step(arena, &p, &key);
		if (!why && !key && ret->many)
			why = "it has [*] twice";
		if (why)
			break;
		ret->many |= !key;
		ret->steps[ret->n] = key;
	}
	if (!why && !ret->steps[ret->n - 1])
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

/* Follow the first N steps of V. */
static const struct spec_value *follow(const struct value *v, size_t n, const struct spec_value *o)
{
	for (size_t i = 0; i < n && o; i++)
		o = spec_read_member(o, v->steps[i]);
	return o && o->type != SPEC_VALUE_NULL ? o : NULL;
}

const struct spec_value *value_at(const struct value *v, const struct spec_value *object)
{
	return v->from == FROM_PATH && !v->many ? follow(v, v->n, object) : NULL;
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
 * Return the number in a label or a constant, which consists of digits, or at a path; -1 if there
 * is none.
 */
static int number_of(const struct value *v, const struct spec_value *object)
{
	if (v->from != FROM_PATH)
		return spec_read_digits(value_text(v, object, ""));
	return spec_read_int(follow(v, v->n - 1, object), v->steps[v->n - 1], -1);
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
	const struct spec_value *list;
	size_t at = 0;
	int ret = none;

	if (!v->many)
		return number_of(v, object) < 0 ? none : number_of(v, object);
	while (v->steps[at])
		at++;
	list = follow(v, at, object);
	if (!list || list->type != SPEC_VALUE_LIST)
		return none;
	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct value rest = {.from = FROM_PATH,
					   .steps = v->steps + at + 1,
					   .n = v->n - at - 1};
		int n = number_of(&rest, spec_read_at(list, i));

		ret = max_of(ret, n < 0 ? each : n);
	}
	return ret;
}
