/* SPDX-License-Identifier: MIT */
/*
 * JSON -> struct spec_app. Types and ranges are checked, since the text comes from a disk; names and the
 * like were checked when the file was submitted and harm nobody if they are odd. Each function notes in
 * the reader that something is wrong and goes on; what was read until then is released by the caller.
 */
#include "spec/record/record_app.h"

#include <errno.h>
#include <math.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/tree.h"

struct reader {
	bool bad; /* something was not as spec_app_json writes it */
};

/* The member KEY of O; NULL: absent or null, or O is no map. */
static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *ret = NULL;

	return json_object_object_get_ex(o, key, &ret) ? ret : NULL;
}

/* A copy of a JSON string. A NUL in it would cut it, so it is refused. "" is returned for what is no string. */
static char *read_string(struct reader *r, struct json_object *v)
{
	const char *text =
		json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";

	r->bad |= !json_object_is_type(v, json_type_string) ||
		  strlen(text) != (size_t)json_object_get_string_len(v);
	return text_copy(text);
}

static char *read_text(struct reader *r, struct json_object *o, const char *key)
{
	return read_string(r, member(o, key));
}

/* As read_text, but the member may be absent: NULL. */
static char *read_option(struct reader *r, struct json_object *o, const char *key)
{
	return member(o, key) ? read_text(r, o, key) : NULL;
}

/* A map that the program does not look into, as its JSON text; absent: NULL. */
static char *read_opaque(struct reader *r, struct json_object *o, const char *key)
{
	struct json_object *v = member(o, key);

	r->bad |= v && !json_object_is_type(v, json_type_object);
	return v ? spec_tree_print(v) : NULL;
}

static int64_t read_int(struct reader *r, struct json_object *o, const char *key, int64_t min,
			int64_t max)
{
	struct json_object *v = member(o, key);
	int64_t ret = json_object_get_int64(v);

	r->bad |= !json_object_is_type(v, json_type_int) || ret < min || ret > max;
	return ret;
}

static double read_double(struct reader *r, struct json_object *o, const char *key)
{
	struct json_object *v = member(o, key);
	double ret = json_object_get_double(v);

	r->bad |= (!json_object_is_type(v, json_type_int) &&
		   !json_object_is_type(v, json_type_double)) ||
		  !isfinite(ret);
	return ret;
}

/* The map KEY of O; NULL: it is absent, which is allowed, or it is no map, which is not. */
static struct json_object *read_map(struct reader *r, struct json_object *o, const char *key)
{
	struct json_object *map = member(o, key);
	bool is_map = json_object_is_type(map, json_type_object);

	r->bad |= map && !is_map;
	return is_map ? map : NULL;
}

/* The same of a list; *RET_N is its length. */
static struct json_object *read_list(struct reader *r, struct json_object *o, const char *key,
				     size_t *ret_n)
{
	struct json_object *list = member(o, key);
	bool is_list = json_object_is_type(list, json_type_array);

	r->bad |= list && !is_list;
	*ret_n = is_list ? json_object_array_length(list) : 0;
	return list;
}

static void read_texts(struct reader *r, struct json_object *o, const char *key,
		       struct spec_map *ret)
{
	struct json_object *map = read_map(r, o, key);

	if (!map)
		return;
	ret->v = new0_n(struct spec_pair, (size_t)json_object_object_length(map));
	json_object_object_foreach(map, name, value)
		ret->v[ret->n++] = (struct spec_pair){text_copy(name), read_string(r, value)};
}

static void read_counts(struct reader *r, struct json_object *o, const char *key,
			struct spec_counts *ret)
{
	struct json_object *map = read_map(r, o, key);

	if (!map)
		return;
	ret->v = new0_n(struct spec_count, (size_t)json_object_object_length(map));
	json_object_object_foreach(map, name, value) {
		r->bad |= !json_object_is_type(value, json_type_int);
		ret->v[ret->n++] =
			(struct spec_count){text_copy(name), json_object_get_int64(value)};
	}
}

static void read_resource(struct reader *r, struct json_object *role, struct spec_resource *ret)
{
	struct json_object *o = member(role, "resource");

	ret->cpu = read_double(r, o, "cpu");
	ret->gpu = read_int(r, o, "gpu", INT64_MIN, INT64_MAX);
	ret->mem_mb = read_double(r, o, "memMB");
	read_texts(r, o, "capabilities", &ret->capabilities);
	read_counts(r, o, "devices", &ret->devices);
}

