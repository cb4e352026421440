/* SPDX-License-Identifier: MIT */
/* Reads the AppDef and its roles. Reports errors that a cluster would report only later. */
#include "spec/app/app.h"

#include <errno.h>
#include <json-c/linkhash.h>

#include "spec/app/app_value.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define SUFFIX_LEN    (SPEC_SUFFIX_MAX - 1)
#define PORT_NAME_MAX 15
#define MISSING	      "<MISSING>"

#define FIELD(key, must, reader, at)                                                               \
	{                                                                                          \
		.name = key, .required = must, .load = reader, .offset = at                        \
	}
/* An optional field. TorchX writes null if the field is not set. */
#define NULLABLE(key, reader, at)                                                                  \
	{                                                                                          \
		.name = key, .nullable = true, .load = reader, .offset = at                        \
	}
#define NUMBER(key, must, at, least, most)                                                         \
	{                                                                                          \
		.name = key, .required = must, .offset = at, .min = least, .max = most             \
	}

define_cleanup(free_table, struct lh_table *, lh_table_free)

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

static void counts_clear(struct spec_counts *counts)
{
	for (size_t i = 0; i < counts->n; i++)
		free(counts->v[i].key);
	free(counts->v);
	*counts = (struct spec_counts){0};
}

void spec_resource_clear(struct spec_resource *r)
{
	spec_map_clear(&r->capabilities);
	counts_clear(&r->devices);
	*r = (struct spec_resource){0};
}

void spec_app_free(struct spec_app *app)
{
	if (!app)
		return;
	free(app->name);
	for (size_t i = 0; i < app->n_roles; i++) {
		struct spec_role *role = &app->roles[i];

		free(role->name);
		free(role->image);
		free(role->entrypoint);
		for (size_t k = 0; k < role->n_args; k++)
			free(role->args[k]);
		free(role->args);
		spec_map_clear(&role->env);
		spec_resource_clear(&role->resource);
		counts_clear(&role->port_map);
		for (size_t k = 0; k < role->n_mounts; k++)
			spec_mount_clear(&role->mounts[k]);
		free(role->mounts);
		free(role->metadata);
	}
	free(app->roles);
	free(app->scheduler);
	free(app->scheduler_args);
	free(app);
}

/* --- roles --- */

/* TorchX writes MISSING into the AppDef if there is no entrypoint. */
static void read_entrypoint(struct app_reader *r, const struct app_path *path,
			    const struct spec_yaml *node, void *member)
{
	if (node->type == SPEC_YAML_SCALAR && streq(node->text, MISSING))
		app_error(r, path, node,
			  "is %s, TorchX's mark for a missing entrypoint: name a program", MISSING);
	else
		app_read_word(r, path, node, member);
}

static void read_args(struct app_reader *r, const struct app_path *path,
		      const struct spec_yaml *node, void *member)
{
	struct spec_role *role = member;

	if (!app_is(r, path, node, SPEC_YAML_LIST,
		    "write each argument as a separate item, as in [--lr, 0.1]: no shell "
		    "splits a text into arguments"))
		return;
	for (size_t i = 0; i < node->n; i++) {
		struct app_path at = {.up = path, .index = i};
		char *arg = NULL;

		app_read_text(r, &at, node->v[i], &arg);
		if (arg)
			*(char **)app_add(&role->args, &role->n_args, sizeof(arg)) = arg;
	}
}

/*
 * Read a map of environment variables. execve does not allow a "=" in their names, and the API
 * server accepts only printable ASCII.
 */
static void read_env(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member)
{
	struct spec_map *map = member;

	if (!app_is(r, path, node, SPEC_YAML_MAP, "write NAME: VALUE"))
		return;
	for (size_t i = 0; i < node->n; i += 2) {
		const struct spec_yaml *key = node->v[i], *value = node->v[i + 1];
		struct app_path at = {.up = path, .key = key->text};
		const char *s = key->text;
		struct spec_pair *pair;

		if (!*s)
			app_error(r, &at, key, "the name of a variable must not be empty");
		else if (strchr(s, '='))
			app_error(r, &at, key, "the name of a variable must not contain \"=\"");
		while (*s >= 0x20 && *s <= 0x7e)
			s++;
		if (*s)
			app_error(r, &at, key,
				  "the name of a variable may contain only printable "
				  "ASCII characters");
		if (!app_is(r, &at, value, SPEC_YAML_SCALAR, ""))
			continue;
		pair = app_add(&map->v, &map->n, sizeof(*pair));
		*pair = (struct spec_pair){text_copy(key->text), text_copy(value->text)};
	}
}

