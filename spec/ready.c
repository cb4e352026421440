/* SPDX-License-Identifier: MIT */
/*
 * A ready manifest is sent as it is, but for what the server sets, so that a job's manifest.yaml can
 * be submitted again.
 */
#include "spec/ready.h"

#include <errno.h>

#include "spec/name.h"
#include "spec/ready_name.h"
#include "spec/tree.h"

bool spec_ready_is(const struct spec_yaml *root)
{
	return root->type == SPEC_YAML_MAP &&
	       (spec_yaml_get(root, "apiVersion") || spec_yaml_get(root, "kind"));
}

static const struct spec_kind *find_kind(const char *version, const char *name)
{
	const struct spec_kind *kind;

	for (size_t i = 0; (kind = spec_kind_at(i)); i++) {
		if (streq(version, kind->api_version) && streq(name, kind->kind))
			return kind;
	}
	return NULL;
}

const struct spec_kind *spec_ready_kind(const struct spec_yaml *root)
{
	const struct spec_yaml *version = spec_yaml_get(root, "apiVersion");
	const struct spec_yaml *name = spec_yaml_get(root, "kind");

	if (!version || !name || version->type != SPEC_YAML_SCALAR ||
	    name->type != SPEC_YAML_SCALAR)
		return NULL;
	return find_kind(version->text, name->text);
}

/* The text of KEY; NULL: absent, or not text (an error). */
static const char *get_text(const struct spec_yaml *map, const char *key, const char *path,
			    struct spec_errors *e)
{
	const struct spec_yaml *node = spec_yaml_get(map, key);

	if (!node)
		return NULL;
	if (node->type == SPEC_YAML_SCALAR && !spec_yaml_is_null(node) &&
	    strlen(node->text) == node->len)
		return node->text;
	spec_errors_add(e, -EINVAL, node->line, node->column, path, "must be text");
	return NULL;
}

/* As get_text; absent is an error too. */
static const char *need_text(const struct spec_yaml *map, const char *key, const char *path,
			     struct spec_errors *e)
{
	const char *ret = get_text(map, key, path, e);

	if (!ret && !spec_yaml_get(map, key))
		spec_errors_add(e, -EINVAL, map->line, map->column, path,
				"is missing from the manifest");
	return ret;
}

static void check_kind(const struct spec_yaml *root, const struct spec_kind *kind,
		       struct spec_errors *e)
{
	const char *version = need_text(root, "apiVersion", "apiVersion", e);
	const char *name = need_text(root, "kind", "kind", e);
	const struct spec_yaml *at = spec_yaml_get(root, "kind");
	const struct spec_kind *other;

	if (!version || !name || (streq(version, kind->api_version) && streq(name, kind->kind)))
		return;
	other = find_kind(version, name);
	if (other)
		spec_errors_add(e, -EINVAL, at->line, at->column, "kind",
				"is %s's %s; jobs here are of %s (%s, %s)", other->name, name,
				kind->name, kind->api_version, kind->kind);
	else
		spec_errors_add(e, -EINVAL, at->line, at->column, "kind",
				"is %s of %s; only a %s of %s can be submitted here", name, version,
				kind->kind, kind->api_version);
}

static void check_metadata(const struct spec_yaml *root, const char *namespace, char **id,
			   struct spec_errors *e)
{
	const struct spec_yaml *metadata = spec_yaml_get(root, "metadata"), *at;
	const char *name, *space;

	if (!metadata || metadata->type != SPEC_YAML_MAP) {
		at = metadata ? metadata : root;
		spec_errors_add(e, -EINVAL, at->line, at->column, "metadata",
				metadata ? "must be a map" : "is missing from the manifest");
		return;
	}
	name = need_text(metadata, "name", "metadata.name", e);
	at = spec_yaml_get(metadata, "name");
	if (name && !spec_name_is_label(name))
		spec_errors_add(
			e, -EINVAL, at->line, at->column, "metadata.name",
			"must be 1 to 63 lower-case letters, digits and dashes, with no dash "
			"at its ends");
	space = get_text(metadata, "namespace", "metadata.namespace", e);
	at = spec_yaml_get(metadata, "namespace");
	if (space && !streq(space, namespace))
		spec_errors_add(e, -EINVAL, at->line, at->column, "metadata.namespace",
				"is \"%s\", but this is the namespace \"%s\": one mount submits to "
				"one namespace",
				space, namespace);
	at = spec_yaml_get(metadata, "annotations");
	if (at && at->type != SPEC_YAML_MAP)
		spec_errors_add(e, -EINVAL, at->line, at->column, "metadata.annotations",
				"must be a map");
	if (name && !e->err && !(*id = strdup(name)))
		spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
}

/* What the server sets, and owners, which belong to another life of the job. */
static void strip(struct json_object *object)
{
	static const char *const set[] = {
		"uid",
		"resourceVersion",
		"generation",
		"creationTimestamp",
		"deletionTimestamp",
		"managedFields",
		"selfLink",
		"deletionGracePeriodSeconds",
		"ownerReferences",
	};
	static const char *const ours[] = {"kxfs/appdef", "kxfs/appdef-sha256", "kxfs/submission",
					   "kxfs/submitter"};
	struct json_object *metadata = json_object_object_get(object, "metadata"), *annotations;

	json_object_object_del(object, "status");
	for (size_t i = 0; i < array_size(set); i++)
		json_object_object_del(metadata, set[i]);
	annotations = json_object_object_get(metadata, "annotations");
	for (size_t i = 0; annotations && i < array_size(ours); i++)
		json_object_object_del(annotations, ours[i]);
}

int spec_ready_read(const struct spec_yaml *root, const struct spec_kind *kind,
		    const struct spec_identity *who, struct json_object **ret, char **id,
		    struct spec_errors *e)
{
	check_kind(root, kind, e);
	check_metadata(root, who->namespace, id, e);
	if (e->err)
		return e->err;
	if (spec_yaml_to_json(root, ret) < 0 || !*id)
		return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
	strip(*ret);
	return who->rename ? spec_ready_rename(*ret, kind, who, id, e) : 0;
}
