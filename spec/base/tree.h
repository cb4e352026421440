/* SPDX-License-Identifier: MIT */
/*
 * Builds JSON values member by member. Unless a comment allows other keys, KEY must be a string
 * literal, and O must not have a member KEY yet. The functions never fail (rule E4). Private to
 * spec/.
 */
#pragma once

#include <json-c/json.h>

#include "spec/base/mem.h"

struct spec_value;

define_cleanup(spec_tree_put, struct json_object *, json_object_put)
#define cleanup_json cleanup(spec_tree_put)

/* Add VALUE to O, which takes ownership of it. NULL adds JSON's null. Return VALUE, borrowed. */
static inline struct json_object *spec_tree_add(struct json_object *o, const char *key,
						struct json_object *value)
{
	const unsigned flags = JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT;

	if (json_object_object_add_ex(o, key, value, flags) != 0)
		mem_out();
	return value;
}

/* Append VALUE to LIST, which takes ownership of it. Return VALUE, borrowed. */
static inline struct json_object *spec_tree_append(struct json_object *list,
						   struct json_object *value)
{
	if (json_object_array_add(list, value) != 0)
		mem_out();
	return value;
}

/* Each of these functions creates a json-c value. A list gets capacity for N items. */
struct json_object *spec_tree_map(void);
struct json_object *spec_tree_list(size_t n);
struct json_object *spec_tree_string(const char *text);
struct json_object *spec_tree_bytes(const char *text, size_t len);
struct json_object *spec_tree_format(const char *fmt, ...) printf_like(1, 2);
struct json_object *spec_tree_int(int64_t value);
struct json_object *spec_tree_uint(uint64_t value);
struct json_object *spec_tree_double(double value);
struct json_object *spec_tree_bool(bool value);

/* Add TEXT, or JSON's null if TEXT is NULL. */
static inline void spec_tree_text(struct json_object *o, const char *key, const char *text)
{
	spec_tree_add(o, key, text ? spec_tree_string(text) : NULL);
}

static inline void spec_tree_number(struct json_object *o, const char *key, int64_t number)
{
	spec_tree_add(o, key, spec_tree_int(number));
}

/* Add NUMBER, or JSON's null if NUMBER equals NONE. */
static inline void spec_tree_number_or(struct json_object *o, const char *key, int64_t number,
				       int64_t none)
{
	spec_tree_add(o, key, number == none ? NULL : spec_tree_int(number));
}

/*
 * Return TEXT, a number in JSON or YAML, as a JSON value: an integer if possible, or a double, as
 * JSON readers do, or a string if it is too large for a double.
 */
struct json_object *spec_tree_decimal(const char *text);

/*
 * Write a double as the shortest decimal number that is parsed as the same double. The form ("0.1",
 * "2.0", "1.0e+22") is a float in JSON, YAML 1.1 and YAML 1.2.
 */
void spec_tree_double_text(double value, char ret[32]);

/* Convert V to a new json-c value, and return it. Return NULL if V is JSON's null. */
struct json_object *spec_tree_of(const struct spec_value *v);
/*
 * Parse JSON text and return it as a json-c value. Return NULL if the text is JSON's null, or if it
 * is not JSON (value.h).
 */
struct json_object *spec_tree_parse(const char *text);

/* Return VALUE as JSON text on one line without spaces, malloc'ed. */
char *spec_tree_print(struct json_object *value);

/* Like spec_tree_add, but copy KEY, and replace the member KEY if O has one. */
void spec_tree_set(struct json_object *o, const char *key, struct json_object *value);

/*
 * Return the value at PATH in VALUE, borrowed; NULL if there is none. PATH has the keys that lead
 * to the value, joined by dots. The path "" leads to VALUE itself. VALUE may be NULL.
 */
struct json_object *spec_tree_find(struct json_object *value, const char *path);

/*
 * Return a new map that shares MAP's values. Leave out members that are null, which count as
 * absent. MAP may be NULL.
 */
struct json_object *spec_tree_copy_map(struct json_object *map);
/* Add all members of FROM, whose keys must be string literals, to O. Both then share the values. */
void spec_tree_add_all(struct json_object *o, struct json_object *from);
