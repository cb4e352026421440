/* SPDX-License-Identifier: MIT */
/* One object of a cluster: what kxfs wrote into it, and its text for people. */
#include "spec/api/object.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/read.h"
#include "spec/base/tree.h"
#include "spec/yaml/yaml.h"

/* The annotation KEY, as long as O stays; "" none. */
static const char *annotation(const struct spec_value *o, const char *key)
{
	return spec_read_text(spec_read_map(spec_read_map(o, "metadata"), "annotations"), key);
}

bool spec_object_is_submission(const char *json, size_t len, const char *submission)
{
	struct spec_value *o cleanup_free = NULL;

	return spec_value_parse_map(json, len, &o) == 0 &&
	       streq(annotation(o, "kxfs/submission"), submission);
}

int spec_object_listed_uid(const char *json, size_t len, char **ret)
{
	struct spec_value *list cleanup_free = NULL;
	int err = spec_value_parse_map(json, len, &list);

	if (err)
		return err;
	if (!spec_read_list(list, "items"))
		return -EINVAL;
	*ret = text_copy(spec_read_text(
		spec_read_map(spec_read_at(spec_read_list(list, "items"), 0), "metadata"), "uid"));
	return 0;
}

int spec_object_yaml(const char *json, size_t len, char **ret, size_t *ret_len)
{
	struct json_object *o cleanup_json = NULL;
	int err = spec_tree_parse_map(json, len, &o);
	struct json_object *metadata;

	if (err)
		return err;
	/* A reply to a request still has what the splitter drops from lists and watches. */
	if (json_object_object_get_ex(o, "metadata", &metadata) &&
	    json_object_is_type(metadata, json_type_object))
		json_object_object_del(metadata, "managedFields");
	spec_yaml_emit(o, 0, ret, ret_len);
	return 0;
}

int spec_object_appdef(const char *json, size_t len, char **ret, size_t *ret_len)
{
	struct spec_value *o cleanup_free = NULL;
	int err = spec_value_parse_map(json, len, &o);
	const char *text;

	if (err)
		return err;
	text = annotation(o, "kxfs/appdef");
	if (!*text)
		return -ENOENT;
	*ret_len = strlen(text);
	*ret = text_copy(text);
	return 0;
}
