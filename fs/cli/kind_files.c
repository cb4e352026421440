/* SPDX-License-Identifier: MIT */
/*
 * Read kind files with the rights of the mounting user, before the fork. Kind files are written by
 * users, and never come from a cluster.
 */
#include "fs/cli/kind_files.h"

#include <dirent.h>
#include <errno.h>

#include "backend/base/loop.h"
#include "fs/cli/options.h"
#include "fs/cli/refuse.h"
#include "spec/base/error.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"

/* Read PATH, at most MAX bytes and one more. Return 0, or a negative errno with *RET_TEXT. */
static int read_file(const char *path, size_t max, char **ret, size_t *ret_len, char **ret_text)
{
	cleanup_file FILE *f = fopen(path, "rbe");

	if (!f)
		return refuse(-errno, ret_text, "%s: %s", path, strerror(errno));
	*ret = mem_zero(max + 2);
	*ret_len = fread(*ret, 1, max + 1, f);
	return ferror(f) ? refuse(-EIO, ret_text, "%s: can't be read", path) : 0;
}

static int add_file(struct spec_kinds *kinds, const char *path, char **ret_text)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *text = NULL;
	size_t len = 0;
	int err = read_file(path, SPEC_MAX_KIND_FILE, &text, &len, ret_text);

	if (err)
		return err;
	err = spec_kinds_add(kinds, text, len, &e);
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

	if (n < 0)
		return refuse(-errno, ret_text, "-o kinds=%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		cleanup_free char *path = text_print("%s/%s", dir, entries[i]->d_name);

		if (!err)
			err = add_file(kinds, path, ret_text);
		free(entries[i]);
	}
	free(entries);
	return err;
}

/* Print the status of the job in the file OBJECT, with the pods in the file PODS (NULL: none). */
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
			      "%s: is not an object as kubectl get -o json prints it", object);
	fputs(status, stdout);
	return 0;
}

int kind_files_check(const struct options *o)
{
	struct spec_kinds kinds cleanup(spec_kinds_clear);
	cleanup_free char *why = NULL;
	int err;

	spec_kinds_init(&kinds);
	err = add_file(&kinds, o->check_kind, &why);
	if (!err && o->check_object)
		err = show(spec_kinds_newest(&kinds), o->check_object, o->check_pods, &why);
	else if (!err)
		printf("%s: no mistakes\n", o->check_kind);
	if (err)
		fprintf(stderr, "kxfs: %s\n", why);
	return err || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
