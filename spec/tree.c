/* SPDX-License-Identifier: MIT */
/*
 * Making values of a JSON tree, with the check for memory at its end.
 */
#include "spec/tree.h"

#include "spec/limits.h"

/* Deeper than any document, within an object around it. */
#define MAX_DEPTH (2 * SPEC_MAX_DEPTH)

static struct json_object *made(struct spec_tree *t, struct json_object *value)
{
	if (!value)
		t->failed = true;
	return value;
}

struct json_object *spec_tree_map(struct spec_tree *t)
{
	return made(t, json_object_new_object());
}

struct json_object *spec_tree_list(struct spec_tree *t, size_t n)
{
	return made(t, json_object_new_array_ext(n > 0 ? (int)n : 1));
}

struct json_object *spec_tree_string(struct spec_tree *t, const char *text)
{
	return made(t, json_object_new_string(text));
}

struct json_object *spec_tree_format(struct spec_tree *t, const char *fmt, ...)
{
	char *text cleanup_free = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = base_vformat(fmt, ap);
	va_end(ap);
	if (!text) {
		return made(t, NULL);
	}
	return spec_tree_string(t, text);
}

struct json_object *spec_tree_int(struct spec_tree *t, int64_t value)
{
	return made(t, json_object_new_int64(value));
}

struct json_object *spec_tree_bool(struct spec_tree *t, bool value)
{
	return made(t, json_object_new_boolean(value));
}

void spec_tree_set(struct spec_tree *t, struct json_object *o, const char *key,
		   struct json_object *value)
{
	if (o && value && json_object_object_add(o, key, value) == 0)
		return;
	json_object_put(value);
	t->failed = true;
}

void spec_tree_add_all(struct spec_tree *t, struct json_object *o, struct json_object *from)
{
	if (!from) {
		t->failed = true;
		return;
	}
	json_object_object_foreach(from, key, value)
		spec_tree_add(t, o, key, json_object_get(value));
}

struct json_object *spec_tree_parse(const char *text)
{
	struct json_tokener *tok = json_tokener_new_ex(MAX_DEPTH);
	struct json_object *ret;

	if (!tok)
		return NULL;
	ret = json_tokener_parse_ex(tok, text, -1);
	json_tokener_free(tok);
	return ret;
}