/* Read a map from names to whole numbers, each between MIN and MAX. */
static void read_counts(struct app_reader *r, const struct app_path *path,
			const struct spec_yaml *node, int64_t min, int64_t max,
			struct spec_counts *counts)
{
	if (!app_is(r, path, node, SPEC_YAML_MAP, "write NAME: NUMBER"))
		return;
	for (size_t i = 0; i < node->n; i += 2) {
		struct app_path at = {.up = path, .key = node->v[i]->text};
		struct spec_count *count;
		int64_t value;

		if (!app_int(r, &at, node->v[i + 1], min, max, &value))
			continue;
		count = app_add(&counts->v, &counts->n, sizeof(*count));
		count->key = text_copy(node->v[i]->text);
		count->value = value;
	}
}

/* Return why Kubernetes would refuse NAME as the name of a port; NULL if it would accept NAME. */
static const char *port_name_error(const char *name)
{
	size_t len = strlen(name);

	if (len == 0)
		return "the name of a port must not be empty";
	if (len > PORT_NAME_MAX)
		return "the name of a port must have at most 15 characters";
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != len)
		return "the name of a port may contain only lower-case letters, digits and -";
	if (!strpbrk(name, "abcdefghijklmnopqrstuvwxyz"))
		return "the name of a port must contain a letter";
	if (name[0] == '-' || name[len - 1] == '-' || strstr(name, "--"))
		return "the name of a port must not begin or end with -, or contain --";
	return NULL;
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
		struct spec_pair *pair;
		char *text;

		if (!app_is(r, &at, value, value->type, ""))
			continue;
		text = app_any(r, &at, value);
		if (!text)
			continue;
		pair = app_add(&map->v, &map->n, sizeof(*pair));
		pair->key = text_copy(node->v[i]->text);
		pair->value = text;
	}
}

/* Ignore a field that has no effect on jobs. */
static void skip(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		 void *member)
{
}

static const struct app_field resource_fields[] = {
	FIELD("cpu", true, app_read_number, offsetof(struct spec_resource, cpu)),
	NUMBER("gpu", true, offsetof(struct spec_resource, gpu), INT32_MIN, INT32_MAX),
	FIELD("memMB", true, app_read_number, offsetof(struct spec_resource, mem_mb)),
	FIELD("capabilities", false, read_capabilities,
	      offsetof(struct spec_resource, capabilities)),
	FIELD("devices", false, read_devices, offsetof(struct spec_resource, devices)),
	FIELD("tags", false, skip, 0),
	{0},
};

static void read_resource(struct app_reader *r, const struct app_path *path,
			  const struct spec_yaml *node, void *member)
{
	const char *near = NULL;

	if (node->type == SPEC_YAML_MAP) {
		app_read_map(r, path, node, resource_fields, member);
		return;
	}
	if (!app_is(r, path, node, SPEC_YAML_SCALAR,
		    "write the name of a resource, or a map: {cpu: 1, gpu: 0, memMB: 1024}") ||
	    spec_named_resource(node->text, member, &near) == 0)
		return;
	if (near)
		app_error(r, path, node, "there is no resource \"%s\"; did you mean %s?",
			  node->text, near);
	else
		app_error(
			r, path, node,
			"there is no resource \"%s\"; appdef(5) lists them, or write a map: {cpu: "
			"1, gpu: 0, memMB: 1024}",
			node->text);
}

static void read_mounts(struct app_reader *r, const struct app_path *path,
			const struct spec_yaml *node, void *member)
{
	struct spec_role *role = member;

	if (node->type == SPEC_YAML_SCALAR) {
		app_read_mount(r, path, node, role);
		return;
	}
	if (!app_is(r, path, node, SPEC_YAML_LIST, "begin each mount with \"- \""))
		return;
	for (size_t i = 0; i < node->n; i++) {
		struct app_path at = {.up = path, .index = i};

		app_read_mount(r, &at, node->v[i], role);
	}
}

