/* SPDX-License-Identifier: MIT */
/*
 * Where members lead, and what is read from the metadata of a list.
 */
#include "spec/split_form.h"

#include <errno.h>

#include "spec/tree.h"

/* The places that a level's members lead to; a KEY of NULL is each item of a list. */
static const struct {
	enum split_place from, to;
	const char *key;
} ways[] = {
	{SPLIT_LIST, SPLIT_ITEMS, "items"},
	{SPLIT_LIST, SPLIT_LIST_METADATA, "metadata"},
	{SPLIT_ITEMS, SPLIT_OBJECT, NULL},
	{SPLIT_EVENT, SPLIT_OBJECT, "object"},
	{SPLIT_OBJECT, SPLIT_METADATA, "metadata"},
	{SPLIT_METADATA, SPLIT_DROPPED, "managedFields"},
	{SPLIT_OBJECT, SPLIT_SPEC, "spec"},
	{SPLIT_SPEC, SPLIT_CONTAINERS, "containers"},
	{SPLIT_SPEC, SPLIT_CONTAINERS, "initContainers"},
	{SPLIT_SPEC, SPLIT_CONTAINERS, "ephemeralContainers"},
	{SPLIT_CONTAINERS, SPLIT_CONTAINER, NULL},
	{SPLIT_CONTAINER, SPLIT_DROPPED, "env"},
};

enum split_place split_place_of(enum split_place place, const char *key, size_t n)
{
	for (size_t i = 0; i < array_size(ways) && place != SPLIT_OTHER; i++) {
		const char *want = ways[i].key;

		if (ways[i].from != place || !key != !want)
			continue;
		if (!key || (strlen(want) == n && memcmp(key, want, n) == 0))
			return ways[i].to;
	}
	return SPLIT_OTHER;
}

static int copy_text(struct json_object *o, const char *key, char **ret)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value) || !value)
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return -EINVAL;
	*ret = strdup(json_object_get_string(value));
	return *ret ? 0 : -ENOMEM;
}

int split_list_metadata(const char *json, char **ret_version, char **ret_next)
{
	struct json_object *o cleanup_json = spec_tree_parse(json);
	int err;

	if (!o)
		return -EINVAL;
	err = copy_text(o, "resourceVersion", ret_version);
	return err ? err : copy_text(o, "continue", ret_next);
}
