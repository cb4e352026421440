/* SPDX-License-Identifier: MIT */
/*
 * Builds JSON values. Unless a comment allows other keys, KEY must be a string literal, and O must
 * not have a member KEY yet. The functions never fail (rule E4). Private to spec/.
 */
#pragma once

#include <json-c/json.h>

#include "spec/base/mem.h"

struct spec_value;

define_cleanup(spec_tree_put, struct json_object *, json_object_put)
#define cleanup_json cleanup(spec_tree_put)

/* Add VALUE to O. Take ownership of VALUE, and return it, borrowed. NULL is JSON's null. */
static inline struct json_object *spec_tree_add(struct json_object *o, const char *key,
						struct json_object *value)
{
	const unsigned flags = JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT;

	if (json_object_object_add_ex(o, key, value, flags) != 0)
		mem_out();
	return value;
}

/* Append VALUE to LIST. Take ownership of VALUE, and return it, borrowed. */
static inline struct json_object *spec_tree_append(struct json_object *list,
						   struct json_object *value)
{
	if (json_object_array_add(list, value) != 0)
		mem_out();
	return value;
}

/* Create a json-c value. A list gets capacity for N items. */
struct json_object *spec_tree_map(void);
struct json_object *spec_tree_list(size_t n);
struct json_object *spec_tree_string(const char *text);
struct json_object *spec_tree_bytes(const char *text, size_t len);
struct json_object *spec_tree_format(const char *fmt, ...) printf_like(1, 2);
struct json_object *spec_tree_int(int64_t value);
struct json_object *spec_tree_uint(uint64_t value);
struct json_object *spec_tree_double(double value);
struct json_object *spec_tree_bool(bool value);

/* Add TEXT as a string; JSON's null if TEXT is NULL. */
static inline void spec_tree_text(struct json_object *o, const char *key, const char *text)
{
	spec_tree_add(o, key, text ? spec_tree_string(text) : NULL);
}

static inline void spec_tree_number(struct json_object *o, const char *key, int64_t number)
{
	spec_tree_add(o, key, spec_tree_int(number));
}

/* Add NUMBER; JSON's null if NUMBER equals NONE. */
static inline void spec_tree_number_or(struct json_object *o, const char *key, int64_t number,
				       int64_t none)
{
	spec_tree_add(o, key, number == none ? NULL : spec_tree_int(number));
}

/*
 * Return the decimal number TEXT as an integer if possible, else as a double. If it is too large
 * for a double, return TEXT as a string.
 */
struct json_object *spec_tree_decimal(const char *text);

/*
 * Write the shortest decimal number that parsers read as VALUE. It always has a decimal point
 * ("2.0"), so that JSON and YAML parsers read it as a float.
 */
void spec_tree_double_text(double value, char ret[32]);

/* Return V as a new json-c value; NULL if V is JSON's null. */
struct json_object *spec_tree_of(const struct spec_value *v);
/* Return the value of the JSON text; NULL if it is JSON's null, or is not JSON. */
struct json_object *spec_tree_parse(const char *text);

/* Return VALUE as JSON on one line without spaces, malloc'ed. */
char *spec_tree_print(struct json_object *value);

/* Like spec_tree_add, but copy KEY, and replace an existing member. */
void spec_tree_set(struct json_object *o, const char *key, struct json_object *value);

/*
 * Return the value at PATH in VALUE, borrowed; NULL if it does not exist. PATH is like "a.b"; ""
 * means VALUE itself. VALUE may be NULL.
 */
struct json_object *spec_tree_find(struct json_object *value, const char *path);

/*
 * Return a new map with the members of MAP, except those that are null. Both maps share the values.
 * MAP may be NULL.
 */
struct json_object *spec_tree_copy_map(struct json_object *map);
/* Add all members of FROM to O. All keys must be string literals. Both maps share the values. */
void spec_tree_add_all(struct json_object *o, struct json_object *from);
