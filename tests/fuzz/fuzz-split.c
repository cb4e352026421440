/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a LIST or a watch, in any pieces. The first byte chooses: form, whether the environment
 * is dropped, and how the rest is cut. The pieces must not matter, and for what json-c reads as a whole
 * the objects must be those that json-c finds, without what is dropped.
 */
/* asserts are what this is for, in every kind of build */
#undef NDEBUG

#include "fuzz-json.h"
#include "spec/api/split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All objects, one a line. */
struct result {
	char *text;
	size_t len;
	size_t n;
	int err;
	char meta[256];
};

static int collect(void *data, const char *json, size_t len)
{
	struct result *r = data;

	assert(json[len] == '\0');
	r->text = realloc(r->text, r->len + len + 2);
	assert(r->text);
	memcpy(r->text + r->len, json, len);
	r->len += len;
	r->text[r->len++] = '\n';
	r->text[r->len] = '\0';
	r->n++;
	return 0;
}

static struct result split(const char *text, size_t len, uint8_t how, size_t piece)
{
	enum spec_split_form form = how & 1 ? SPEC_SPLIT_WATCH : SPEC_SPLIT_LIST;
	struct spec_list_meta meta = {"", ""};
	struct result r = {0};
	struct spec_split *s = spec_split_new(form, how & 2, collect, &r);

	assert(s);
	for (size_t at = 0; at < len && r.err == 0; at += piece) {
		size_t n = min_of(piece, len - at);
		char *copy = malloc(n);

		assert(copy);
		memcpy(copy, text + at, n);
		r.err = spec_split_feed(s, copy, n);
		free(copy);
	}
	assert(spec_split_end(s, &meta) == r.err || r.err == 0);
	r.err = spec_split_end(s, &meta);
	if (r.err == 0)
		snprintf(r.meta, sizeof(r.meta), "%s %s", meta.resource_version, meta.next);
	spec_split_free(s);
	return r;
}

static struct json_object *get(struct json_object *o, const char *key, enum json_type type)
{
	struct json_object *ret = NULL;

	if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &ret))
		return NULL;
	return json_object_is_type(ret, type) ? ret : NULL;
}

static void drop(struct json_object *object, bool env)
{
	static const char *const lists[] = {"containers", "initContainers", "ephemeralContainers"};
	struct json_object *metadata = get(object, "metadata", json_type_object);
	struct json_object *spec = get(object, "spec", json_type_object);

	if (metadata)
		json_object_object_del(metadata, "managedFields");
	for (size_t i = 0; env && i < array_size(lists); i++) {
		struct json_object *list = get(spec, lists[i], json_type_array);

		for (size_t k = 0; list && k < json_object_array_length(list); k++) {
			struct json_object *c = json_object_array_get_idx(list, k);

			if (json_object_is_type(c, json_type_object))
				json_object_object_del(c, "env");
		}
	}
}

/* The I-th line of R as a value, without what is dropped. */
static struct json_object *line(const struct result *r, size_t i, bool event, bool env)
{
	const char *at = r->text;
	struct json_object *ret;

	for (; i > 0; i--)
		at = strchr(at, '\n') + 1;
	ret = fuzz_json_parse(at, (size_t)(strchr(at, '\n') - at));
	if (ret)
		drop(event ? get(ret, "object", json_type_object) : ret, env);
	return ret;
}

static void compare(const char *text, size_t len, uint8_t how, const struct result *r)
{
	struct json_object *whole = fuzz_json_parse(text, len);
	struct json_object *items = get(whole, "items", json_type_array);
	bool env = how & 2;

	/* With a key twice, json-c keeps the last alone; with escapes, keys have two spellings. */
	if (r->err == 0 && how & 1 && r->n == 1 && whole) {
		struct json_object *mine = line(r, 0, true, env);

		drop(get(whole, "object", json_type_object), env);
		assert(fuzz_json_same(mine, whole));
		json_object_put(mine);
	} else if (r->err == 0 && !(how & 1) && items) {
		assert(r->n == json_object_array_length(items));
		for (size_t i = 0; i < r->n; i++) {
			struct json_object *mine = line(r, i, false, env);
			struct json_object *its = json_object_array_get_idx(items, i);

			drop(its, env);
			assert(fuzz_json_same(mine, its));
			json_object_put(mine);
		}
	}
	json_object_put(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct result whole, pieces;
	uint8_t how;

	if (size == 0)
		return 0;
	how = data[0];
	whole = split(text, size - 1, how, size);
	pieces = split(text, size - 1, how, 1 + (how >> 2) % 13);
	assert(whole.err == pieces.err && whole.n == pieces.n && whole.len == pieces.len);
	assert(whole.len == 0 || memcmp(whole.text, pieces.text, whole.len) == 0);
	assert(strcmp(whole.meta, pieces.meta) == 0);
	if (size <= 4096 && !memchr(text, '\\', size - 1))
		compare(text, size - 1, how, &whole);
	free(whole.text);
	free(pieces.text);
	return 0;
}
