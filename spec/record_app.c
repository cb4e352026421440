/* SPDX-License-Identifier: MIT */
/*
 * JSON -> struct spec_app. Types and ranges are checked, since the text comes from a disk;
 * names and the like were checked when the file was submitted and harm nobody if they are odd.
 */
#include "spec/record_app.h"

#include <errno.h>
#include <math.h>

#include "spec/limits.h"
#include "spec/tree.h"

/* The member KEY of O; NULL: absent or null. */
static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *ret = NULL;

	return json_object_object_get_ex(o, key, &ret) ? ret : NULL;
}

/* A copy of a JSON string. A NUL in it would cut it, so it is refused. */
static int read_string(struct json_object *v, char **ret)
{
	const char *text;

	if (!json_object_is_type(v, json_type_string))
		return -EINVAL;
	text = json_object_get_string(v);
	if (strlen(text) != (size_t)json_object_get_string_len(v))
		return -EINVAL;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int read_text(struct json_object *o, const char *key, char **ret)
{
	return read_string(member(o, key), ret);
}

/* As read_text, but may be absent. */
static int read_option(struct json_object *o, const char *key, char **ret)
{
	struct json_object *v = member(o, key);

	return v ? read_string(v, ret) : 0;
}

/* A map that the program does not look into, as its JSON text; may be absent. */
static int read_opaque(struct json_object *o, const char *key, char **ret)
{
	struct json_object *v = member(o, key);

	if (!v)
		return 0;
	if (!json_object_is_type(v, json_type_object))
		return -EINVAL;
	*ret = strdup(json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN |
								JSON_C_TO_STRING_NOSLASHESCAPE));
	return *ret ? 0 : -ENOMEM;
}

static int read_int(struct json_object *o, const char *key, int64_t min, int64_t max, int64_t *ret)
{
	struct json_object *v = member(o, key);

	if (!json_object_is_type(v, json_type_int))
		return -EINVAL;
	*ret = json_object_get_int64(v);
	return *ret >= min && *ret <= max ? 0 : -EINVAL;
}

static int read_double(struct json_object *o, const char *key, double *ret)
{
	struct json_object *v = member(o, key);

	if (!json_object_is_type(v, json_type_int) && !json_object_is_type(v, json_type_double))
		return -EINVAL;
	*ret = json_object_get_double(v);
	return isfinite(*ret) ? 0 : -EINVAL;
}

/* Room for the members of the map or list KEY in *V. Absent: none. */
static int read_room(struct json_object *o, const char *key, enum json_type type, size_t size,
		     struct json_object **ret, void **v)
{
	size_t n;

	*ret = member(o, key);
	if (!*ret)
		return 0;
	if (!json_object_is_type(*ret, type))
		return -EINVAL;
	n = type == json_type_array ? json_object_array_length(*ret)
				    : (size_t)json_object_object_length(*ret);
	*v = calloc(n ? n : 1, size);
	return *v ? 0 : -ENOMEM;
}

static int read_map(struct json_object *o, const char *key, struct spec_map *ret)
{
	struct json_object *map;
	void *v = NULL;
	int err = read_room(o, key, json_type_object, sizeof(*ret->v), &map, &v);

	ret->v = v;
	if (err < 0 || !map)
		return err;
	json_object_object_foreach(map, name, value) {
		struct spec_pair *pair = &ret->v[ret->n++];

		pair->key = strdup(name);
		if (!pair->key)
			return -ENOMEM;
		err = read_string(value, &pair->value);
		if (err < 0)
			return err;
	}
	return 0;
}

static int read_counts(struct json_object *o, const char *key, struct spec_counts *ret)
{
	struct json_object *map;
	void *v = NULL;
	int err = read_room(o, key, json_type_object, sizeof(*ret->v), &map, &v);

	ret->v = v;
	if (err < 0 || !map)
		return err;
	json_object_object_foreach(map, name, value) {
		struct spec_count *count = &ret->v[ret->n++];

		count->key = strdup(name);
		if (!count->key)
			return -ENOMEM;
		if (!json_object_is_type(value, json_type_int))
			return -EINVAL;
		count->value = json_object_get_int64(value);
	}
	return 0;
}

static int read_args(struct json_object *o, struct spec_role *role)
{
	struct json_object *list;
	void *v = NULL;
	int err = read_room(o, "args", json_type_array, sizeof(*role->args), &list, &v);

	role->args = v;
	for (size_t i = 0; err == 0 && list && i < json_object_array_length(list); i++) {
		err = read_string(json_object_array_get_idx(list, i), &role->args[i]);
		role->n_args += err == 0;
	}
	return err;
}

static int read_resource(struct json_object *o, struct spec_resource *ret)
{
	struct json_object *v = member(o, "resource");
	int err;

	if (!json_object_is_type(v, json_type_object))
		return -EINVAL;
	err = read_double(v, "cpu", &ret->cpu);
	if (err == 0)
		err = read_int(v, "gpu", INT64_MIN, INT64_MAX, &ret->gpu);
	if (err == 0)
		err = read_double(v, "memMB", &ret->mem_mb);
	if (err == 0)
		err = read_map(v, "capabilities", &ret->capabilities);
	if (err == 0)
		err = read_counts(v, "devices", &ret->devices);
	return err;
}

