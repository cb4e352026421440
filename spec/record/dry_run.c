/* SPDX-License-Identifier: MIT */
/* Makes dry runs. Names and ids are random, as in a real submission. */
#include "spec/record/dry_run.h"

#include <errno.h>

#include "spec/base/name.h"
#include "spec/kinds/kinds.h"
#include "spec/kinds/manifest.h"
#include "spec/kinds/ready_manifest.h"
#include "spec/record/record.h"

static int make_manifest(const struct spec_dry_run *d, const struct spec_kind *kind,
			 const char *text, size_t len, char **ret, size_t *ret_len,
			 struct spec_errors *e)
{
	cleanup(spec_manifest_freep) struct spec_manifest *m = NULL;
	cleanup_free char *user = spec_label_user(d->submitter);
	char submission[37];
	struct spec_manifest_request rq = {
		/* A local mount may have other kinds' options: with NULL, they are ignored. */
		.kind = streq(d->backend, "local") ? NULL : kind,
		.kinds = &kind,
		.n_kinds = 1,
		.known = d->kinds,
		.options = d->args,
		.n_options = d->n_args,
		.home = d->machine.home,
		.identity = {.namespace = *d->namespace ? d->namespace : "default",
			     .submission = submission,
			     .submitter = d->submitter,
			     .user = user},
	};
	int err;

	memcpy(rq.identity.random, d->random.name, sizeof(d->random.name));
	spec_name_uuid(d->random.submission, submission);
	err = spec_manifest_make(text, len, &rq, &m, e);
	if (!err)
		spec_manifest_yaml(m, ret, ret_len);
	return err;
}

/* Return the kind of cluster job that the document ROOT requests; NULL for a local job. */
static const struct spec_kind *kind_of(const struct spec_kinds *known, const struct spec_yaml *root)
{
	const struct spec_yaml *scheduler;

	if (spec_app_is_manifest(root))
		return spec_ready_kind(known, root);
	scheduler = root->type == SPEC_YAML_MAP ? spec_yaml_get(root, "scheduler") : NULL;
	if (!scheduler || scheduler->type != SPEC_YAML_SCALAR)
		return NULL;
	return spec_kind_of_scheduler(known, scheduler->text);
}

static int make_local(const struct spec_dry_run *d, const struct spec_yaml *root, char **ret,
		      size_t *ret_len, struct spec_errors *e)
{
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	cleanup(spec_record_freep) struct spec_record *r = NULL;
	struct spec_terms terms cleanup(spec_terms_clear) = {0};
	cleanup_free char *id = NULL;
	struct spec_record_origin origin = {.created = d->now};
	int err = spec_local_read(root, &d->machine, &app, &terms, e);

	if (err)
		return err;
	if (!app->scheduler && !*d->backend)
		return spec_errors_add(e, -EINVAL, 0, 0, "scheduler",
				       "is missing: add it to the file, or name a source, as in "
				       "kxfs --dry-run=%s volcano:NAMESPACE",
				       d->file);
	id = spec_name_job(app->name, d->random.name[0]);
	origin.id = id;
	origin.work_dir = terms.dir;
	r = spec_record_new(take_ptr(app), &origin);
	spec_record_yaml(r, d->file, ret, ret_len);
	return 0;
}

int spec_dry_run(const struct spec_dry_run *d, const char *text, size_t len, char **ret,
		 size_t *ret_len, struct spec_errors *e)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	const struct spec_kind *kind = spec_kind_find(d->kinds, d->backend);
	int err;

	if (!kind) {
		err = spec_app_parse(text, len, &root, e);
		if (!root)
			return err;
		kind = kind_of(d->kinds, root);
	}
	if (!kind)
		return make_local(d, root, ret, ret_len, e);
	spec_errors_clear(e); /* make_manifest parses the document again */
	return make_manifest(d, kind, text, len, ret, ret_len, e);
}
