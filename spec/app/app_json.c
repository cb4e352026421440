/* SPDX-License-Identifier: MIT */
/* Writes an AppDef as JSON with all defaults. This and later versions of kxfs read this JSON. */
#include <math.h>

#include "spec/app/app.h"
#include "spec/base/tree.h"

static void add_number(struct json_object *map, const char *key, double value)
{
	bool whole = value == trunc(value) && fabs(value) < 1e15;

	spec_tree_add(map, key, whole ? spec_tree_int((int64_t)value) : spec_tree_double(value));
}

static void add_texts(struct json_object *map, const char *key, const struct spec_map *texts)
{
	struct json_object *o = spec_tree_add(map, key, spec_tree_map());

	for (size_t i = 0; i < texts->n; i++)
		spec_tree_set(o, texts->v[i].key, spec_tree_string(texts->v[i].value));
}

static void add_counts(struct json_object *map, const char *key, const struct spec_counts *counts)
{
	struct json_object *o = spec_tree_add(map, key, spec_tree_map());

	for (size_t i = 0; i < counts->n; i++)
		spec_tree_set(o, counts->v[i].key, spec_tree_int(counts->v[i].value));
}

static struct json_object *make_role(const struct spec_role *role)
{
	static const char *const types[] = {[SPEC_MOUNT_BIND] = "bind",
					    [SPEC_MOUNT_VOLUME] = "volume",
					    [SPEC_MOUNT_DEVICE] = "device"};
	struct json_object *o = spec_tree_map(), *list, *resource;

	spec_tree_text(o, "name", role->name);
	spec_tree_text(o, "image", role->image);
	spec_tree_text(o, "entrypoint", role->entrypoint);
	list = spec_tree_add(o, "args", spec_tree_list(role->n_args));
	for (size_t i = 0; i < role->n_args; i++)
		spec_tree_append(list, spec_tree_string(role->args[i]));
	add_texts(o, "env", &role->env);
	spec_tree_number(o, "num_replicas", role->num_replicas);
	if (role->min_replicas >= 0)
		spec_tree_number(o, "min_replicas", role->min_replicas);
	spec_tree_number(o, "max_retries", role->max_retries);
	spec_tree_text(o, "retry_policy", spec_retry_name(role->retry_policy));
	resource = spec_tree_add(o, "resource", spec_tree_map());
	add_number(resource, "cpu", role->resource.cpu);
	spec_tree_number(resource, "gpu", role->resource.gpu);
	add_number(resource, "memMB", role->resource.mem_mb);
	add_texts(resource, "capabilities", &role->resource.capabilities);
	add_counts(resource, "devices", &role->resource.devices);
	add_counts(o, "port_map", &role->port_map);
	list = spec_tree_add(o, "mounts", spec_tree_list(role->n_mounts));
	for (size_t i = 0; i < role->n_mounts; i++) {
		const struct spec_mount *m = &role->mounts[i];
		struct json_object *mount = spec_tree_append(list, spec_tree_map());

		spec_tree_text(mount, "type", types[m->type]);
		spec_tree_text(mount, m->type == SPEC_MOUNT_VOLUME ? "src" : "src_path", m->src);
		spec_tree_text(mount, "dst_path", m->dst);
		if (m->type == SPEC_MOUNT_DEVICE)
			spec_tree_text(mount, "permissions", m->permissions);
		else
			spec_tree_add(mount, "read_only", spec_tree_bool(m->read_only));
	}
	spec_tree_add(o, "metadata", spec_tree_parse(role->metadata));
	return o;
}

char *spec_app_json(const struct spec_app *app)
{
	cleanup_json struct json_object *o = spec_tree_map();
	struct json_object *roles;

	spec_tree_text(o, "name", app->name);
	roles = spec_tree_add(o, "roles", spec_tree_list(app->n_roles));
	for (size_t i = 0; i < app->n_roles; i++)
		spec_tree_append(roles, make_role(&app->roles[i]));
	if (app->scheduler)
		spec_tree_text(o, "scheduler", app->scheduler);
	if (app->scheduler_args)
		spec_tree_add(o, "scheduler_args", spec_tree_parse(app->scheduler_args));
	return spec_tree_print(o);
}
