/* SPDX-License-Identifier: MIT */
/*
 * Commands that need no mount, and the reader of kind files. All of this runs before the daemon
 * forks, and reads files with the user's rights.
 */
#include "fs/cli/commands.h"

#include <dirent.h>
#include <errno.h>

#include "backend/base/loop.h"
#include "backend/base/print.h"
#include "backend/base/process.h"
#include "backend/base/random.h"
#include "spec/base/error.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "spec/kinds/right.h"
#include "spec/record/dry_run.h"

/* Read at most MAX + 1 bytes of the file PATH, so that the caller notices a larger file. */
static int read_file(const char *path, size_t max, char **ret, size_t *ret_len, char **ret_text)
{
	cleanup_file FILE *f = fopen(path, "rbe");

	if (!f)
		return refuse(-errno, ret_text, "%s: %s", path, strerror(errno));
	*ret = mem_zero(max + 2);
	*ret_len = fread(*ret, 1, max + 1, f);
	return ferror(f) ? refuse(-errno, ret_text, "%s: %s", path, strerror(errno)) : 0;
}

static int add_file(struct spec_kinds *kinds, const char *path, const struct spec_kind **ret,
		    char **ret_text)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *text = NULL;
	size_t len = 0;
	int err = read_file(path, SPEC_MAX_KIND_FILE, &text, &len, ret_text);

	if (err)
		return err;
	err = spec_kinds_add(kinds, text, len, ret, &e);
	if (err) {
		*ret_text = spec_errors_text(&e, path);
		(*ret_text)[strlen(*ret_text) - 1] = '\0';
	}
	return err;
}

static int is_kind_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && has_end(entry->d_name, ".yaml");
}

int kind_files_add(struct spec_kinds *kinds, const char *dir, char **ret_text)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_kind_file, alphasort), err = 0;
	const struct spec_kind *kind;

	if (n < 0)
		return refuse(-errno, ret_text, "-o kinds=%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		cleanup_free char *path = text_print("%s/%s", dir, entries[i]->d_name);

		if (!err)
			err = add_file(kinds, path, &kind, ret_text);
		free(entries[i]);
	}
	free(entries);
	return err;
}

/* Print the status of the job in the file OBJECT. The file PODS has its pods; PODS may be NULL. */
static int show(const struct spec_kind *kind, const char *object, const char *pods, char **ret_text)
{
	cleanup_free char *job = NULL, *list = text_copy("{}"), *status = NULL;
	size_t len = 0;
	int err = read_file(object, SPEC_MAX_WATCHED, &job, &len, ret_text);

	if (!err && pods) {
		free(take_ptr(list));
		err = read_file(pods, SPEC_MAX_WATCHED, &list, &len, ret_text);
	}
	if (err)
		return err;
	err = spec_kind_show(kind, job, list, loop_time_ns(), &status);
	if (err)
		return refuse(err, ret_text,
			      "%s: not an object in the format of kubectl get -o json", object);
	fputs(status, stdout);
	return 0;
}

