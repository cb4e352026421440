/* SPDX-License-Identifier: MIT */
/*
 * One role of an AppDef: its table of fields, the defaults, and the checks that need no other
 * role. The field names and their meaning are TorchX's.
 */
#include "spec/app_role.h"

#include <errno.h>

#include "spec/limits.h"
#include "spec/named_resource.h"

#define PORT_NAME_MAX 15

static const char *const retry_names[] = {
	[SPEC_RETRY_APPLICATION] = "APPLICATION",
	[SPEC_RETRY_REPLICA] = "REPLICA",
	[SPEC_RETRY_ROLE] = "ROLE",
	[SPEC_RETRY_HOT_SPARE] = "HOT_SPARE",
	NULL,
};

const char *spec_retry_name(enum spec_retry retry)
{
	return retry_names[retry];
}

void app_clear_map(struct spec_map *map)
{
	for (size_t i = 0; i < map->n; i++) {
		free(map->v[i].key);
		free(map->v[i].value);
	}
	free(map->v);
	*map = (struct spec_map){0};
}

static void clear_counts(struct spec_counts *counts)
{
	for (size_t i = 0; i < counts->n; i++)
		free(counts->v[i].key);
	free(counts->v);
	*counts = (struct spec_counts){0};
}

void app_clear_role(struct spec_role *role)
{
	free(role->name);
	free(role->image);
	free(role->base_image);
	free(role->entrypoint);
	for (size_t i = 0; i < role->n_args; i++)
		free(role->args[i]);
	free(role->args);
	app_clear_map(&role->env);
	spec_resource_clear(&role->resource);
	clear_counts(&role->port_map);
	for (size_t i = 0; i < role->n_mounts; i++)
		spec_mount_clear(&role->mounts[i]);
	free(role->mounts);
	free(role->metadata);
}

static void read_args(struct app_reader *r, const struct app_path *path,
		      const struct spec_yaml *node, void *member)
{
	struct spec_role *role = member;

	if (!app_is(r, path, node, SPEC_YAML_LIST,
		    "write each argument as an item, [--lr, 0.1], for there is no shell that would "
		    "split them"))
		return;
	for (size_t i = 0; i < node->n; i++) {
		struct app_path at = {.up = path, .index = i};
		char *arg = NULL;

		app_read_text(r, &at, node->v[i], &arg);
		if (!arg || !app_grow(r, &role->args, role->n_args, sizeof(*role->args)))
			free(arg);
		else
			role->args[role->n_args++] = arg;
	}
}

/* Names of variables must get through execve and the API server. */
static void check_env_name(struct app_reader *r, const struct app_path *path,
			   const struct spec_yaml *key)
{
	if (!*key->text)
		app_error(r, path, key, "the name of a variable must not be empty");
	else if (strchr(key->text, '='))
		app_error(r, path, key, "the name of a variable must not hold \"=\"");
	for (const char *s = key->text; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f) {
			app_error(r, path, key,
				  "the name of a variable must not hold control characters");
			return;
		}
	}
}

static void read_env(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member)
{
	app_read_text_map(r, path, node, member);
	if (node->type != SPEC_YAML_MAP)
		return;
	for (size_t i = 0; i < node->n; i += 2) {
		struct app_path at = {.up = path, .key = node->v[i]->text};

		check_env_name(r, &at, node->v[i]);
	}
}

/* A map of names to whole numbers from MIN to MAX. */
static void read_counts(struct app_reader *r, const struct app_path *path,
			const struct spec_yaml *node, int64_t min, int64_t max,
			struct spec_counts *counts)
{
	if (!app_is(r, path, node, SPEC_YAML_MAP, "write NAME: NUMBER"))
		return;
	for (size_t i = 0; i < node->n; i += 2) {
		struct app_path at = {.up = path, .key = node->v[i]->text};
		struct spec_count count = {0};

		if (!app_int(r, &at, node->v[i + 1], min, max, &count.value) ||
		    !app_grow(r, &counts->v, counts->n, sizeof(*counts->v)))
			continue;
		count.key = strdup(node->v[i]->text);
		if (!count.key)
			app_no_memory(r);
		counts->v[counts->n++] = count;
	}
}

/* --- ports --- */