static int read_mount(struct json_object *o, struct spec_mount *m)
{
	static const char *const types[] = {
		[SPEC_MOUNT_BIND] = "bind",
		[SPEC_MOUNT_VOLUME] = "volume",
		[SPEC_MOUNT_DEVICE] = "device",
	};
	cleanup_free char *type = NULL;
	struct json_object *read_only;
	size_t i = 0;
	int err;

	if (!json_object_is_type(o, json_type_object))
		return -EINVAL;
	err = read_text(o, "type", &type);
	while (err == 0 && i < array_size(types) && !streq(type, types[i]))
		i++;
	if (err < 0 || i == array_size(types))
		return err < 0 ? err : -EINVAL;
	m->type = (enum spec_mount_type)i;
	err = read_text(o, m->type == SPEC_MOUNT_VOLUME ? "src" : "src_path", &m->src);
	if (err == 0)
		err = read_text(o, "dst_path", &m->dst);
	if (err < 0)
		return err;
	if (m->type == SPEC_MOUNT_DEVICE)
		return read_text(o, "permissions", &m->permissions);
	read_only = member(o, "read_only");
	m->read_only = json_object_get_boolean(read_only);
	return json_object_is_type(read_only, json_type_boolean) ? 0 : -EINVAL;
}

static int read_mounts(struct json_object *o, struct spec_role *role)
{
	struct json_object *list;
	void *v = NULL;
	int err = read_room(o, "mounts", json_type_array, sizeof(*role->mounts), &list, &v);

	role->mounts = v;
	for (size_t i = 0; err == 0 && list && i < json_object_array_length(list); i++)
		err = read_mount(json_object_array_get_idx(list, i),
				 &role->mounts[role->n_mounts++]);
	return err;
}

static int read_retry(struct json_object *o, enum spec_retry *ret)
{
	cleanup_free char *name = NULL;
	int err = read_text(o, "retry_policy", &name);

	if (err < 0)
		return err;
	for (int i = SPEC_RETRY_APPLICATION; i <= SPEC_RETRY_HOT_SPARE; i++) {
		if (streq(name, spec_retry_name((enum spec_retry)i))) {
			*ret = (enum spec_retry)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int read_numbers(struct json_object *o, struct spec_role *role)
{
	int err = read_int(o, "num_replicas", 1, SPEC_MAX_REPLICAS, &role->num_replicas);

	role->min_replicas = -1;
	if (err == 0 && member(o, "min_replicas"))
		err = read_int(o, "min_replicas", -1, role->num_replicas, &role->min_replicas);
	if (err == 0)
		err = read_int(o, "max_retries", 0, INT32_MAX, &role->max_retries);
	return err;
}

static int read_role(struct json_object *o, struct spec_role *role)
{
	int err = json_object_is_type(o, json_type_object) ? 0 : -EINVAL;

	if (err == 0)
		err = read_text(o, "name", &role->name);
	if (err == 0)
		err = read_text(o, "image", &role->image);
	if (err == 0)
		err = read_option(o, "base_image", &role->base_image);
	if (err == 0)
		err = read_text(o, "entrypoint", &role->entrypoint);
	if (err == 0)
		err = read_args(o, role);
	if (err == 0)
		err = read_map(o, "env", &role->env);
	if (err == 0)
		err = read_numbers(o, role);
	if (err == 0)
		err = read_retry(o, &role->retry_policy);
	if (err == 0)
		err = read_resource(o, &role->resource);
	if (err == 0)
		err = read_counts(o, "port_map", &role->port_map);
	if (err == 0)
		err = read_mounts(o, role);
	if (err == 0)
		err = read_opaque(o, "metadata", &role->metadata);
	if (err == 0 && !role->metadata)
		err = -EINVAL;
	return err;
}

static int read_roles(struct json_object *o, struct spec_app *app)
{
	struct json_object *list;
	int64_t replicas = 0;
	void *v = NULL;
	int err = read_room(o, "roles", json_type_array, sizeof(*app->roles), &list, &v);

	app->roles = v;
	if (err == 0 && (!list || json_object_array_length(list) == 0))
		return -EINVAL;
	for (size_t i = 0; err == 0 && i < json_object_array_length(list); i++) {
		struct spec_role *role = &app->roles[app->n_roles++];

		err = read_role(json_object_array_get_idx(list, i), role);
		replicas += role->num_replicas;
		if (err == 0 && replicas > SPEC_MAX_REPLICAS)
			err = -EINVAL;
	}
	return err;
}

int spec_record_app(struct json_object *o, struct spec_app **ret)
{
	cleanup(spec_app_freep) struct spec_app *app = calloc(1, sizeof(*app));
	int err = json_object_is_type(o, json_type_object) ? 0 : -EINVAL;

	if (!app)
		return -ENOMEM;
	if (err == 0)
		err = read_text(o, "name", &app->name);
	if (err == 0)
		err = read_roles(o, app);
	if (err == 0)
		err = read_map(o, "metadata", &app->metadata);
	if (err == 0)
		err = read_option(o, "scheduler", &app->scheduler);
	if (err == 0)
		err = read_opaque(o, "scheduler_args", &app->scheduler_args);
	if (err == 0)
		*ret = take_ptr(app);
	return err;
}