static void read_mount(struct reader *r, struct json_object *o, struct spec_mount *m)
{
	static const char *const types[] = {
		[SPEC_MOUNT_BIND] = "bind",
		[SPEC_MOUNT_VOLUME] = "volume",
		[SPEC_MOUNT_DEVICE] = "device",
	};
	cleanup_free char *type = read_text(r, o, "type");
	struct json_object *read_only = member(o, "read_only");
	size_t i = 0;

	while (i < array_size(types) && !streq(type, types[i]))
		i++;
	if (i == array_size(types)) {
		r->bad = true;
		return;
	}
	m->type = (enum spec_mount_type)i;
	m->src = read_text(r, o, m->type == SPEC_MOUNT_VOLUME ? "src" : "src_path");
	m->dst = read_text(r, o, "dst_path");
	if (m->type == SPEC_MOUNT_DEVICE) {
		m->permissions = read_text(r, o, "permissions");
		return;
	}
	m->read_only = json_object_get_boolean(read_only);
	r->bad |= !json_object_is_type(read_only, json_type_boolean);
}

static enum spec_retry read_retry(struct reader *r, struct json_object *o)
{
	cleanup_free char *name = read_text(r, o, "retry_policy");

	for (int i = SPEC_RETRY_APPLICATION; i <= SPEC_RETRY_HOT_SPARE; i++) {
		if (streq(name, spec_retry_name((enum spec_retry)i)))
			return (enum spec_retry)i;
	}
	r->bad = true;
	return SPEC_RETRY_APPLICATION;
}

static void read_role(struct reader *r, struct json_object *o, struct spec_role *role)
{
	struct json_object *list;

	role->name = read_text(r, o, "name");
	role->image = read_text(r, o, "image");
	role->base_image = read_option(r, o, "base_image");
	role->entrypoint = read_text(r, o, "entrypoint");
	list = read_list(r, o, "args", &role->n_args);
	role->args = new0_n(char *, role->n_args);
	for (size_t i = 0; i < role->n_args; i++)
		role->args[i] = read_string(r, json_object_array_get_idx(list, i));
	read_texts(r, o, "env", &role->env);
	role->num_replicas = read_int(r, o, "num_replicas", 1, SPEC_MAX_REPLICAS);
	role->min_replicas = -1;
	if (member(o, "min_replicas"))
		role->min_replicas = read_int(r, o, "min_replicas", -1, role->num_replicas);
	role->max_retries = read_int(r, o, "max_retries", 0, INT32_MAX);
	role->retry_policy = read_retry(r, o);
	read_resource(r, o, &role->resource);
	read_counts(r, o, "port_map", &role->port_map);
	list = read_list(r, o, "mounts", &role->n_mounts);
	role->mounts = new0_n(struct spec_mount, role->n_mounts);
	for (size_t i = 0; i < role->n_mounts; i++)
		read_mount(r, json_object_array_get_idx(list, i), &role->mounts[i]);
	role->metadata = read_opaque(r, o, "metadata");
	r->bad |= !role->metadata;
}

int spec_record_app(struct json_object *o, struct spec_app **ret)
{
	cleanup(spec_app_freep) struct spec_app *app = new0(struct spec_app);
	struct reader r = {0};
	struct json_object *list;
	int64_t replicas = 0;

	app->name = read_text(&r, o, "name");
	list = read_list(&r, o, "roles", &app->n_roles);
	app->roles = new0_n(struct spec_role, app->n_roles);
	for (size_t i = 0; i < app->n_roles && !r.bad; i++) {
		read_role(&r, json_object_array_get_idx(list, i), &app->roles[i]);
		if (!r.bad)
			replicas += app->roles[i].num_replicas;
		r.bad |= replicas > SPEC_MAX_REPLICAS;
	}
	read_texts(&r, o, "metadata", &app->metadata);
	app->scheduler = read_option(&r, o, "scheduler");
	app->scheduler_args = read_opaque(&r, o, "scheduler_args");
	if (r.bad || app->n_roles == 0)
		return -EINVAL;
	*ret = take_ptr(app);
	return 0;
}