int kind_files_check(const struct options *o)
{
	struct spec_kinds kinds cleanup(spec_kinds_clear);
	const struct spec_kind *kind = NULL;
	cleanup_free char *why = NULL;
	int err;

	spec_kinds_init(&kinds);
	err = add_file(&kinds, o->check_kind, &kind, &why);
	if (!err && o->check_object)
		err = show(kind, o->check_object, o->check_pods, &why);
	else if (!err)
		printf("%s: no mistakes\n", o->check_kind);
	if (err)
		refuse_print(err, why);
	return err || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- --dry-run --- */

int dry_run_main(const struct options *o)
{
	cleanup_free char *submitter = process_submitter(), *home = process_home();
	cleanup_free char *work_dir = getcwd(NULL, 0), *why = NULL;
	cleanup_free char *text = NULL, *manifest = NULL, *errors = NULL;
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	size_t len = 0, manifest_len = 0;
	int err;
	struct spec_dry_run d = {
		.kinds = &o->kinds,
		.backend = o->backend,
		.namespace = o->namespace,
		.args = o->args,
		.n_args = o->n_args,
		.file = o->dry_run,
		.submitter = submitter,
		.machine = {.home = home,
			    .work_dir = work_dir ? work_dir : "",
			    .args = o->args,
			    .n_args = o->n_args},
		.now = loop_time_ns(),
	};

	err = read_file(streq(o->dry_run, "-") ? "/dev/stdin" : o->dry_run, SPEC_MAX_FILE, &text,
			&len, &why);
	if (!err)
		err = random_bytes(&d.random, sizeof(d.random));
	if (err) {
		refuse_print(err, why);
		return EXIT_FAILURE;
	}
	if (spec_dry_run(&d, text, len, &manifest, &manifest_len, &e) < 0) {
		errors = spec_errors_text(&e, o->dry_run);
		fputs(errors, stderr);
		return EXIT_FAILURE;
	}
	if (fwrite(manifest, 1, manifest_len, stdout) == manifest_len && fflush(stdout) == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "kxfs: can't write: %s\n", strerror(errno));
	return EXIT_FAILURE;
}

/* --- doctor --rbac --- */

static bool same_resource(const struct spec_right *a, const struct spec_right *b)
{
	return streq(a->group, b->group) && streq(a->resource, b->resource) &&
	       a->cluster == b->cluster;
}

static bool writes(const struct spec_right *right)
{
	return !streq(right->verbs[0], "get") && !streq(right->verbs[0], "list");
}

/* True if one of the N rights in V allows VERB on RIGHT's resource. */
static bool gives(const struct spec_right *v, size_t n, const struct spec_right *right,
		  const char *verb)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; same_resource(&v[i], right) && v[i].verbs[k]; k++)
			if (streq(v[i].verbs[k], verb))
				return true;
	return false;
}

/*
 * Print one rule for all rights to V[I]'s resource. Print nothing if a right before V[I] is for the
 * same resource, because that right's rule covers V[I].
 */
static void print_rule(FILE *out, const struct spec_right *v, size_t n, size_t i)
{
	static const char *const verbs[] = {"get", "list", "watch", "create", "delete", "patch"};
	const char *before = "[";

	for (size_t k = 0; k < i; k++)
		if (same_resource(&v[k], &v[i]))
			return;
	fprintf(out, "- apiGroups: [%s]\n  resources: [%s]\n  verbs: ",
		*v[i].group ? v[i].group : "\"\"", v[i].resource);
	for (size_t k = 0; k < array_size(verbs); k++) {
		if (!gives(v, n, &v[i], verbs[k]))
			continue;
		fprintf(out, "%s%s", before, verbs[k]);
		before = ", ";
	}
	fputs("]\n", out);
}

static void print_role(FILE *out, const struct spec_right *v, size_t n, bool cluster)
{
	bool begun = false;

	for (size_t i = 0; i < n; i++) {
		if (v[i].cluster != cluster)
			continue;
		if (!begun)
			fprintf(out,
				"%sapiVersion: rbac.authorization.k8s.io/v1\nkind: %s\n"
				"metadata:\n  name: %s\nrules:\n",
				cluster ? "---\n" : "", cluster ? "ClusterRole" : "Role",
				cluster ? "kxfs-queues" : "kxfs");
		begun = true;
		print_rule(out, v, n, i);
	}
}

void rbac_print(const struct options *o, FILE *out)
{
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	struct spec_right *v cleanup_free = NULL;
	size_t n = 0, all, kept = 0;

	while (n < SPEC_MAX_KINDS && (kinds[n] = spec_kind_meant(&o->kinds, o->backend, n)))
		n++;
	v = spec_rights(kinds, n, &all);
	for (size_t i = 0; i < all; i++)
		if (!o->read_only || !writes(&v[i]))
			v[kept++] = v[i];
	print_role(out, v, kept, false);
	print_role(out, v, kept, true);
}
