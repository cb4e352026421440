/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a LIST or a watch, in chunks of any size. The first byte chooses the form, which
 * members are dropped (IGNORED, or none), and the sizes of the chunks. The chunks must make no
 * difference. If json-c can read the whole text, the objects must be those that json-c finds,
 * without the dropped members.
 */
#include "fuzz.h"

#include "spec/api/split.h"

static const char *const ignored[] = {"phase", "conditions", NULL};

/* All objects, with a NUL after each. */
struct result {
	char *text;
	size_t len;
	size_t n;
	bool wrong; /* an object was skipped */
	int err;
	char meta[256];
};

static int collect(void *data, const char *json, size_t len, int wrong)
{
	struct result *r = data;

	assert(json[len] == '\0');
	r->wrong |= wrong != 0;
	r->text = realloc(r->text, r->len + len + 1);
	assert(r->text);
	memcpy(r->text + r->len, json, len + 1);
	r->len += len + 1;
	r->n++;
	return 0;
}

static struct result split(const char *text, size_t len, uint8_t how, size_t piece)
{
	enum spec_split_form form = how & 1 ? SPEC_SPLIT_WATCH : SPEC_SPLIT_LIST;
	struct spec_list_meta meta = {"", ""};
	struct result r = {0};
	struct spec_split *s = spec_split_new(form, how & 2 ? ignored : NULL, collect, &r);

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

static void drop(struct json_object *object, uint8_t how)
{
	struct json_object *metadata = get(object, "metadata", json_type_object);
	struct json_object *status = get(object, "status", json_type_object);

	if (metadata)
		json_object_object_del(metadata, "managedFields");
	for (const char *const *key = ignored; status && how & 2 && *key; key++)
		json_object_object_del(status, *key);
}

/* Return the I-th object of R, without the dropped members. */
static struct json_object *object_at(const struct result *r, size_t i, bool event, uint8_t how)
{
	const char *at = r->text;
	struct json_object *ret;

	for (; i > 0; i--)
		at += strlen(at) + 1;
	ret = fuzz_json_parse(at, strlen(at));
	if (ret)
		drop(event ? get(ret, "object", json_type_object) : ret, how);
	return ret;
}

static void compare(const char *text, size_t len, uint8_t how, const struct result *r)
{
	struct json_object *whole = fuzz_json_parse(text, len);
	struct json_object *items = get(whole, "items", json_type_array);

	/* If a key occurs twice, json-c keeps only the last one. */
	if (r->err == 0 && how & 1 && r->n == 1 && whole) {
		struct json_object *mine = object_at(r, 0, true, how);

		drop(get(whole, "object", json_type_object), how);
		assert(fuzz_json_same(mine, whole));
		json_object_put(mine);
	} else if (r->err == 0 && !(how & 1) && items) {
		assert(r->n == json_object_array_length(items));
		for (size_t i = 0; i < r->n; i++) {
			struct json_object *mine = object_at(r, i, false, how);
			struct json_object *its = json_object_array_get_idx(items, i);

			drop(its, how);
			assert(fuzz_json_same(mine, its));
			json_object_put(mine);
		}
	}
	json_object_put(whole);
}

static bool has_any(const char *text, size_t len, const char *chars)
{
	for (; *chars; chars++)
		if (memchr(text, *chars, len))
			return true;
	return false;
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
	/*
	 * With escapes, keys have two spellings. json-c accepts comments, and strings in single
	 * quotes.
	 */
	if (size <= 4096 && !whole.wrong && !memchr(text, '\0', size - 1) &&
	    !has_any(text, size - 1, "\\/'"))
		compare(text, size - 1, how, &whole);
	free(whole.text);
	free(pieces.text);
	return 0;
}
