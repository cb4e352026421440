/* SPDX-License-Identifier: MIT */
/*
 * What is from outside for a dry run: the file, chance, time, who and where. The rest is spec/dry_run.c.
 */
#include "fs/dry_run.h"

#include <errno.h>
#include <sys/random.h>

#include "backend/loop.h"
#include "fs/options.h"
#include "fs/who.h"
#include "spec/dry_run.h"
#include "spec/limits.h"

/* The file ("-": standard input), or as much of it as shows that it is too large. */
static int read_file(const char *path, char **ret, size_t *ret_len)
{
	cleanup_file FILE *f = fopen(streq(path, "-") ? "/dev/stdin" : path, "rbe");

	if (!f)
		return -errno;
	*ret = malloc(SPEC_MAX_FILE + 1);
	if (!*ret)
		return -ENOMEM;
	*ret_len = fread(*ret, 1, SPEC_MAX_FILE + 1, f);
	return ferror(f) ? -errno : 0;
}

static int print(const char *text, size_t len)
{
	if (fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "kxfs: can't write: %s\n", strerror(errno));
	return EXIT_FAILURE;
}

static int print_errors(struct spec_errors *e, const char *file)
{
	cleanup_free char *text = spec_errors_text(e, file);

	fputs(text ? text : "kxfs: out of memory\n", stderr);
	spec_errors_clear(e);
	return EXIT_FAILURE;
}

int dry_run_main(const struct options *o)
{
	cleanup_free char *submitter = NULL, *home = NULL, *work_dir = getcwd(NULL, 0);
	cleanup_free char *text = NULL, *manifest = NULL;
	struct spec_errors e = SPEC_ERRORS_INIT;
	size_t len = 0, manifest_len = 0;
	int err = who_am_i(&submitter, &home);
	struct spec_dry_run d = {
		.backend = o->backend,
		.namespace = o->namespace,
		.args = o->args,
		.n_args = o->n_args,
		.file = o->dry_run,
		.submitter = submitter,
		.home = home,
		.work_dir = work_dir,
		.now = loop_time_ns(),
	};

	if (!err)
		err = read_file(o->dry_run, &text, &len);
	if (!err && getrandom(d.random, sizeof(d.random), 0) != (ssize_t)sizeof(d.random))
		err = -EIO;
	if (err) {
		fprintf(stderr, "kxfs: %s: %s\n", o->dry_run, strerror(-err));
		return EXIT_FAILURE;
	}
	if (spec_dry_run(&d, text, len, &manifest, &manifest_len, &e) < 0)
		return print_errors(&e, o->dry_run);
	return print(manifest, manifest_len);
}
