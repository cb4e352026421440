/* SPDX-License-Identifier: MIT */
/*
 * Finds and applies pod overlays. A result shares all maps that do not change, so that an overlay
 * costs little for a thousand replicas.
 */
#include "spec/pods/overlay.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/tree.h"

#define FORMAT_KEY "__torchx_overlays__"
#define KIND_KEY   "V1Pod"
#define PUT	   "__put__:"
#define DEL	   "__del__:"
#define JOIN	   "__join__:"

static bool is_map(struct json_object *v)
{
	return json_object_is_type(v, json_type_object);
}

static bool is_list(struct json_object *v)
{
	return json_object_is_type(v, json_type_array);
}

static const char *type_name(struct json_object *v)
{
	return is_map(v) ? "a map" : is_list(v) ? "a list" : v ? "a single value" : "null";
}

static bool has_prefix(const char *key, const char *prefix)
{
	return strncmp(key, prefix, strlen(prefix)) == 0;
}

/* A position in the overlay: KEY in the map at UP. If UP is NULL, KEY is the overlay's path. */
struct overlay_place {
	const struct overlay_place *up;
	const char *key;
};

static void print_place(FILE *f, const struct overlay_place *at)
{
	if (!at->up) {
		fputs(at->key, f);
		return;
	}
	print_place(f, at->up);
	spec_errors_key(f, at->key, false);
}

static char *place_text(const struct overlay_place *at)
{
	char *ret;
	size_t size;
	FILE *f = text_stream(&ret, &size);

	print_place(f, at);
	text_stream_close(f);
	return ret;
}

/* Return KEY without its operator ("__put__:"). */
static const char *key_field(const char *key)
{
	static const char *const operators[] = {PUT, DEL, JOIN};

	for (size_t i = 0; i < array_size(operators); i++) {
		if (has_prefix(key, operators[i]))
			return key + strlen(operators[i]);
	}
	return key;
}

/* True if the member only declares the type: apiVersion: v1, kind: Pod. */
static bool is_type(const char *key, struct json_object *value)
{
	const char *wanted = streq(key, "apiVersion") ? "v1" : streq(key, "kind") ? "Pod" : NULL;

	return wanted && json_object_is_type(value, json_type_string) &&
	       streq(json_object_get_string(value), wanted);
}

/* Refuse members of OVERLAY that a pod does not have. TorchX silently ignores them. */
static int check_top(struct json_object *overlay, const char *path, struct spec_errors *e)
{
	static const char *const known[] = {"metadata", "spec", NULL};
	int ret = 0;

	json_object_object_foreach(overlay, key, value) {
		const char *field = key_field(key);
		cleanup_free char *hint = spec_suggestion(field, known, "");
		cleanup_free char *at = NULL;

		if (is_type(key, value) || streq_any(field, known))
			continue;
		at = place_text(&(struct overlay_place){.up = &(struct overlay_place){.key = path},
							.key = key});
		ret = spec_errors_add(e, -EINVAL, 0, 0, at,
				      "a pod overlay can have only metadata and spec%s", hint);
	}
	return ret;
}

/*
 * Check OVERLAY. Also refuse other members of KINDS, the map that has OVERLAY, except FORMAT_KEY.
 */
static int check_kind(struct json_object *kinds, struct json_object *overlay, const char *path,
		      const char *at, struct spec_errors *e)
{
	if (!is_map(overlay))
		return spec_errors_add(e, -EINVAL, 0, 0, at, "must be a map, but is %s",
				       type_name(overlay));
	json_object_object_foreach(kinds, key, value) {
		if (!streq(key, KIND_KEY) && !streq(key, FORMAT_KEY))
			return spec_errors_add(e, -EINVAL, 0, 0, path,
					       "%s is beside " KIND_KEY ": move it into " KIND_KEY,
					       key);
	}
	return check_top(overlay, at, e);
}

