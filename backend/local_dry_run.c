/* SPDX-License-Identifier: MIT */
/*
 * Dry runs of local mounts: made on the pool, since a large document takes a while, and answered.
 */
#include <errno.h>

#include "backend/local.h"
#include "backend/random.h"
#include "spec/dry_run.h"

struct dry_run {
	struct local *l;
	struct backend_request *rq;
	int err;
	char *manifest;
	char *text; /* what is wrong, for people */
};

int local_dry_run_make(struct local *l, const struct backend_request *rq, char **ret,
		       struct spec_errors *e)
{
	const struct backend_config *config = &l->b->config;
	struct spec_dry_run d = {
		.backend = "local",
		.namespace = "",
		.args = config->args,
		.n_args = config->n_args,
		.file = rq->file,
		.submitter = rq->submitter,
		.home = config->home,
		.work_dir = config->work_dir,
		.now = loop_time_ns(),
	};
	size_t len;

	if (random_bytes(d.random, sizeof(d.random)) < 0)
		return -EIO;
	return spec_dry_run(&d, rq->text, rq->len, ret, &len, e);
}

static void dry_run_work(void *data)
{
	struct dry_run *d = data;
	struct spec_errors e = SPEC_ERRORS_INIT;

	d->err = local_dry_run_make(d->l, d->rq, &d->manifest, &e);
	if (d->err < 0 && e.n > 0)
		d->text = spec_errors_text(&e, d->rq->file);
	spec_errors_clear(&e);
}

static void dry_run_done(void *data)
{
	struct dry_run *d = data;
	struct local *l = d->l;

	if (d->err < 0)
		backend_answer(d->rq, d->err, NULL, d->text);
	else
		backend_answer_dry_run(d->rq, d->manifest);
	free(d->manifest);
	free(d->text);
	free(d);
	l->submitting--;
	local_check_stopped(l);
}

void local_dry_run(struct backend *b, struct backend_request *rq)
{
	struct local *l = local_of(b);
	struct dry_run *d = calloc(1, sizeof(*d));

	if (!d) {
		backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	d->l = l;
	d->rq = rq;
	l->submitting++;
	loop_work(b->loop, dry_run_work, dry_run_done, d);
}
