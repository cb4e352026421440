/* SPDX-License-Identifier: MIT */
/*
 * The text of an object, and the annotations that spec/manifest.c writes.
 */
#include "spec/object.h"

#include <errno.h>

#include "spec/limits.h"
#include "spec/tree.h"
#include "spec/yaml.h"

static void put_tokener(struct json_tokener **t)
{
	if (*t)
		json_tokener_free(*t);
}

/* JSON as an object; NULL: it is none. */
static struct json_object *parse(const char *json, size_t len)
{
	struct json_tokener *t cleanup(put_tokener) = json_tokener_new_ex(2 * SPEC_MAX_DEPTH);
	struct json_object *ret =
		t && len <= INT32_MAX ? json_tokener_parse_ex(t, json, (int)len) : NULL;

	if (json_object_is_type(ret, json_type_object))
		return ret;
	json_object_put(ret);
	return NULL;
}

/* The annotation KEY; *RET_ROOT holds it. NULL: there is none. */
static struct json_object *annotation(const char *json, size_t len, const char *key,
				      struct json_object **ret_root)
{
	struct json_object *o = *ret_root = parse(json, len);

	if (!o || !json_object_object_get_ex(o, "metadata", &o) ||
	    !json_object_is_type(o, json_type_object) ||
	    !json_object_object_get_ex(o, "annotations", &o) ||
	    !json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &o) ||
	    !json_object_is_type(o, json_type_string))
		return NULL;
	return o;
}

bool spec_object_is_submission(const char *json, size_t len, const char *submission)
{
	struct json_object *root cleanup_json = NULL;
	struct json_object *note = annotation(json, len, "kxfs/submission", &root);

	return note && streq(json_object_get_string(note), submission);
}

int spec_object_appdef(const char *json, size_t len, char **ret, size_t *ret_len)
{
	struct json_object *root cleanup_json = NULL;
	struct json_object *note = annotation(json, len, "kxfs/appdef", &root);
	size_t n;

	if (!note)
		return -ENOENT;
	n = (size_t)json_object_get_string_len(note);
	*ret = malloc(n + 1);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, json_object_get_string(note), n + 1);
	*ret_len = n;
	return 0;
}

int spec_object_yaml(const char *json, size_t len, char **ret, size_t *ret_len)
{
	struct json_object *o cleanup_json = parse(json, len), *metadata;

	if (!o)
		return -EINVAL;
	if (json_object_object_get_ex(o, "metadata", &metadata) &&
	    json_object_is_type(metadata, json_type_object))
		json_object_object_del(metadata, "managedFields");
	return spec_yaml_emit(o, 0, ret, ret_len);
}
