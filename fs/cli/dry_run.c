/* SPDX-License-Identifier: MIT */
/*
 * The inputs of a dry run: the file, randomness, the time, the user and the directory.
 * spec/record/dry_run.c makes the manifest.
 */
#include "fs/cli/dry_run.h"

#include <errno.h>
#include <sys/random.h>

#include "backend/base/loop.h"
#include "fs/cli/options.h"
#include "fs/cli/who.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/record/dry_run.h"

/* Read the file ("-": standard input), or enough of it to see that it is too large. */
static int read_file(const char *path, char **ret, size_t *ret_len)
{
	cleanup_file FILE *f = fopen(streq(path, "-") ? "/dev/stdin" : path, "rbe");

	if (!f)
		return -errno;
	*ret = mem_zero(SPEC_MAX_FILE + 1);
	*ret_len = fread(*ret, 1, SPEC_MAX_FILE + 1, f);
	return ferror(f) ? -errno : 0;
}

int dry_run_main(const struct options *o)
{
	cleanup_free char *submitter = NULL, *home = NULL, *work_dir = getcwd(NULL, 0);
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
		.machine = {.work_dir = work_dir ? work_dir : "",
			    .args = o->args,
			    .n_args = o->n_args},
		.now = loop_time_ns(),
	};

	who_am_i(&submitter, &home);
	d.submitter = submitter;
	d.machine.home = home;
	err = read_file(o->dry_run, &text, &len);
	if (!err && getrandom(d.random, sizeof(d.random), 0) != (ssize_t)sizeof(d.random))
		err = -EIO;
	if (err) {
		fprintf(stderr, "kxfs: %s: %s\n", o->dry_run, strerror(-err));
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
