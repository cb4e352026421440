/* SPDX-License-Identifier: MIT */
/*
 * Reads AppDefs of local jobs. A user may later submit the same AppDef to a cluster, so the rules
 * of all kinds of jobs apply.
 */
#include "spec/record/local.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/tree.h"
#include "spec/kinds/kinds.h"
#include "spec/record/slots.h"

/* Refuse a manifest with one error. Read as an AppDef, it would have many errors. */
static int refuse_manifest(const struct spec_yaml *root, struct spec_errors *e)
{
	const struct spec_yaml *kind = spec_yaml_get(root, "kind");

	return spec_errors_add(
		e, -EINVAL, root->line, root->column, "",
		"this is a Kubernetes manifest (kind: %s), which only a mount of a cluster can "
		"submit; write an AppDef instead, see appdef(5)",
		kind && kind->type == SPEC_YAML_SCALAR ? kind->text : "");
}

static const struct spec_option options[] = {
	{.name = "cwd", .type = SPEC_OPTION_TEXT, .help = "directory in which the job runs"},
	SPEC_TIME_LIMIT_OPTION,
	SPEC_TTL_OPTION,
	/* options of TorchX's scheduler local_cwd, of which kxfs accepts only the defaults */
	{.name = "log_dir", .type = SPEC_OPTION_TEXT},
	{.name = "prepend_cwd", .type = SPEC_OPTION_BOOL},
	{.name = "auto_set_cuda_visible_devices", .type = SPEC_OPTION_BOOL},
	{0},
};

static void wrong_option(const char *name, const char *text, struct spec_errors *e)
{
	cleanup_free char *path = text_print("scheduler_args.%s", name);

	spec_errors_add(e, -EINVAL, 0, 0, path, "%s", text);
}

/* ARGS is a map as JSON text. Return it without the options that only cluster jobs have. */
static char *own_args(const char *args)
{
	struct json_object *all cleanup_json = spec_tree_parse(args);
	struct json_object *own cleanup_json = spec_tree_map();

	json_object_object_foreach(all, name, value) {
		if (spec_option_find(options, name) ||
		    (!spec_kind_of_option(name) && !streq(name, "namespace")))
			spec_tree_set(own, name, json_object_get(value));
	}
	return spec_tree_print(own);
}

static void refuse_torchx_options(const struct spec_options *o, struct spec_errors *e)
{
	const char *log_dir = spec_options_text(o, "log_dir");

	if (log_dir && *log_dir)
		wrong_option("log_dir",
			     "is not supported: kxfs shows the output of a job in jobs/ID/log", e);
	if (spec_options_bool(o, "prepend_cwd"))
		wrong_option("prepend_cwd", "is not supported: write ./PROGRAM, or set PATH in env",
			     e);
	if (spec_options_bool(o, "auto_set_cuda_visible_devices"))
		wrong_option("auto_set_cuda_visible_devices",
			     "is not needed: -o gpus=N gives each replica its own GPUs", e);
}

/* Return the settings for a job with the AppDef APP. Add errors about its run options to E. */
static struct spec_terms choose_terms(const struct spec_app *app, const struct spec_machine *m,
				      struct spec_errors *e)
{
	struct spec_terms terms = {.ttl = -1};
	cleanup(spec_options_freep) struct spec_options *o = spec_options_new("local", options);
	cleanup_free char *args = app->scheduler_args ? own_args(app->scheduler_args) : NULL;
	cleanup_free char *why = NULL;
	const char *dir;

	for (size_t i = 0; i < m->n_args; i++)
		if (spec_option_find(options, m->args[i].key))
			spec_options_set(o, m->args[i].key, m->args[i].value, e);
	spec_options_merge(o, args, "", e);
	spec_options_int(o, "time_limit", &terms.time_limit);
	spec_options_int(o, "ttl", &terms.ttl);
	refuse_torchx_options(o, e);
	dir = spec_options_text(o, "cwd");
	if (dir && *dir != '/')
		wrong_option("cwd", "must be an absolute path", e);
	else if (dir && m->dir_error)
		why = m->dir_error(m->data, dir);
	if (why)
		wrong_option("cwd", why, e);
	if (!e->err)
		terms.dir = text_copy(dir ? dir : m->work_dir);
	return terms;
}

int spec_local_read(const struct spec_yaml *root, const struct spec_machine *m,
		    struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e)
{
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	struct spec_app_rules rules;

	if (spec_app_is_manifest(root))
		return refuse_manifest(root, e);
	spec_kind_app_rules(&rules, NULL, m->home);
	if (spec_app_read(root, &rules, &app, e) < 0)
		return e->err;
	if (!app->scheduler || streq(app->scheduler, "local")) {
		const int64_t need = spec_slots_need(app);

		/* A job that needs more GPUs than the mount has would wait forever. */
		if (m->gpus && need > m->gpus)
			spec_errors_add(
				e, -EINVAL, 0, 0, "roles",
				"the replicas need %lld GPUs together, but this mount has only %u; "
				"request fewer, or mount with more (-o gpus=N)",
				(long long)need, m->gpus);
		*ret_terms = choose_terms(app, m, e);
	} else {
		*ret_terms = (struct spec_terms){.dir = text_copy(m->work_dir), .ttl = -1};
	}
	spec_errors_locate(e, spec_yaml_find, (void *)(uintptr_t)root);
	if (e->err)
		return e->err;
	*ret = take_ptr(app);
	return 0;
}

int spec_local_parse(const char *text, size_t len, const struct spec_machine *m,
		     struct spec_app **ret, struct spec_terms *ret_terms, struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	int err = spec_app_parse(text, len, &root, e);

	return root ? spec_local_read(root, m, ret, ret_terms, e) : err;
}

void spec_local_locate(const char *text, size_t len, struct spec_errors *e)
{
	cleanup(spec_errors_clear) struct spec_errors other = SPEC_ERRORS_INIT;
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;

	if (spec_app_parse(text, len, &root, &other) == 0)
		spec_errors_locate(e, spec_yaml_find, root);
}
