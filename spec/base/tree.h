/* SPDX-License-Identifier: MIT */
/*
 * Builds JSON values member by member. Unless noted otherwise, keys are literals and each is added
 * once. Memory does not fail (rule E4). Private to spec/.
 */
#pragma once

#include <json-c/json.h>

#include "spec/base/mem.h"

struct spec_value;

define_cleanup(spec_tree_put, struct json_object *, json_object_put)
#define cleanup_json cleanup(spec_tree_put)

/* Add VALUE, which is taken over; NULL is JSON's null. Return it, borrowed. */
static inline struct json_object *spec_tree_add(struct json_object *o, const char *key,
						struct json_object *value)
{
	const unsigned flags = JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT;

	if (json_object_object_add_ex(o, key, value, flags) != 0)
		mem_out();
	return value;
}

/* Append VALUE, which is taken over, to the list LIST. Return it, borrowed. */
static inline struct json_object *spec_tree_append(struct json_object *list,
						   struct json_object *value)
{
	if (json_object_array_add(list, value) != 0)
		mem_out();
	return value;
}

/* Create values; a list has capacity for N. */
struct json_object *spec_tree_map(void);
struct json_object *spec_tree_list(size_t n);
struct json_object *spec_tree_string(const char *text);
struct json_object *spec_tree_bytes(const char *text, size_t len);
struct json_object *spec_tree_format(const char *fmt, ...) printf_like(1, 2);
struct json_object *spec_tree_int(int64_t value);
struct json_object *spec_tree_uint(uint64_t value);
struct json_object *spec_tree_double(double value);
struct json_object *spec_tree_bool(bool value);

/* Add TEXT, or null if it is NULL. */
static inline void spec_tree_text(struct json_object *o, const char *key, const char *text)
{
	spec_tree_add(o, key, text ? spec_tree_string(text) : NULL);
}

static inline void spec_tree_number(struct json_object *o, const char *key, int64_t number)
{
	spec_tree_add(o, key, spec_tree_int(number));
}

/* Add NUMBER, or null if it is NONE. */
static inline void spec_tree_number_or(struct json_object *o, const char *key, int64_t number,
				       int64_t none)
{
	spec_tree_add(o, key, number == none ? NULL : spec_tree_int(number));
}

/*
 * Return the integer TEXT of JSON or YAML as a JSON value: a double if it does not fit in 64 bits,
 * as JSON readers parse it; a string if it is too large for a double.
 */
struct json_object *spec_tree_decimal(const char *text);

/*
 * Write a double as the shortest decimal that reads back as the same value, in a form that is a
 * float in JSON, YAML 1.1 and 1.2 ("0.1", "2.0", "1.0e+22"). RET has 32 bytes.
 */
void spec_tree_double_text(double value, char ret[32]);

/* Return a tree that is a copy of V; NULL if V is null. */
struct json_object *spec_tree_of(const struct spec_value *v);
/* Return a tree of JSON text; NULL if the text is null, or not JSON (value.h). */
struct json_object *spec_tree_parse(const char *text);

/* Return VALUE as JSON text on one line without spaces, malloc'ed. */
char *spec_tree_print(struct json_object *value);

/* Like spec_tree_add, but KEY is copied, and O may have it already. */
void spec_tree_set(struct json_object *o, const char *key, struct json_object *value);

/*
 * Return the value at PATH in VALUE (may be NULL), borrowed; NULL if it does not exist. PATH is
 * keys joined by dots; "" is VALUE itself.
 */
struct json_object *spec_tree_find(struct json_object *value, const char *path);

/* Add all members of FROM to O. FROM's keys are literals; both trees share the values. */
void spec_tree_add_all(struct json_object *o, struct json_object *from);