/* What is wrong with the name of a port; NULL: nothing. The rules are Kubernetes's. */
static const char *port_name_error(const char *name)
{
	size_t len = strlen(name);

	if (len == 0)
		return "the name of a port must not be empty";
	if (len > PORT_NAME_MAX)
		return "the name of a port must have at most 15 characters";
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != len)
		return "the name of a port must be of lower-case letters, digits and -";
	if (!strpbrk(name, "abcdefghijklmnopqrstuvwxyz"))
		return "the name of a port must hold a letter";
	if (name[0] == '-' || name[len - 1] == '-' || strstr(name, "--"))
		return "the name of a port must not begin or end with -, nor hold --";
	return NULL;
}

/* Each number once; there are at most 65535, and a set of them costs little. */
static void check_port_numbers(struct app_reader *r, const struct app_path *path,
			       const struct spec_yaml *node)
{
	uint8_t seen[65536 / 8] = {0};

	for (size_t i = 0; i < node->n; i += 2) {
		struct app_path at = {.up = path, .key = node->v[i]->text};
		const struct spec_yaml *value = node->v[i + 1];
		long port = spec_yaml_resolve(value) == SPEC_YAML_INT
				    ? strtol(value->text, NULL, 10)
				    : 0;

		if (port < 1 || port > 65535)
			continue;
		if (seen[port / 8] & 1u << port % 8)
			app_error(r, &at, value, "port %ld has another name already", port);
		seen[port / 8] |= (uint8_t)(1u << port % 8);
	}
}

static void read_ports(struct app_reader *r, const struct app_path *path,
		       const struct spec_yaml *node, void *member)
{
	read_counts(r, path, node, 1, 65535, member);
	if (node->type != SPEC_YAML_MAP)
		return;
	for (size_t i = 0; i < node->n; i += 2) {
		struct app_path at = {.up = path, .key = node->v[i]->text};
		const char *error = port_name_error(node->v[i]->text);

		if (error)
			app_error(r, &at, node->v[i], "%s", error);
	}
	check_port_numbers(r, path, node);
}

/* --- resources --- */

static void read_gpu(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member)
{
	app_int(r, path, node, INT32_MIN, INT32_MAX, member);
}

static void read_devices(struct app_reader *r, const struct app_path *path,
			 const struct spec_yaml *node, void *member)
{
	read_counts(r, path, node, 0, INT32_MAX, member);
}

static void read_capabilities(struct app_reader *r, const struct app_path *path,
			      const struct spec_yaml *node, void *member)
{
	struct spec_map *map = member;

	if (!app_is(r, path, node, SPEC_YAML_MAP, "write NAME: VALUE"))
		return;
	for (size_t i = 0; i < node->n; i += 2) {
		const struct spec_yaml *value = node->v[i + 1];
		struct app_path at = {.up = path, .key = node->v[i]->text};
		struct spec_pair pair = {0};

		if (!app_is(r, &at, value, value->type, ""))
			continue;
		pair.value = app_any(r, &at, value);
		if (!pair.value || !app_grow(r, &map->v, map->n, sizeof(*map->v))) {
			free(pair.value);
			continue;
		}
		pair.key = strdup(node->v[i]->text);
		if (!pair.key)
			app_no_memory(r);
		map->v[map->n++] = pair;
	}
}

const struct app_field app_resource_fields[] = {
	{"cpu", true, app_read_number, offsetof(struct spec_resource, cpu)},
	{"gpu", true, read_gpu, offsetof(struct spec_resource, gpu)},
	{"memMB", true, app_read_number, offsetof(struct spec_resource, mem_mb)},
	{"capabilities", false, read_capabilities, offsetof(struct spec_resource, capabilities)},
	{"devices", false, read_devices, offsetof(struct spec_resource, devices)},
	{0},
};

static void read_named_resource(struct app_reader *r, const struct app_path *path,
				const struct spec_yaml *node, struct spec_resource *resource)
{
	const char *near = NULL;
	int err = spec_named_resource(node->text, resource, &near);

	if (err == -ENOMEM)
		app_no_memory(r);
	else if (err < 0 && near)
		app_error(r, path, node, "there is no resource \"%s\"; did you mean %s?",
			  node->text, near);
	else if (err < 0)
		app_error(
			r, path, node,
			"there is no resource \"%s\"; appdef(5) lists them, or write a map: {cpu: "
			"1, gpu: 0, memMB: 1024}",
			node->text);
}

static void read_resource(struct app_reader *r, const struct app_path *path,
			  const struct spec_yaml *node, void *member)
{
	if (node->type == SPEC_YAML_MAP)
		app_read_map(r, path, node, app_resource_fields, member);
	else if (app_is(r, path, node, SPEC_YAML_SCALAR,
			"write the name of a resource, or a map: {cpu: 1, gpu: 0, memMB: 1024}"))
		read_named_resource(r, path, node, member);
}