int spec_overlay_find(struct json_object *metadata, const char *path, struct json_object **ret,
		      char **ret_path, struct spec_errors *e)
{
	struct json_object *found, *overlay;
	cleanup_free char *at = NULL, *inner cleanup_free = NULL;
	int err;

	*ret = NULL;
	if (!is_map(metadata) || !json_object_object_get_ex(metadata, "kubernetes", &found))
		return 0;
	at = text_print("%s.metadata.kubernetes", path);
	inner = text_print("%s." KIND_KEY, at);
	if (json_object_is_type(found, json_type_string))
		return spec_errors_add(
			e, -EINVAL, 0, 0, at,
			"kxfs does not read overlays from files: write the overlay here, as a "
			"map");
	if (!is_map(found))
		return spec_errors_add(e, -EINVAL, 0, 0, at, "must be a map, but is %s",
				       type_name(found));
	if (json_object_object_get_ex(found, KIND_KEY, &overlay)) {
		err = check_kind(found, overlay, at, inner, e);
		*ret_path = take_ptr(inner);
	} else if (json_object_object_get_ex(found, FORMAT_KEY, NULL) ||
		   json_object_object_length(found) == 0) {
		/*
		 * If the map has FORMAT_KEY, its other keys are kinds of objects. V1Pod is not
		 * among them, so there is no overlay for pods.
		 */
		return 0;
	} else {
		overlay = found;
		err = check_top(found, at, e);
		*ret_path = take_ptr(at);
	}
	*ret = overlay;
	return err;
}

/* --- applying --- */

struct merge {
	struct spec_errors *errors;
	int err;
};

static void refuse(struct merge *m, const struct overlay_place *at, const char *text)
{
	cleanup_free char *path = place_text(at);

	m->err = spec_errors_add(m->errors, -EINVAL, 0, 0, path, "%s", text);
}

static void merge_into(struct merge *m, const struct overlay_place *at, struct json_object *map,
		       struct json_object *overlay);

/*
 * Merge OVER into BASE, the pod's value of a field (or NULL), and return the result. Return NULL
 * after an error.
 */
static struct json_object *merge_value(struct merge *m, const struct overlay_place *at,
				       struct json_object *base, struct json_object *over)
{
	if (is_map(over) && (!base || is_map(base))) {
		struct json_object *ret = spec_tree_copy_map(base);

		merge_into(m, at, ret, over);
		return ret;
	}
	if (is_list(over) && is_list(base)) {
		size_t na = json_object_array_length(base), n = na + json_object_array_length(over);
		struct json_object *ret = spec_tree_list(n);

		for (size_t i = 0; i < n; i++) {
			struct json_object *item = json_object_array_get_idx(i < na ? base : over,
									     i < na ? i : i - na);

			spec_tree_append(ret, json_object_get(item));
		}
		return ret;
	}
	if (base && (is_map(base) || is_list(base) || is_map(over) || is_list(over))) {
		char text[64];

		snprintf(text, sizeof(text), "must be %s, as in the pod, but is %s",
			 type_name(base), type_name(over));
		refuse(m, at, text);
		return NULL;
	}
	return json_object_get(over);
}

/*
 * Return the index of the item in LIST whose KEY has the same value as ITEM's, or SIZE_MAX. If
 * there are several, return the last one, as in TorchX.
 */
static size_t find_item(struct json_object *list, const char *key, struct json_object *item)
{
	struct json_object *wanted, *value;

	if (!json_object_object_get_ex(item, key, &wanted))
		return SIZE_MAX;
	for (size_t i = json_object_array_length(list); i-- > 0;) {
		if (json_object_object_get_ex(json_object_array_get_idx(list, i), key, &value) &&
		    json_object_equal(value, wanted))
			return i;
	}
	return SIZE_MAX;
}

static bool all_maps(struct json_object *list)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		if (!is_map(json_object_array_get_idx(list, i)))
			return false;
	}
	return true;
}

/*
 * Return the items of LIST, followed by those of OVER. If an item of OVER has the same value of KEY
 * as an item of LIST, merge the two items.
 */