/* --- fields that kxfs does not support --- */

/* True if NODE is an empty text, map or list, or the empty workspace {projects: {}}. */
static bool is_empty(const struct spec_yaml *node)
{
	const struct spec_yaml *projects = node->n == 2 ? spec_yaml_get(node, "projects") : NULL;

	if (projects && projects->type == SPEC_YAML_MAP)
		return projects->n == 0;
	return node->type == SPEC_YAML_SCALAR ? node->len == 0 : node->n == 0;
}

static void read_workspace(struct app_reader *r, const struct app_path *path,
			   const struct spec_yaml *node, void *member)
{
	if (!is_empty(node))
		app_error(r, path, node,
			  "is not empty, but kxfs does not build images: launch the app with "
			  "torchx run -s kxfs, which builds them, or leave the workspace out "
			  "(torchx run --workspace \"\")");
}

static void read_overrides(struct app_reader *r, const struct app_path *path,
			   const struct spec_yaml *node, void *member)
{
	if (!is_empty(node))
		app_error(r, path, node,
			  "is not empty, but kxfs does not apply it: write the values into the "
			  "fields of the role, and leave this field out");
}

static void read_retry_policy(struct app_reader *r, const struct app_path *path,
			      const struct spec_yaml *node, void *member)
{
	enum spec_retry *retry = member;
	cleanup_free char *hint = NULL;

	if (!app_is(r, path, node, SPEC_YAML_SCALAR, ""))
		return;
	for (size_t i = 0; retry_names[i]; i++) {
		if (streq(node->text, retry_names[i])) {
			*retry = (enum spec_retry)i;
			return;
		}
	}
	hint = spec_suggestion(node->text, retry_names,
			       "; use APPLICATION, REPLICA, ROLE or HOT_SPARE");
	app_error(r, path, node, "there is no policy \"%s\"%s", node->text, hint);
}

static const struct app_field role_fields[] = {
	FIELD("name", true, app_read_name, offsetof(struct spec_role, name)),
	FIELD("image", true, app_read_word, offsetof(struct spec_role, image)),
	FIELD("entrypoint", true, read_entrypoint, offsetof(struct spec_role, entrypoint)),
	FIELD("args", false, read_args, 0),
	FIELD("env", false, read_env, offsetof(struct spec_role, env)),
	NUMBER("num_replicas", false, offsetof(struct spec_role, num_replicas), 1,
	       SPEC_MAX_REPLICAS),
	{
		.name = "min_replicas",
		.nullable = true,
		.offset = offsetof(struct spec_role, min_replicas),
		.max = INT32_MAX,
	},
	NUMBER("max_retries", false, offsetof(struct spec_role, max_retries), 0, INT32_MAX),
	FIELD("retry_policy", false, read_retry_policy, offsetof(struct spec_role, retry_policy)),
	FIELD("resource", false, read_resource, offsetof(struct spec_role, resource)),
	FIELD("port_map", false, read_ports, offsetof(struct spec_role, port_map)),
	FIELD("mounts", false, read_mounts, 0),
	FIELD("metadata", false, app_read_object, offsetof(struct spec_role, metadata)),
	NULLABLE("base_image", skip, 0),
	NULLABLE("workspace", read_workspace, 0),
	FIELD("overrides", false, read_overrides, 0),
	{0},
};

/* --- fields of the AppDef --- */

