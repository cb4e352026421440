/* SPDX-License-Identifier: MIT */
/*
 * Reads the document in a file, and refuses a file with several objects.
 *
 * The output of `torchx run --dryrun --json` is a map with "app" (the AppDef), "scheduler", "cfg"
 * (the run options; null if not set) and "request" (what TorchX would have sent). Unknown keys are
 * not an error, since later versions of TorchX may add some. The manifest.yaml of a local job is
 * read like such output: it also has an AppDef in "app", but this AppDef has its own scheduler and
 * options.
 */
#include "spec/app/app.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/yaml/yaml.h"

/* Return the index in MAP->v of the value of KEY; 0 if MAP does not have KEY. */
static size_t find(const struct spec_yaml *map, const char *key)
{
	for (size_t i = 0; i < map->n; i += 2) {
		if (streq(map->v[i]->text, key))
			return i + 1;
	}
	return 0;
}

static bool is_dry_run(const struct spec_yaml *root)
{
	const struct spec_yaml *app =
		root->type == SPEC_YAML_MAP ? spec_yaml_get(root, "app") : NULL;

	/* unwrap() moves "scheduler" and "cfg" into the AppDef, which must not have them yet. */
	return app && app->type == SPEC_YAML_MAP && !find(root, "roles") &&
	       !find(root, "apiVersion") && !(find(root, "scheduler") && find(app, "scheduler")) &&
	       !(find(root, "cfg") && find(app, "scheduler_args"));
}

/* Move the entry with the value FROM->v[I] to the map TO, and change its key to KEY. */
static void move(struct spec_yaml *from, size_t i, struct spec_yaml *to, const char *key)
{
	to->v = mem_grow(to->v, to->n + 2, sizeof(struct spec_yaml *));
	to->v[to->n++] = take_ptr(from->v[i - 1]);
	to->v[to->n++] = take_ptr(from->v[i]);
	free(to->v[to->n - 2]->text);
	to->v[to->n - 2]->text = text_copy(key);
	to->v[to->n - 2]->len = strlen(key);
}

/*
 * Return the AppDef in ROOT, with the scheduler and the options of ROOT added. Free the rest of
 * ROOT. Omit the scheduler "kxfs", so that any mount accepts the AppDef.
 */
static struct spec_yaml *unwrap(struct spec_yaml *root)
{
	/* run options of TorchX's scheduler "kxfs" (contrib/torchx) that no mount has */
	static const char *const of_plugin[] = {"mount", "quiet", "inherit_env", NULL};
	size_t scheduler = find(root, "scheduler"), cfg = find(root, "cfg"), n = 0;
	struct spec_yaml *app = take_ptr(root->v[find(root, "app")]), *options;
	bool own = scheduler && root->v[scheduler]->type == SPEC_YAML_SCALAR &&
		   streq(root->v[scheduler]->text, "kxfs");

	if (scheduler && !own)
		move(root, scheduler, app, "scheduler");
	options = cfg ? root->v[cfg] : NULL;
	if (options && options->type == SPEC_YAML_MAP) {
		for (size_t i = 0; i < options->n; i += 2) {
			struct spec_yaml *key = options->v[i], *value = options->v[i + 1];

			if (spec_yaml_is_null(value) || (own && streq_any(key->text, of_plugin))) {
				spec_yaml_free(key);
				spec_yaml_free(value);
				continue;
			}
			options->v[n++] = key;
			options->v[n++] = value;
		}
		options->n = n;
	}
	if (cfg)
		move(root, cfg, app, "scheduler_args");
	spec_yaml_free(root);
	return app;
}

/* Return the items of a List; NULL if ROOT is not a List. */
static const struct spec_yaml *items_of(const struct spec_yaml *root)
{
	const struct spec_yaml *items =
		spec_app_is_manifest(root) ? spec_yaml_get(root, "items") : NULL;

	return items && items->type == SPEC_YAML_LIST ? items : NULL;
}

/* Add an error: the file has several DOCUMENTS, or its only document is a List of ITEMS. */
static int refuse_several(const struct spec_yaml *documents, const struct spec_yaml *items,
			  struct spec_errors *e)
{
	const struct spec_yaml *at = documents->v[documents->n > 1 ? 1 : 0];
	const size_t n = documents->n > 1 ? documents->n : items->n;

	return spec_errors_add(
		e, -EINVAL, at->line, at->column, "",
		"the file contains %s%zu object%s; submit one file for each job%s",
		documents->n > 1 ? "" : "a List of ", n, n == 1 ? "" : "s",
		spec_app_is_manifest(at)
			? ", or create all objects with kubectl create -f FILE, and kxfs shows the "
			  "job"
			: "");
}

bool spec_app_is_manifest(const struct spec_yaml *root)
{
	return root->type == SPEC_YAML_MAP && !spec_yaml_get(root, "roles") &&
	       (spec_yaml_get(root, "apiVersion") || spec_yaml_get(root, "kind"));
}

int spec_app_parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e)
{
	static const char printed[] = "=== APPLICATION ===";
	cleanup(spec_yaml_freep) struct spec_yaml *documents = NULL;
	const struct spec_yaml *items;
	size_t before = e->n + e->dropped;
	int err;

	*ret = NULL;
	if (len > strlen(printed) && strncmp(text, printed, strlen(printed)) == 0)
		return spec_errors_add(
			e, -EINVAL, 1, 1, "",
			"this is the output of torchx run --dryrun; submit only the part after "
			"\"=== SCHEDULER REQUEST ===\", or submit the output of torchx run "
			"--dryrun --json");
	err = spec_yaml_parse_all(text, len, &documents, e);
	if (!documents)
		return err;
	items = items_of(documents->v[0]);
	if (documents->n > 1 || items)
		return refuse_several(documents, items, e);
	*ret = spec_yaml_take_only(documents);
	spec_yaml_finish(*ret, spec_app_is_manifest(*ret) ? SPEC_YAML_KUBECTL : SPEC_YAML_CORE, e);
	if (is_dry_run(*ret))
		*ret = unwrap(*ret);
	return e->n + e->dropped > before ? e->err : 0;
}
