/* SPDX-License-Identifier: MIT */
/*
 * What of a submission runs on the pool: making the manifest, and keeping what tells after a crash that
 * the job is ours.
 */
#include <errno.h>
#include <sys/stat.h>

#include "backend/kube_submit.h"
#include "backend/random.h"

static int make_manifest(struct kube_submit *s)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	const struct kube *k = s->op.k;
	const struct backend_request *rq = s->op.rq;
	struct spec_manifest_request mr = {
		.kind = k->kind,
		.options = k->b->config.args,
		.n_options = k->b->config.n_args,
		.home = k->b->config.home,
		.identity = {.namespace = k->connection.namespace,
			     .submission = s->submission,
			     .submitter = rq->submitter,
			     /* A document that gives its name: the first try keeps it. */
			     .rename = s->names > 0,
			     .beside = s->beside},
	};
	int err = random_bytes(mr.identity.random, sizeof(mr.identity.random));

	if (!err && !*s->submission)
		err = random_uuid(s->submission);
	if (err)
		return err;
	err = spec_manifest_make(rq->text, rq->len, &mr, &s->m, &e);
	if (err)
		s->text = spec_errors_text(&e, rq->file);
	return err;
}

/* What tells after a crash that the job is ours, and what app.yaml is read from. */
static int keep_files(struct kube_submit *s)
{
	const char *state_dir = s->op.k->b->config.state_dir;
	cleanup_free char *dir = file_path(state_dir, s->m->id, NULL);
	cleanup_free char *jobs = NULL;
	cleanup_free char *submission = NULL;
	int err;

	if (asprintf(&jobs, "%s/jobs", state_dir) < 0)
		jobs = NULL;
	if (asprintf(&submission, "%s\n%s\n", s->submission, s->op.rq->file) < 0)
		submission = NULL;
	if (!dir || !jobs || !submission)
		return -ENOMEM;
	if (mkdir(dir, 0700) < 0)
		return -errno;
	s->kept = true;
	err = file_write(dir, "app.yaml", s->op.rq->text, s->op.rq->len);
	if (!err)
		err = file_write(dir, "submission", submission, strlen(submission));
	return err ? err : file_sync_dir(jobs);
}

/* The folder of its name is there: is the job of that folder? */
static bool is_there(const struct kube_submit *s)
{
	const struct spec_job *job cleanup_job =
		store_get(s->op.k->b->store, BACKEND_JOBS, s->m->id);

	return job;
}

void kube_submit_prepare(void *data)
{
	struct kube_submit *s = data;

	do {
		spec_manifest_free(take_ptr(s->m));
		s->err = make_manifest(s);
		if (s->err || kube_submit_is_dry(s))
			return;
		s->err = keep_files(s);
		s->beside |= s->err == -EEXIST && is_there(s);
	} while (s->err == -EEXIST && ++s->names < KUBE_NAME_TRIES);
	if (s->err &&
	    asprintf(&s->text, "%s: the job can't be recorded in %s: %s; nothing was launched\n",
		     s->op.rq->file, s->op.k->b->config.state_dir, strerror(-s->err)) < 0)
		s->text = NULL;
}
