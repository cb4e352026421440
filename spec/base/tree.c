/* SPDX-License-Identifier: MIT */
/* Making values of a JSON tree. */
#include "spec/base/tree.h"

#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"

/* Deeper than any document, within an object around it. */
#define MAX_DEPTH (2 * SPEC_MAX_DEPTH)

static struct json_object *made(struct json_object *value)
{
	if (!value)
		mem_out();
	return value;
}

struct json_object *spec_tree_map(void)
{
	return made(json_object_new_object());
}

struct json_object *spec_tree_list(size_t n)
{
	return made(json_object_new_array_ext(n > 0 ? (int)n : 1));
}

struct json_object *spec_tree_string(const char *text)
{
	return made(json_object_new_string(text));
}

struct json_object *spec_tree_format(const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = text_vprint(fmt, ap);
	va_end(ap);
	return spec_tree_string(text);
}

struct json_object *spec_tree_int(int64_t value)
{
	return made(json_object_new_int64(value));
}

struct json_object *spec_tree_bool(bool value)
{
	return made(json_object_new_boolean(value));
}

void spec_tree_set(struct json_object *o, const char *key, struct json_object *value)
{
	if (json_object_object_add(o, key, value) != 0)
		mem_out();
}

void spec_tree_add_all(struct json_object *o, struct json_object *from)
{
	json_object_object_foreach(from, key, value)
		spec_tree_add(o, key, json_object_get(value));
}

/* With FLAGS of json-c, nested less deep than DEPTH; NULL: it is null, or an error. */
static struct json_object *parse(const char *json, int len, int depth, int flags)
{
	struct json_tokener *tok = json_tokener_new_ex(depth);
	struct json_object *o;

	if (!tok)
		mem_out();
	json_tokener_set_flags(tok, flags);
	o = json_tokener_parse_ex(tok, json, len);
	json_tokener_free(tok);
	return o;
}

struct json_object *spec_tree_parse(const char *text)
{
	return parse(text, -1, MAX_DEPTH, 0);
}

int spec_tree_parse_map(const char *json, size_t len, struct json_object **ret)
{
	struct json_object *o = NULL;

	/* A splitter lets through what is nested less deep than this. */
	if (len <= SPEC_MAX_WATCHED)
		o = parse(json, (int)len, MAX_DEPTH + 2, JSON_TOKENER_STRICT);
	if (json_object_is_type(o, json_type_object)) {
		*ret = o;
		return 0;
	}
	json_object_put(o);
	return -EINVAL;
}

char *spec_tree_print(struct json_object *value)
{
	size_t len;
	const char *text = json_object_to_json_string_length(
		value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);

	if (!text)
		mem_out();
	return mem_copy(text, len);
}

struct json_object *spec_tree_find(struct json_object *value, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, ".");
		cleanup_free char *key = mem_copy(path, n);

		value = json_object_object_get(value, key);
		path += n + (path[n] == '.');
	}
	return value;
}
