/* SPDX-License-Identifier: MIT */
/*
 * Annotations that spec/manifest.c writes.
 */
#include "spec/object.h"

#include <errno.h>

#include "spec/limits.h"
#include "spec/tree.h"

static void put_tokener(struct json_tokener **t)
{
	if (*t)
		json_tokener_free(*t);
}

/* The annotation KEY; *RET_ROOT holds it. NULL: there is none. */
static struct json_object *annotation(const char *json, size_t len, const char *key,
				      struct json_object **ret_root)
{
	struct json_tokener *t cleanup(put_tokener) = json_tokener_new_ex(2 * SPEC_MAX_DEPTH);
	struct json_object *o = NULL;

	if (!t || len > INT32_MAX)
		return NULL;
	*ret_root = json_tokener_parse_ex(t, json, (int)len);
	if (!json_object_is_type(*ret_root, json_type_object) ||
	    !json_object_object_get_ex(*ret_root, "metadata", &o) ||
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
