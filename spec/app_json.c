/* SPDX-License-Identifier: MIT */
/*
 * An AppDef as JSON, with all defaults filled in; spec_app_parse reads it back as the same
 * AppDef. Fields that have no default and were not given are left out.
 */
#include <json-c/json.h>
#include <math.h>

#include "spec/app.h"
#include "spec/limits.h"
#include "spec/yaml.h"

/* Add VALUE (taken over; NULL: no memory) to MAP. */
static bool add(struct json_object *map, const char *key, struct json_object *value)
{
	if (value && json_object_object_add(map, key, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static bool add_text(struct json_object *map, const char *key, const char *text)
{
	return add(map, key, json_object_new_string(text));
}

static bool add_int(struct json_object *map, const char *key, int64_t value)
{
	return add(map, key, json_object_new_int64(value));
}

static bool add_number(struct json_object *map, const char *key, double value)
{
	char text[32];

	if (value == trunc(value) && fabs(value) < 1e15)
		return add_int(map, key, (int64_t)value);
	spec_yaml_double(value, text);
	return add(map, key, json_object_new_double_s(value, text));
}

/* A new map in MAP; NULL: no memory. */
static struct json_object *add_map(struct json_object *map, const char *key)
{
	struct json_object *ret = json_object_new_object();

	return add(map, key, ret) ? ret : NULL;
}

static struct json_object *add_list(struct json_object *map, const char *key)
{
	struct json_object *ret = json_object_new_array();

	return add(map, key, ret) ? ret : NULL;
}

static bool append(struct json_object *list, struct json_object *value)
{
	if (value && json_object_array_add(list, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static bool add_texts(struct json_object *map, const char *key, const struct spec_map *texts)
{
	struct json_object *o = add_map(map, key);
	bool ok = o;

	for (size_t i = 0; ok && i < texts->n; i++)
		ok = add_text(o, texts->v[i].key, texts->v[i].value);
	return ok;
}

static bool add_counts(struct json_object *map, const char *key, const struct spec_counts *counts)
{
	struct json_object *o = add_map(map, key);
	bool ok = o;

	for (size_t i = 0; ok && i < counts->n; i++)
		ok = add_int(o, counts->v[i].key, counts->v[i].value);
	return ok;
}

/* TEXT is the JSON of a map, made by the parser. */
static bool add_json(struct json_object *map, const char *key, const char *text)
{
	struct json_tokener *tok = json_tokener_new_ex(SPEC_MAX_DEPTH + 1);
	bool ok = tok && add(map, key, json_tokener_parse_ex(tok, text, (int)strlen(text) + 1));

	if (tok)
		json_tokener_free(tok);
	return ok;
}

static bool add_resource(struct json_object *role, const struct spec_resource *resource)
{
	struct json_object *o = add_map(role, "resource");

	return o && add_number(o, "cpu", resource->cpu) && add_int(o, "gpu", resource->gpu) &&
	       add_number(o, "memMB", resource->mem_mb) &&
	       add_texts(o, "capabilities", &resource->capabilities) &&
	       add_counts(o, "devices", &resource->devices);
}

static bool add_mount(struct json_object *list, const struct spec_mount *m)
{
	static const char *const types[] = {[SPEC_MOUNT_BIND] = "bind",
					    [SPEC_MOUNT_VOLUME] = "volume",
					    [SPEC_MOUNT_DEVICE] = "device"};
	struct json_object *o = json_object_new_object();

	if (!append(list, o) || !add_text(o, "type", types[m->type]) ||
	    !add_text(o, m->type == SPEC_MOUNT_VOLUME ? "src" : "src_path", m->src) ||
	    !add_text(o, "dst_path", m->dst))
		return false;
	if (m->type == SPEC_MOUNT_DEVICE)
		return add_text(o, "permissions", m->permissions);
	return add(o, "read_only", json_object_new_boolean(m->read_only));
}

static bool add_mounts(struct json_object *map, const struct spec_role *role)
{
	struct json_object *list = add_list(map, "mounts");
	bool ok = list;

	for (size_t i = 0; ok && i < role->n_mounts; i++)
		ok = add_mount(list, &role->mounts[i]);
	return ok;
}

static bool add_args(struct json_object *map, const struct spec_role *role)
{
	struct json_object *list = add_list(map, "args");
	bool ok = list;

	for (size_t i = 0; ok && i < role->n_args; i++)
		ok = append(list, json_object_new_string(role->args[i]));
	return ok;
}

static bool add_role(struct json_object *list, const struct spec_role *role)
{
	struct json_object *o = json_object_new_object();

	return append(list, o) && add_text(o, "name", role->name) &&
	       add_text(o, "image", role->image) &&
	       (!role->base_image || add_text(o, "base_image", role->base_image)) &&
	       add_text(o, "entrypoint", role->entrypoint) && add_args(o, role) &&
	       add_texts(o, "env", &role->env) && add_int(o, "num_replicas", role->num_replicas) &&
	       (role->min_replicas < 0 || add_int(o, "min_replicas", role->min_replicas)) &&
	       add_int(o, "max_retries", role->max_retries) &&
	       add_text(o, "retry_policy", spec_retry_name(role->retry_policy)) &&
	       add_resource(o, &role->resource) && add_counts(o, "port_map", &role->port_map) &&
	       add_mounts(o, role) && add_json(o, "metadata", role->metadata);
}

static bool add_app(struct json_object *o, const struct spec_app *app)
{
	struct json_object *roles;
	bool ok;

	if (!add_text(o, "name", app->name))
		return false;
	roles = add_list(o, "roles");
	ok = roles;
	for (size_t i = 0; ok && i < app->n_roles; i++)
		ok = add_role(roles, &app->roles[i]);
	return ok && add_texts(o, "metadata", &app->metadata) &&
	       (!app->scheduler || add_text(o, "scheduler", app->scheduler)) &&
	       (!app->scheduler_args || add_json(o, "scheduler_args", app->scheduler_args));
}

char *spec_app_json(const struct spec_app *app)
{
	struct json_object *o = json_object_new_object();
	const char *text = NULL;
	char *ret;

	if (o && add_app(o, app))
		text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
								 JSON_C_TO_STRING_NOSLASHESCAPE);
	ret = text ? strdup(text) : NULL;
	json_object_put(o);
	return ret;
}