static void read_roles(struct app_reader *r, const struct app_path *path,
		       const struct spec_yaml *node, void *member)
{
	struct spec_app *app = member;
	size_t tasks = 0;

	if (!app_is(r, path, node, SPEC_YAML_LIST, "begin each role with \"- name: \""))
		return;
	if (node->n == 0)
		app_error(r, path, node, "must contain at least one role");
	for (size_t i = 0; i < node->n; i++) {
		const struct spec_yaml *in = node->v[i], *min = spec_yaml_get(in, "min_replicas");
		struct app_path at = {.up = path, .index = i};
		struct app_path min_at = {.up = &at, .key = "min_replicas"};
		struct spec_role *role = app_add(&app->roles, &app->n_roles, sizeof(*role));

		role->num_replicas = 1;
		role->min_replicas = -1;
		role->resource.cpu = role->resource.gpu = -1;
		role->resource.mem_mb = -1;
		if (app_is(r, &at, in, SPEC_YAML_MAP,
			   "write a role as a map with name, image "
			   "and entrypoint"))
			app_read_map(r, &at, in, role_fields, role);
		if (min && role->min_replicas > role->num_replicas)
			app_error(r, &min_at, min, "is %lld, more than num_replicas, which is %lld",
				  (long long)role->min_replicas, (long long)role->num_replicas);
		if (!role->metadata)
			role->metadata = text_copy("{}");
		tasks += (size_t)role->num_replicas;
	}
	if (tasks > SPEC_MAX_REPLICAS)
		spec_errors_add(r->e, -EFBIG, node->line, node->column, "roles",
				"there are %zu replicas in total; a job can have at most %u", tasks,
				SPEC_MAX_REPLICAS);
}

static void read_scheduler(struct app_reader *r, const struct app_path *path,
			   const struct spec_yaml *node, void *member)
{
	const char *names[SPEC_MAX_SCHEDULERS + 1] = {NULL};
	cleanup_free char *all = NULL, *hint = NULL;
	size_t n = r->rules->n_known;

	if (!app_is(r, path, node, SPEC_YAML_SCALAR, ""))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct spec_scheduler *known = &r->rules->known[i];

		names[i] = known->name;
		if (streq(node->text, known->name) || streq(node->text, known->torchx)) {
			*(char **)member = text_copy(known->name);
			return;
		}
		text_set(&all, "%s%s%s", all ? all : "; use ",
			 !all	     ? ""
			 : i + 1 < n ? ", "
				     : " or ",
			 names[i]);
	}
	hint = spec_suggestion(node->text, names, all);
	app_error(r, path, node, "there is no scheduler \"%s\"%s", node->text, hint);
}

static const struct app_field app_fields[] = {
	FIELD("name", true, app_read_name, offsetof(struct spec_app, name)),
	FIELD("roles", true, read_roles, 0),
	FIELD("metadata", false, skip, 0),
	FIELD("scheduler", false, read_scheduler, offsetof(struct spec_app, scheduler)),
	FIELD("scheduler_args", false, app_read_json, offsetof(struct spec_app, scheduler_args)),
	{0},
};

/* --- checks of names --- */

struct checker {
	struct app_reader *r;
	const struct spec_app *app;
	const struct spec_yaml *root;
	const struct spec_scheduler *scheduler; /* AppDefs must obey its rules for names */
	struct lh_table *tasks;			/* normalized role name -> index + 1 */
	size_t app_len;				/* length of the normalized app name */
	/* length of the longest pod name; 0 if the scheduler shortens names */
	size_t pod_len;
	size_t pod_role; /* index of the role with the longest pod name */
};

/*
 * Return the normal form of NAME, which kxfs uses in the names of jobs and pods. If the normal form
 * is empty, add an error and return NULL.
 */
static char *norm(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		  const char *name)
{
	char *ret = spec_name_norm(name);

	if (*ret)
		return ret;
	app_error(r, path, node,
		  "must contain a letter or digit (A-Z, a-z, 0-9), because kxfs derives the names "
		  "of jobs and pods from this name");
	free(ret);
	return NULL;
}

/*
 * Take ownership of NAME, the normal form of the name of role I. Each task of a job needs a
 * different name, so add an error if NAME is also the normal form of an earlier role's name.
 */
static void check_task(struct checker *c, const struct app_path *path, const struct spec_yaml *node,
		       size_t i, char *name)
{
	struct lh_entry *found = lh_table_lookup_entry(c->tasks, name);
	size_t other;

	if (!found) {
		if (lh_table_insert(c->tasks, name, (void *)(uintptr_t)(i + 1)) < 0)
			mem_out();
		return;
	}
	other = (size_t)(uintptr_t)lh_entry_v(found) - 1;
	if (streq(c->app->roles[i].name, c->app->roles[other].name))
		app_error(c->r, path, node, "roles[%zu] has the same name", other);
	else
		app_error(c->r, path, node,
			  "\"%s\" and roles[%zu], \"%s\", would have the same task name, \"%s\", "
			  "because kxfs keeps only a-z, 0-9 and - of a name; rename one of these "
			  "roles",
			  c->app->roles[i].name, other, c->app->roles[other].name, name);
	free(name);
}

