/* SPDX-License-Identifier: MIT */
/* Any bytes as JSON from a server. What spec/ reads must be what json-c reads. */
#include "fuzz.h"

#include "spec/base/tree.h"
#include "spec/base/value.h"

static void check(const struct spec_value *v, struct json_object *want);

/* Each accessor accepts values of its own type, and no others. */
static void check_members(const struct spec_value *map)
{
	for (size_t i = 0; i < map->n; i++) {
		const char *key = map->items[i].key;
		const struct spec_value *v = spec_read_member(map, key);
		char *word = NULL, *message = NULL;

		assert(v && (spec_read_map(map, key) == v) == (v->type == SPEC_VALUE_MAP));
		assert((spec_read_list(map, key) == v) == (v->type == SPEC_VALUE_LIST));
		assert(streq(spec_read_text(map, key),
			     v->type == SPEC_VALUE_STRING ? v->text : ""));
		assert(!*spec_read_word(map, key) || streq(spec_read_word(map, key), v->text));
		assert(spec_read_int(map, key, -1) >= -1 && spec_read_time(map, key) >= 0);
		assert(spec_read_flag(map, key, true) || v->type == SPEC_VALUE_BOOL);
		assert(!spec_read_bool(map, key) || v->type == SPEC_VALUE_BOOL);
		v = spec_read_list(map, key);
		assert(!spec_read_at(v, spec_read_count(v)));
		v = spec_read_item(v, key, "x");
		assert(!v || streq(spec_read_text(v, key), "x"));
		spec_read_copy_word(&word, map, key);
		spec_read_copy_message(&message, map);
		assert(strlen(word) <= READ_MAX_WORD && strlen(message) <= READ_MAX_MESSAGE);
		spec_unset(&word, &message);
	}
}

/* If a key occurs twice, json-c keeps the last value. */
static void check_map(const struct spec_value *v, struct json_object *want)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++) {
		struct json_object *its;
		bool last = true;

		assert(json_object_object_get_ex(want, v->items[i].key, &its));
		for (size_t k = i + 1; k < v->n; k++)
			last &= !streq(v->items[k].key, v->items[i].key);
		if (last)
			check(&v->items[i], its);
		n += last;
	}
	assert(n == (size_t)json_object_object_length(want));
	check_members(v);
}

static void check(const struct spec_value *v, struct json_object *want)
{
	struct json_object *tree;

	switch (v->type) {
	case SPEC_VALUE_MAP:
		assert(json_object_is_type(want, json_type_object));
		check_map(v, want);
		break;
	case SPEC_VALUE_LIST:
		assert(json_object_is_type(want, json_type_array));
		assert(v->n == json_object_array_length(want));
		for (size_t i = 0; i < v->n; i++)
			check(&v->items[i], json_object_array_get_idx(want, i));
		break;
	case SPEC_VALUE_STRING:
		assert(json_object_is_type(want, json_type_string));
		assert(streq(v->text, json_object_get_string(want)));
		assert(v->n == (unsigned)json_object_get_string_len(want));
		break;
	case SPEC_VALUE_NUMBER:
		tree = spec_tree_of(v);
		/*
		 * In place of a number that is too large, json-c returns the largest one that it
		 * supports.
		 */
		assert(strlen(v->text) > 18 || json_object_is_type(tree, json_type_string) ||
		       json_object_equal(tree, want));
		json_object_put(tree);
		assert(json_object_is_type(want, json_type_int) ||
		       json_object_is_type(want, json_type_double));
		break;
	case SPEC_VALUE_BOOL:
		assert(json_object_is_type(want, json_type_boolean));
		assert(json_object_get_boolean(want) == streq(v->text, "true"));
		break;
	case SPEC_VALUE_NULL:
		assert(!want && streq(v->text, "null"));
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* No NUL follows the text, so that a sanitizer finds reads beyond its end. */
	char *text = malloc(size + !size);
	struct json_object *want;
	struct spec_value *v;

	assert(text);
	memcpy(text, data, size);
	if (spec_value_parse_map(text, size, &v) == 0) {
		want = fuzz_json_parse(text, size);
		check(v, want);
		json_object_put(want);
		free(v);
	}
	free(text);
	return 0;
}
