/* SPDX-License-Identifier: MIT */
/*
 * The AppDef as a whole: its own fields, the checks that look at several roles, and what a
 * cluster would refuse later, refused now. One role is app_role.c's, single values app_value.c's.
 */
#include "spec/app.h"

#include <errno.h>
#include <json-c/linkhash.h>

#include "spec/app_role.h"
#include "spec/kind.h"
#include "spec/limits.h"
#include "spec/name.h"
#include "spec/ready.h"

#define SUFFIX_LEN (SPEC_SUFFIX_MAX - 1)

static void free_table(struct lh_table **t)
{
	if (*t)
		lh_table_free(*t);
}

void spec_app_free(struct spec_app *app)
{
	if (!app)
		return;
	free(app->name);
	for (size_t i = 0; i < app->n_roles; i++)
		app_clear_role(&app->roles[i]);
	free(app->roles);
	app_clear_map(&app->metadata);
	free(app->scheduler);
	free(app->scheduler_args);
	free(app);
}

/* --- fields --- */

static void read_roles(struct app_reader *r, const struct app_path *path,
		       const struct spec_yaml *node, void *member)
{
	struct spec_app *app = member;

	if (!app_is(r, path, node, SPEC_YAML_LIST, "begin each role with \"- name: \""))
		return;
	if (node->n == 0)
		app_error(r, path, node, "must hold at least one role");
	for (size_t i = 0; i < node->n; i++) {
		struct app_path at = {.up = path, .index = i};

		if (!app_grow(r, &app->roles, app->n_roles, sizeof(*app->roles)))
			return;
		memset(&app->roles[app->n_roles], 0, sizeof(*app->roles));
		app_read_role(r, &at, node->v[i], &app->roles[app->n_roles++]);
	}
}

static void read_scheduler(struct app_reader *r, const struct app_path *path,
			   const struct spec_yaml *node, void *member)
{
	static const char *const words[] = {"volcano", "mcad", "appwrapper", "local", NULL};
	const char *near;

	if (!app_is(r, path, node, SPEC_YAML_SCALAR, ""))
		return;
	for (size_t i = 0; words[i]; i++) {
		if (streq(node->text, words[i])) {
			app_read_text(r, path, node, member);
			return;
		}
	}
	near = spec_suggest(node->text, words);
	app_error(r, path, node, "there is no scheduler \"%s\"; %s%s%s", node->text,
		  near ? "did you mean " : "it is volcano, mcad, appwrapper or local",
		  near ? near : "", near ? "?" : "");
}

static const struct app_field app_fields[] = {
	{"name", true, app_read_name, offsetof(struct spec_app, name)},
	{"roles", true, read_roles, 0},
	{"metadata", false, app_read_text_map, offsetof(struct spec_app, metadata)},
	{"scheduler", false, read_scheduler, offsetof(struct spec_app, scheduler)},
	{"scheduler_args", false, app_read_json, offsetof(struct spec_app, scheduler_args)},
	{0},
};

const char *spec_app_field(size_t i)
{
	static const struct app_field *const tables[] = {app_fields, app_role_fields,
							 app_resource_fields};

	for (size_t t = 0; t < array_size(tables); t++) {
		for (size_t k = 0; tables[t][k].name; k++) {
			if (i-- == 0)
				return tables[t][k].name;
		}
	}
	return NULL;
}

/* --- checks of names --- */

struct checker {
	struct app_reader *r;
	const struct spec_app *app;
	const struct spec_yaml *root;
	const struct spec_kind *kind; /* whose rules names follow */
	struct lh_table *tasks;	      /* normalised role name -> index + 1 */
	size_t app_len;		      /* of the normalised app name */
	size_t pod_len;		      /* of the longest pod name */
	size_t pod_role;	      /* whose it is */
};

/* NAME as it will be part of the names of jobs and pods; NULL: nothing is left, an error. */
static char *norm(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		  const char *name)
{
	char *ret = spec_name_norm(name);

	if (ret && *ret)
		return ret;
	if (!ret)
		app_no_memory(r);
	else
		app_error(r, path, node,
			  "must hold a letter or digit (A-Z, a-z, 0-9): the names of jobs and pods "
			  "are made of it");
	free(ret);
	return NULL;
}

/* Two roles of one normal form would have tasks of the same name. Takes NAME over. */
static void check_task(struct checker *c, const struct app_path *path, const struct spec_yaml *node,
		       size_t i, char *name)
{
	struct lh_entry *found = lh_table_lookup_entry(c->tasks, name);
	size_t other;

	if (!found) {
		if (lh_table_insert(c->tasks, name, (void *)(uintptr_t)(i + 1)) < 0) {
			free(name);
			app_no_memory(c->r);
		}
		return;
	}
	other = (size_t)(uintptr_t)lh_entry_v(found) - 1;
	if (streq(c->app->roles[i].name, c->app->roles[other].name))
		app_error(c->r, path, node, "roles[%zu] has the same name", other);
	else
		app_error(c->r, path, node,
			  "\"%s\" and roles[%zu], \"%s\", both give tasks of the name \"%s\" (only "
			  "a-z, 0-9 and - count)",
			  c->app->roles[i].name, other, c->app->roles[other].name, name);
	free(name);
}

