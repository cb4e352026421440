/* SPDX-License-Identifier: MIT */
/*
 * Tags of values ("!!str 1"): those of YAML's core schema are known, and have to fit.
 */
#include "spec/yaml_tag.h"

#include <errno.h>
#include <yaml.h>

/* What an explicit tag may say of a scalar, besides !!str. */
static bool tag_fits(const char *tag, const struct spec_yaml *node)
{
	enum spec_yaml_value value = spec_yaml_resolve(node);

	return (streq(tag, YAML_NULL_TAG) && value == SPEC_YAML_NULL) ||
	       (streq(tag, YAML_BOOL_TAG) && value == SPEC_YAML_BOOL) ||
	       (streq(tag, YAML_INT_TAG) && value == SPEC_YAML_INT) ||
	       (streq(tag, YAML_FLOAT_TAG) && (value == SPEC_YAML_FLOAT || value == SPEC_YAML_INT));
}

int yaml_tag_check(struct spec_yaml *node, const char *tag, struct spec_errors *e)
{
	static const char *const core[] = {YAML_STR_TAG,  YAML_INT_TAG,	 YAML_FLOAT_TAG,
					   YAML_BOOL_TAG, YAML_NULL_TAG, YAML_MAP_TAG,
					   YAML_SEQ_TAG};
	static const char prefix[] = "tag:yaml.org,2002:";
	bool known = false;
	int err;

	if (!tag)
		return 0;
	if (node->type == SPEC_YAML_SCALAR && streq(tag, YAML_STR_TAG)) {
		node->plain = false;
		return 0;
	}
	if ((node->type == SPEC_YAML_MAP && streq(tag, YAML_MAP_TAG)) ||
	    (node->type == SPEC_YAML_LIST && streq(tag, YAML_SEQ_TAG)))
		return 0;
	for (size_t i = 0; i < array_size(core); i++)
		known |= streq(tag, core[i]);
	if (!known) {
		err = spec_errors_add(
			e, -EINVAL, node->line, node->column, "",
			"the tag %s%s is not supported; text that begins with \"!\" needs "
			"quotes",
			strncmp(tag, prefix, strlen(prefix)) == 0 ? "!!" : "",
			strncmp(tag, prefix, strlen(prefix)) == 0 ? tag + strlen(prefix) : tag);
		return err == -ENOMEM ? err : 0;
	}
	node->plain = node->type == SPEC_YAML_SCALAR;
	if (node->plain && tag_fits(tag, node))
		return 0;
	err = spec_errors_add(e, -EINVAL, node->line, node->column, "",
			      "the value does not fit its tag !!%s", tag + strlen(prefix));
	return err == -ENOMEM ? err : 0;
}