static void check_roles(struct checker *c)
{
	const struct app_path roles = {.key = "roles"};
	const struct spec_yaml *list = spec_yaml_get(c->root, "roles");
	size_t tasks = 0;

	for (size_t i = 0; i < c->app->n_roles; i++) {
		const struct app_path role = {.up = &roles, .index = i};
		const struct app_path path = {.up = &role, .key = "name"};
		const struct spec_yaml *node = spec_yaml_get(list->v[i], "name");
		size_t n = (size_t)c->app->roles[i].num_replicas, len = 0;
		char *name;

		tasks += n;
		if (!c->app->roles[i].name)
			continue;
		name = norm(c->r, &path, node, c->app->roles[i].name);
		if (!name)
			continue;
		if (c->scheduler->pod_name_len)
			len = c->scheduler->pod_name_len(c->app_len, strlen(name), n - 1,
							 tasks - 1);
		if (len > c->pod_len) {
			c->pod_len = len;
			c->pod_role = i;
		}
		check_task(c, &path, node, i, name);
	}
}

static void free_name(struct lh_entry *entry)
{
	free(lh_entry_k(entry));
}

static const struct spec_scheduler *find_scheduler(const struct spec_app_rules *rules,
						   const char *name)
{
	for (size_t i = 0; name && i < rules->n_known; i++) {
		if (streq(rules->known[i].name, name))
			return &rules->known[i];
	}
	return NULL;
}

static void check_names(struct app_reader *r, const struct spec_app *app,
			const struct spec_yaml *root, const struct spec_scheduler *scheduler)
{
	cleanup(free_table) struct lh_table *tasks = lh_kchar_table_new(16, free_name);
	const struct app_path path = {.key = "name"};
	const struct spec_yaml *node = spec_yaml_get(root, "name");
	struct checker c = {.r = r,
			    .app = app,
			    .root = root,
			    .scheduler = scheduler ? scheduler : &r->rules->known[0],
			    .tasks = tasks};
	cleanup_free char *name = NULL;

	if (!tasks)
		mem_out();
	if (app->name)
		name = norm(r, &path, node, app->name);
	c.app_len = name ? strlen(name) : 0;
	check_roles(&c);
	if (name && c.pod_len > SPEC_MAX_NAME)
		app_error(r, &path, node,
			  "pods of role \"%s\" would have names of %zu characters, but at most %u "
			  "are allowed; shorten the names of the app and the role by a total of "
			  "%zu (a job's name has a suffix of %d characters)",
			  app->roles[c.pod_role].name, c.pod_len, SPEC_MAX_NAME,
			  c.pod_len - SPEC_MAX_NAME, SUFFIX_LEN + 1);
}

/* --- the document --- */

int spec_app_read(const struct spec_yaml *root, const struct spec_app_rules *rules,
		  struct spec_app **ret, struct spec_errors *e)
{
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	struct app_reader r = {.rules = rules, .e = e};
	const struct app_path path = {.key = "scheduler"};
	const struct spec_scheduler *its;

	if (!app_is(&r, NULL, root, SPEC_YAML_MAP, "an AppDef begins with \"name: \""))
		return e->err;
	app = new0(struct spec_app);
	app_read_map(&r, NULL, root, app_fields, app);
	its = find_scheduler(rules, rules->scheduler);
	if (its && app->scheduler && !streq(app->scheduler, its->name) &&
	    !(its->also && streq(app->scheduler, its->also)))
		app_error(&r, &path, spec_yaml_get(root, "scheduler"),
			  "is %s, but this mount submits jobs to %s", app->scheduler, its->name);
	check_names(&r, app, root, its ? its : find_scheduler(rules, app->scheduler));
	if (e->err)
		return e->err;
	*ret = take_ptr(app);
	return 0;
}
