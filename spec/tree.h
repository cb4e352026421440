/* SPDX-License-Identifier: MIT */
/*
 * Building JSON values member by member. Unless said otherwise, keys are literals and each is added
 * once. When memory is short a member is missing and T->failed is set, to be checked once at the
 * end: every function takes a NULL that another has made. Private to spec/.
 */
#ifndef KXFS_SPEC_TREE_H
#define KXFS_SPEC_TREE_H

#include <json-c/json.h>

#include "spec/base.h"

struct spec_tree {
	bool failed;
};

static inline void spec_tree_put(struct json_object **o)
{
	json_object_put(*o);
}
#define cleanup_json cleanup(spec_tree_put)

/* Add VALUE, which is taken over; NULL counts as a failure. Returns it, borrowed. */
static inline struct json_object *spec_tree_add(struct spec_tree *t, struct json_object *o,
						const char *key, struct json_object *value)
{
	const unsigned flags = JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT;

	if (o && value && json_object_object_add_ex(o, key, value, flags) == 0)
		return value;
	json_object_put(value);
	t->failed = true;
	return NULL;
}

/* Append VALUE, which is taken over, to the list LIST. Returns it, borrowed. */
static inline struct json_object *spec_tree_append(struct spec_tree *t, struct json_object *list,
						   struct json_object *value)
{
	if (list && value && json_object_array_add(list, value) == 0)
		return value;
	json_object_put(value);
	t->failed = true;
	return NULL;
}

static inline void spec_tree_null(struct spec_tree *t, struct json_object *o, const char *key)
{
	if (!o || json_object_object_add(o, key, NULL) != 0)
		t->failed = true;
}

static inline void spec_tree_text(struct spec_tree *t, struct json_object *o, const char *key,
				  const char *text)
{
	spec_tree_add(t, o, key, json_object_new_string(text));
}

static inline void spec_tree_number(struct spec_tree *t, struct json_object *o, const char *key,
				    int64_t number)
{
	spec_tree_add(t, o, key, json_object_new_int64(number));
}

/* Values; NULL (and T->failed): no memory. A list has room for N. */
struct json_object *spec_tree_map(struct spec_tree *t);
struct json_object *spec_tree_list(struct spec_tree *t, size_t n);
struct json_object *spec_tree_string(struct spec_tree *t, const char *text);
struct json_object *spec_tree_format(struct spec_tree *t, const char *fmt, ...) printf_like(2, 3);
struct json_object *spec_tree_int(struct spec_tree *t, int64_t value);
struct json_object *spec_tree_bool(struct spec_tree *t, bool value);

/* A value from JSON text of our own making, nested as documents may be; NULL: no memory. */
struct json_object *spec_tree_parse(const char *text);

/* As spec_tree_add, but KEY is copied, and O may have it already. */
void spec_tree_set(struct spec_tree *t, struct json_object *o, const char *key,
		   struct json_object *value);

/* Add all members of FROM, whose keys are literals; the values are shared. */
void spec_tree_add_all(struct spec_tree *t, struct json_object *o, struct json_object *from);

#endif