/* LAST is the index in the job of the last task of role I. */
static void measure_pod(struct checker *c, size_t i, size_t role_len, size_t last)
{
	size_t k = (size_t)c->app->roles[i].num_replicas - 1;
	size_t len = c->kind->pod_name_len(c->app_len, role_len, k, last);

	if (len > c->pod_len) {
		c->pod_len = len;
		c->pod_role = i;
	}
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
		char *name;

		tasks += (size_t)c->app->roles[i].num_replicas;
		if (!c->app->roles[i].name)
			continue;
		name = norm(c->r, &path, node, c->app->roles[i].name);
		if (!name)
			continue;
		if (c->kind->pod_name_len)
			measure_pod(c, i, strlen(name), tasks - 1);
		check_task(c, &path, node, i, name);
	}
	if (tasks > SPEC_MAX_REPLICAS)
		spec_errors_add(c->r->e, -EFBIG, list->line, list->column, "roles",
				"there are %zu replicas in all; a job can have at most %u", tasks,
				SPEC_MAX_REPLICAS);
}

/* A name that is too long for all its pods can only be refused. */
static void check_length(struct checker *c, const struct spec_yaml *node)
{
	const struct app_path path = {.key = "name"};

	if (c->pod_len <= SPEC_MAX_NAME)
		return;
	app_error(c->r, &path, node,
		  "pods of role \"%s\" would have names of %zu characters, and %u are allowed; "
		  "shorten the name of the app or of the role, by %zu together (a job's name has a "
		  "suffix of %d characters)",
		  c->app->roles[c->pod_role].name, c->pod_len, SPEC_MAX_NAME,
		  c->pod_len - SPEC_MAX_NAME, SUFFIX_LEN + 1);
}

static void free_name(struct lh_entry *entry)
{
	free(lh_entry_k(entry));
}

static void check_names(struct app_reader *r, const struct spec_app *app,
			const struct spec_yaml *root, const char *scheduler)
{
	cleanup(free_table) struct lh_table *tasks = lh_kchar_table_new(16, free_name);
	const struct app_path path = {.key = "name"};
	const struct spec_yaml *node = spec_yaml_get(root, "name");
	const struct spec_kind *kind = scheduler ? spec_kind_find(scheduler) : NULL;
	/* What runs here today should run in a cluster tomorrow: Volcano's rules are the strictest. */
	struct checker c = {.r = r,
			    .app = app,
			    .root = root,
			    .kind = kind ? kind : &spec_volcano,
			    .tasks = tasks};
	cleanup_free char *name = NULL;

	if (!tasks) {
		app_no_memory(r);
		return;
	}
	if (app->name)
		name = norm(r, &path, node, app->name);
	c.app_len = name ? strlen(name) : 0;
	check_roles(&c);
	if (name)
		check_length(&c, node);
}

/* --- the document --- */

/* Is the document no AppDef at all? Then its fields would only give misleading errors. */
static bool is_other(struct app_reader *r, const struct spec_yaml *root)
{
	const struct spec_yaml *kind = spec_yaml_get(root, "kind");
	const char *name;

	if (!app_is(r, NULL, root, SPEC_YAML_MAP, "an AppDef begins with \"name: \""))
		return true;
	if (!kind || !spec_yaml_get(root, "apiVersion"))
		return false;
	name = kind->type == SPEC_YAML_SCALAR ? kind->text : "?";
	if (spec_ready_kind(root))
		app_error(r, NULL, root,
			  "this is a ready manifest (kind: %s), which only the mount of a cluster "
			  "can send; write an AppDef, see appdef(5)",
			  name);
	else
		app_error(r, NULL, root,
			  "this is a manifest of another kind (%s), which nobody can send here; "
			  "write an AppDef, see appdef(5)",
			  name);
	return true;
}

static void check_scheduler(struct app_reader *r, const struct spec_app *app,
			    const struct spec_yaml *root, const char *scheduler)
{
	const struct app_path path = {.key = "scheduler"};
	const struct spec_kind *kind = scheduler ? spec_kind_find(scheduler) : NULL;

	if (kind && app->scheduler && !spec_kind_takes(kind, app->scheduler))
		app_error(r, &path, spec_yaml_get(root, "scheduler"),
			  "is %s, but jobs are run by %s here", app->scheduler, scheduler);
}

int spec_app_read(const struct spec_yaml *root, const char *home, const char *scheduler,
		  struct spec_app **ret, struct spec_errors *e)
{
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	struct app_reader r = {.home = home, .e = e};

	if (is_other(&r, root))
		return e->err;
	app = calloc(1, sizeof(*app));
	if (!app)
		return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
	app_read_map(&r, NULL, root, app_fields, app);
	check_scheduler(&r, app, root, scheduler);
	check_names(&r, app, root, scheduler ? scheduler : app->scheduler);
	if (e->err)
		return e->err;
	*ret = take_ptr(app);
	return 0;
}

int spec_app_parse(const char *text, size_t len, const char *home, struct spec_app **ret,
		   struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	int err = spec_yaml_parse(text, len, &root, e);

	return root ? spec_app_read(root, home, NULL, ret, e) : err;
}
