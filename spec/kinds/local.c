/* SPDX-License-Identifier: MIT */
/* Reading AppDefs of local jobs: by the rules of all kinds, since the same file may go to a cluster tomorrow. */
#include "spec/kinds/local.h"

#include <errno.h>

#include "spec/kinds/ready_manifest.h"

/* A manifest is no AppDef at all. To list its fields as unknown would only mislead. */
static int refuse_manifest(const struct spec_yaml *root, struct spec_errors *e)
{
	const struct spec_yaml *kind = spec_yaml_get(root, "kind");
	const char *name = kind->type == SPEC_YAML_SCALAR ? kind->text : "?";

	if (spec_ready_kind(root))
		return spec_errors_add(
			e, -EINVAL, root->line, root->column, "",
			"this is a ready manifest (kind: %s), which only the mount of "
			"a cluster can send; write an AppDef, see appdef(5)",
			name);
	return spec_errors_add(
		e, -EINVAL, root->line, root->column, "",
		"this is a manifest of another kind (%s), which nobody can send here; "
		"write an AppDef, see appdef(5)",
		name);
}

int spec_local_read(const struct spec_yaml *root, const char *home, struct spec_app **ret,
		    struct spec_errors *e)
{
	struct spec_app_rules rules;

	if (root->type == SPEC_YAML_MAP && spec_yaml_get(root, "kind") &&
	    spec_yaml_get(root, "apiVersion"))
		return refuse_manifest(root, e);
	spec_kind_app_rules(&rules, NULL, home);
	return spec_app_read(root, &rules, ret, e);
}

int spec_local_parse(const char *text, size_t len, const char *home, struct spec_app **ret,
		     struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	int err = spec_yaml_parse(text, len, &root, e);

	return root ? spec_local_read(root, home, ret, e) : err;
}
