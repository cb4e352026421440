/* SPDX-License-Identifier: MIT */
/*
 * From a document to the text of what it would make. Names and ids are as random as real ones.
 */
#include "fs/dry_run.h"

#include <errno.h>
#include <sys/random.h>

#include "backend/loop.h"
#include "fs/options.h"
#include "fs/who.h"
#include "spec/limits.h"
#include "spec/manifest.h"
#include "spec/name.h"
#include "spec/record.h"

struct chance {
	uint64_t name[2];
	unsigned char uid[16], submission[16];
};

static int no_memory(struct spec_errors *e)
{
	return spec_errors_add(e, -ENOMEM, 0, 0, "", "out of memory");
}

static int draw(struct chance *c, struct spec_errors *e)
{
	if (getrandom(c, sizeof(*c), 0) == (ssize_t)sizeof(*c))
		return 0;
	return spec_errors_add(e, -EINVAL, 0, 0, "", "the system has no random numbers");
}

/* --- a job of a cluster --- */

static int make_manifest(const struct dry_run *d, const struct spec_kind *kind, const char *text,
			 size_t len, char **ret, size_t *ret_len, struct spec_errors *e)
{
	cleanup(spec_manifest_freep) struct spec_manifest *m = NULL;
	struct chance chance;
	char submission[37];
	struct spec_manifest_request rq = {
		.kind = kind,
		.options = d->args,
		.n_options = d->n_args,
		.home = d->home,
		.identity = {.namespace = d->namespace,
			     .submission = submission,
			     .submitter = d->submitter},
	};
	int err = draw(&chance, e);

	if (err)
		return err;
	memcpy(rq.identity.random, chance.name, sizeof(rq.identity.random));
	spec_name_uuid(chance.submission, submission);
	err = spec_manifest_make(text, len, &rq, &m, e);
	if (!err && spec_manifest_yaml(m, ret, ret_len) < 0)
		err = no_memory(e);
	return err;
}

/* --- a local job --- */

static void free_record(struct spec_record **r)
{
	spec_record_free(*r);
}

/* APP is taken over. */
static int make_record(const struct dry_run *d, struct spec_app *app, char **ret, size_t *ret_len,
		       struct spec_errors *e)
{
	cleanup(free_record) struct spec_record *r = NULL;
	cleanup_free char *id = NULL;
	char uid[37], submission[37];
	struct spec_record_origin origin = {
		.uid = uid,
		.submission = submission,
		.submitter = d->submitter,
		.file = d->file,
		.work_dir = d->work_dir,
		.created = loop_time_ns(),
	};
	struct chance chance;
	int err = draw(&chance, e);

	if (err) {
		spec_app_free(app);
		return err;
	}
	spec_name_uuid(chance.uid, uid);
	spec_name_uuid(chance.submission, submission);
	origin.id = id = spec_name_job(app->name, chance.name[0]);
	r = spec_record_new(app);
	if (!id || !r || spec_record_begin(r, &origin) < 0 || spec_record_yaml(r, ret, ret_len) < 0)
		return no_memory(e);
	return 0;
}

/* --- either --- */

/* The document decides what it is for. */
static int make_any(const struct dry_run *d, const char *text, size_t len, char **ret,
		    size_t *ret_len, struct spec_errors *e)
{
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	const char *scheduler = *d->backend ? d->backend : NULL;
	int err = spec_app_parse(text, len, d->home, &app, e);

	if (err)
		return err;
	if (app->scheduler)
		scheduler = app->scheduler;
	if (!scheduler)
		return spec_errors_add(e, -EINVAL, 0, 0, "scheduler",
				       "is not given: add it to the file, or say for what, as in "
				       "kxfs --dry-run=%s volcano:NAMESPACE",
				       d->file);
	if (spec_kind_find(scheduler))
		return make_manifest(d, spec_kind_find(scheduler), text, len, ret, ret_len, e);
	return make_record(d, take_ptr(app), ret, ret_len, e);
}

int dry_run_make(const struct dry_run *d, const char *text, size_t len, char **ret, size_t *ret_len,
		 char **ret_text)
{
	const struct spec_kind *kind = spec_kind_find(d->backend);
	struct spec_errors e = SPEC_ERRORS_INIT;
	int err;

	if (kind)
		err = make_manifest(d, kind, text, len, ret, ret_len, &e);
	else
		err = make_any(d, text, len, ret, ret_len, &e);
	if (err)
		*ret_text = spec_errors_text(&e, d->file);
	spec_errors_clear(&e);
	return err;
}

/* --- the command --- */

/* The file, or as much of it as shows that it is too large. */
static int read_file(const char *path, char **ret, size_t *ret_len)
{
	cleanup_file FILE *f = fopen(path, "rbe");

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

int dry_run_main(const struct options *o)
{
	cleanup_free char *submitter = NULL, *home = NULL, *work_dir = getcwd(NULL, 0);
	cleanup_free char *text = NULL, *manifest = NULL, *why = NULL;
	size_t len = 0, manifest_len = 0;
	int err = who_am_i(&submitter, &home);
	const struct dry_run d = {
		.backend = o->backend,
		.namespace = *o->namespace ? o->namespace : "default",
		.args = o->args,
		.n_args = o->n_args,
		.file = o->dry_run,
		.submitter = submitter,
		.home = home,
		.work_dir = work_dir,
	};

	if (!err)
		err = read_file(o->dry_run, &text, &len);
	if (err) {
		fprintf(stderr, "kxfs: %s: %s\n", o->dry_run, strerror(-err));
		return EXIT_FAILURE;
	}
	if (dry_run_make(&d, text, len, &manifest, &manifest_len, &why) < 0) {
		fputs(why ? why : "kxfs: out of memory\n", stderr);
		return EXIT_FAILURE;
	}
	return print(manifest, manifest_len);
}