static struct json_object *join(struct json_object *list, struct json_object *over, const char *key)
{
	struct json_object *ret = spec_tree_list(json_object_array_length(list));

	for (size_t i = 0; i < json_object_array_length(list); i++)
		spec_tree_append(ret, spec_tree_copy_map(json_object_array_get_idx(list, i)));
	for (size_t i = 0; i < json_object_array_length(over); i++) {
		struct json_object *item = json_object_array_get_idx(over, i);
		size_t at = find_item(list, key, item);

		if (at == SIZE_MAX) {
			spec_tree_append(ret, json_object_get(item));
			continue;
		}
		json_object_object_foreach(item, k, v) {
			if (v)
				spec_tree_set(json_object_array_get_idx(ret, at), k,
					      json_object_get(v));
			else
				json_object_object_del(json_object_array_get_idx(ret, at), k);
		}
	}
	return ret;
}

/* Apply the member KEY, "__join__:FIELD:ON", of an overlay. */
static void apply_join(struct merge *m, const struct overlay_place *at, struct json_object *map,
		       const char *key, struct json_object *over)
{
	cleanup_free char *field = text_copy(key_field(key));
	struct json_object *base;
	char *on = strchr(field, ':');

	if (!on || on == field || on[1] == '\0') {
		refuse(m, at, "must be " JOIN "FIELD:KEY");
		return;
	}
	*on++ = '\0';
	base = json_object_object_get(map, field);
	if (!is_list(over) || !all_maps(over) || (base && (!is_list(base) || !all_maps(base))))
		refuse(m, at, "this value and the value in the pod must both be lists of maps");
	else
		spec_tree_set(map, field, base ? join(base, over, on) : json_object_get(over));
}

static void apply_key(struct merge *m, const struct overlay_place *at, struct json_object *map,
		      const char *key, struct json_object *over)
{
	const char *field = key_field(key);
	struct json_object *value;

	if (has_prefix(key, JOIN)) {
		apply_join(m, at, map, key, over);
		return;
	}
	if (!*field && *key) {
		refuse(m, at, "must have the name of a field after the operator");
		return;
	}
	if (has_prefix(key, DEL))
		value = NULL;
	else if (has_prefix(key, PUT))
		value = json_object_get(over);
	else
		value = merge_value(m, at, json_object_object_get(map, field), over);
	if (value)
		spec_tree_set(map, field, value);
	else
		json_object_object_del(map, field);
}

/* Merge OVERLAY into MAP, which no other object shares. */
static void merge_into(struct merge *m, const struct overlay_place *at, struct json_object *map,
		       struct json_object *overlay)
{
	json_object_object_foreach(overlay, key, over) {
		struct overlay_place here = {.up = at, .key = key};

		if (m->err)
			return;
		if (!at->up && is_type(key, over))
			continue;
		apply_key(m, &here, map, key, over);
	}
}

/* Replace POD's FIELD by a copy that no object shares. If FIELD is not a map, add an error. */
static void own_map(struct merge *m, const struct overlay_place *at, struct json_object *pod,
		    const char *field)
{
	struct json_object *value = json_object_object_get(pod, field);
	struct overlay_place here = {.up = at, .key = field};

	if (value && !is_map(value))
		refuse(m, &here, "must be a map");
	else
		spec_tree_set(pod, field, spec_tree_copy_map(value));
}

int spec_overlay_apply(struct json_object *base, struct json_object *overlay, const char *path,
		       struct json_object **ret, struct spec_errors *e)
{
	struct merge m = {.errors = e};
	struct overlay_place at = {.key = path};
	struct json_object *pod cleanup_json = spec_tree_copy_map(base);

	merge_into(&m, &at, pod, overlay);
	if (!m.err) {
		own_map(&m, &at, pod, "metadata");
		own_map(&m, &at, pod, "spec");
	}
	if (m.err)
		return m.err;
	*ret = take_ptr(pod);
	return 0;
}
