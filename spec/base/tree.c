/* SPDX-License-Identifier: MIT */
/* Builds JSON trees with json-c. */
#include "spec/base/tree.h"

#include <errno.h>
#include <math.h>

#include "spec/base/mem.h"
#include "spec/base/value.h"

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

struct json_object *spec_tree_bytes(const char *text, size_t len)
{
	return made(json_object_new_string_len(text, (int)len));
}

struct json_object *spec_tree_format(const char *fmt, ...)
{
	cleanup_free char *text = text_of_args(fmt);

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

struct json_object *spec_tree_uint(uint64_t value)
{
	return made(json_object_new_uint64(value));
}

void spec_tree_double_text(double value, char ret[32])
{
	char *e;
	size_t len;

	if (!isfinite(value)) {
		snprintf(ret, 32, "%s", isnan(value) ? ".nan" : value < 0 ? "-.inf" : ".inf");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		len = (size_t)snprintf(ret, 32, "%.*g", digits, value);
		if (strtod(ret, NULL) == value)
			break;
	}
	if (strchr(ret, '.'))
		return;
	e = strchr(ret, 'e');
	if (!e)
		e = ret + len;
	memmove(e + 2, e, strlen(e) + 1);
	e[0] = '.';
	e[1] = '0';
}

struct json_object *spec_tree_double(double value)
{
	char text[32];

	spec_tree_double_text(value, text);
	return made(json_object_new_double_s(value, text));
}

struct json_object *spec_tree_decimal(const char *text)
{
	bool whole = !strpbrk(text, ".eE");
	int64_t value;
	uint64_t big;
	double d;

	errno = 0;
	value = strtoll(text, NULL, 10);
	if (whole && errno == 0)
		return spec_tree_int(value);
	errno = 0;
	big = strtoull(text, NULL, 10);
	if (whole && *text != '-' && errno == 0)
		return spec_tree_uint(big);
	d = strtod(text, NULL);
	return isfinite(d) ? spec_tree_double(d) : spec_tree_string(text);
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

struct json_object *spec_tree_copy_map(struct json_object *map)
{
	struct json_object *ret = spec_tree_map();

	if (!map)
		return ret;
	json_object_object_foreach(map, key, value)
		if (value)
			spec_tree_set(ret, key, json_object_get(value));
	return ret;
}

struct json_object *spec_tree_of(const struct spec_value *v)
{
	struct json_object *ret;

	switch (v->type) {
	case SPEC_VALUE_MAP:
		ret = spec_tree_map();
		for (size_t i = 0; i < v->n; i++)
			spec_tree_set(ret, v->items[i].key, spec_tree_of(&v->items[i]));
		return ret;
	case SPEC_VALUE_LIST:
		ret = spec_tree_list(v->n);
		for (size_t i = 0; i < v->n; i++)
			spec_tree_append(ret, spec_tree_of(&v->items[i]));
		return ret;
	case SPEC_VALUE_STRING:
		return spec_tree_bytes(v->text, v->n);
	case SPEC_VALUE_NUMBER:
		return spec_tree_decimal(v->text);
	case SPEC_VALUE_BOOL:
		return spec_tree_bool(*v->text == 't');
	default:
		return NULL;
	}
}

struct json_object *spec_tree_parse(const char *text)
{
	cleanup_free struct spec_value *value = NULL;

	return spec_value_parse(text, strlen(text), &value) < 0 ? NULL : spec_tree_of(value);
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