/* --- mounts --- */

static void read_mount(struct app_reader *r, const struct app_path *path,
		       const struct spec_yaml *node, struct spec_role *role)
{
	cleanup_free char *where = app_path_text(r, path);

	if (where)
		spec_mount_parse(node, where, r->home, &role->mounts, &role->n_mounts, r->e);
}

static void read_mounts(struct app_reader *r, const struct app_path *path,
			const struct spec_yaml *node, void *member)
{
	struct spec_role *role = member;

	if (node->type == SPEC_YAML_SCALAR) {
		read_mount(r, path, node, role);
		return;
	}
	if (!app_is(r, path, node, SPEC_YAML_LIST, "begin each mount with \"- \""))
		return;
	for (size_t i = 0; i < node->n; i++) {
		struct app_path at = {.up = path, .index = i};

		read_mount(r, &at, node->v[i], role);
	}
}

/* --- replicas and retries --- */

static void read_num_replicas(struct app_reader *r, const struct app_path *path,
			      const struct spec_yaml *node, void *member)
{
	app_int(r, path, node, 1, SPEC_MAX_REPLICAS, member);
}

/* min_replicas, max_retries: not negative */
static void read_limit(struct app_reader *r, const struct app_path *path,
		       const struct spec_yaml *node, void *member)
{
	app_int(r, path, node, 0, INT32_MAX, member);
}

static void read_retry_policy(struct app_reader *r, const struct app_path *path,
			      const struct spec_yaml *node, void *member)
{
	enum spec_retry *retry = member;
	const char *near;

	if (!app_is(r, path, node, SPEC_YAML_SCALAR, ""))
		return;
	for (size_t i = 0; retry_names[i]; i++) {
		if (streq(node->text, retry_names[i])) {
			*retry = (enum spec_retry)i;
			return;
		}
	}
	near = spec_suggest(node->text, retry_names);
	app_error(r, path, node, "there is no policy \"%s\"; %s%s%s", node->text,
		  near ? "did you mean " : "it is APPLICATION, REPLICA, ROLE or HOT_SPARE",
		  near ? near : "", near ? "?" : "");
}

static void check_min_replicas(struct app_reader *r, const struct app_path *path,
			       const struct spec_yaml *node, const struct spec_role *role)
{
	struct app_path at = {.up = path, .key = "min_replicas"};
	const struct spec_yaml *min = spec_yaml_get(node, at.key);

	if (min && role->min_replicas > role->num_replicas)
		app_error(r, &at, min, "is %lld, more than num_replicas, which is %lld",
			  (long long)role->min_replicas, (long long)role->num_replicas);
}

const struct app_field app_role_fields[] = {
	{"name", true, app_read_name, offsetof(struct spec_role, name)},
	{"image", true, app_read_word, offsetof(struct spec_role, image)},
	{"entrypoint", true, app_read_word, offsetof(struct spec_role, entrypoint)},
	{"args", false, read_args, 0},
	{"env", false, read_env, offsetof(struct spec_role, env)},
	{"num_replicas", false, read_num_replicas, offsetof(struct spec_role, num_replicas)},
	{"min_replicas", false, read_limit, offsetof(struct spec_role, min_replicas)},
	{"max_retries", false, read_limit, offsetof(struct spec_role, max_retries)},
	{"retry_policy", false, read_retry_policy, offsetof(struct spec_role, retry_policy)},
	{"resource", false, read_resource, offsetof(struct spec_role, resource)},
	{"port_map", false, read_ports, offsetof(struct spec_role, port_map)},
	{"mounts", false, read_mounts, 0},
	{"metadata", false, app_read_json, offsetof(struct spec_role, metadata)},
	{"base_image", false, app_read_text, offsetof(struct spec_role, base_image)},
	{0},
};

void app_read_role(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   struct spec_role *role)
{
	role->num_replicas = 1;
	role->min_replicas = -1;
	role->resource.cpu = role->resource.gpu = -1;
	role->resource.mem_mb = -1;
	if (!app_is(r, path, node, SPEC_YAML_MAP, "a role has name, image, entrypoint"))
		return;
	app_read_map(r, path, node, app_role_fields, role);
	check_min_replicas(r, path, node, role);
	if (!role->metadata) {
		role->metadata = strdup("{}");
		if (!role->metadata)
			app_no_memory(r);
	}
}
