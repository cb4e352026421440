/* SPDX-License-Identifier: MIT */
/*
 * A submission: the AppDef is read and the job recorded on the pool; then its replicas are
 * started, it becomes visible, and only then the request is answered. If it can't be recorded
 * nothing runs.
 */
#include <errno.h>
#include <sys/stat.h>

#include "backend/local.h"
#include "backend/random.h"
#include "spec/name.h"

/* A suffix has 64 random bits: a second try is already a surprise. */
#define TRIES 16

struct submit {
	struct local *l;
	struct backend_request *rq;
	struct spec_record *rec;
	char *id; /* its directory is made */
	int err;
	char *text; /* what is wrong, for people */
};

static void submit_free(struct submit *s)
{
	spec_record_free(s->rec);
	free(s->id);
	free(s->text);
	free(s);
}

/* A job for a cluster: here it can only be told whether it is too large for any. */
static int refuse_scheduler(struct submit *s, const char *scheduler, struct spec_errors *e)
{
	cleanup(spec_errors_clear) struct spec_errors other = SPEC_ERRORS_INIT;
	cleanup_free char *manifest = NULL;

	if (local_dry_run_make(s->l, s->rq, &manifest, &other) == -EFBIG) {
		s->text = spec_errors_text(&other, s->rq->file);
		return -EFBIG;
	}
	spec_errors_add(e, -EINVAL, 0, 0, "scheduler",
			"this mount runs local jobs; mount %s to submit it there, or write it to "
			"dryrun/ to see its manifest",
			scheduler);
	s->text = spec_errors_text(e, s->rq->file);
	return -EINVAL;
}

static int parse(struct submit *s, struct spec_app **ret)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	const struct backend_request *rq = s->rq;
	int err = spec_app_parse(rq->text, rq->len, s->l->b->config.home, &app, &e);

	if (err == 0 && app->scheduler && !streq(app->scheduler, "local"))
		return refuse_scheduler(s, app->scheduler, &e);
	if (err < 0)
		s->text = spec_errors_text(&e, rq->file);
	else
		*ret = take_ptr(app);
	return err;
}

/* Choose the id and make its directory: one that exists, whatever is in it, is not ours. */
static int make_dir(struct submit *s, const char *app)
{
	const char *state_dir = s->l->b->config.state_dir;

	for (int i = 0; i < TRIES; i++) {
		cleanup_free char *id = NULL;
		cleanup_free char *dir = NULL;
		uint64_t v;

		if (random_bytes(&v, sizeof(v)) < 0)
			return -EIO;
		id = spec_name_job(app, v);
		if (!id)
			return -ENOMEM;
		if (!spec_name_is_file(id))
			return -EINVAL;
		dir = file_path(state_dir, id, NULL);
		if (!dir)
			return -ENOMEM;
		if (mkdir(dir, 0700) == 0) {
			s->id = take_ptr(id);
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int fill(struct submit *s)
{
	const struct backend_request *rq = s->rq;
	char uid[37], submission[37];
	const struct spec_record_origin origin = {
		.id = s->id,
		.uid = uid,
		.submission = submission,
		.submitter = rq->submitter,
		.file = rq->file,
		.work_dir = s->l->b->config.work_dir,
		.created = loop_time_ns(),
	};

	if (random_uuid(uid) < 0 || random_uuid(submission) < 0)
		return -EIO;
	return spec_record_begin(s->rec, &origin);
}

static int store_files(struct submit *s)
{
	const char *state_dir = s->l->b->config.state_dir;
	cleanup_free char *dir = file_path(state_dir, s->id, NULL);
	cleanup_free char *jobs = NULL;
	int err;

	if (asprintf(&jobs, "%s/jobs", state_dir) < 0)
		jobs = NULL;
	if (!dir || !jobs)
		return -ENOMEM;
	err = file_write(dir, "app.yaml", s->rq->text, s->rq->len);
	if (err == 0)
		err = local_record_write(state_dir, s->rec);
	if (err == 0)
		err = file_sync_dir(jobs);
	return err;
}

static void remove_files(struct submit *s)
{
	static const char *const names[] = {"job.json", "app.yaml"};
	const char *state_dir = s->l->b->config.state_dir;
	cleanup_free char *dir = file_path(state_dir, s->id, NULL);

	for (size_t i = 0; i < array_size(names); i++) {
		cleanup_free char *path = file_path(state_dir, s->id, names[i]);

		if (path)
			unlink(path);
	}
	if (dir && rmdir(dir) < 0)
		diag(DIAG_WARNING, "%s: left over from a failed submission: %s", dir,
		     strerror(errno));
}

/* A sentence for an error that the document is not to blame for. */
static void explain(struct submit *s)
{
	if (s->text)
		return;
	if (asprintf(&s->text, "%s: the job can't be recorded in %s: %s; nothing was launched\n",
		     s->rq->file, s->l->b->config.state_dir, strerror(-s->err)) < 0)
		s->text = NULL;
}

static int submit_try(struct submit *s)
{
	struct spec_app *app = NULL;
	int err = parse(s, &app);

	if (err < 0)
		return err;
	err = make_dir(s, app->name);
	if (err < 0) {
		spec_app_free(app);
		return err;
	}
	s->rec = spec_record_new(app);
	err = s->rec ? fill(s) : -ENOMEM;
	if (err == 0)
		err = store_files(s);
	if (err < 0)
		remove_files(s);
	return err;
}

static void submit_work(void *data)
{
	struct submit *s = data;

	s->err = submit_try(s);
	if (s->err < 0)
		explain(s);
}

static void removed(void *data)
{
	struct submit *s = data;
	struct local *l = s->l;

	explain(s);
	backend_answer(s->rq, s->err, NULL, s->text);
	submit_free(s);
	l->submitting--;
	local_check_stopped(l);
}

/* It is recorded, but can't run after all. */
static void give_up(struct submit *s, int err)
{
	s->err = err;
	spool_job_remove(s->l->b->spool, s->id, removed, s);
}

static void submit_done(void *data)
{
	struct submit *s = data;
	struct local *l = s->l;
	struct local_job *job;

	if (s->err < 0) {
		removed(s);
		return;
	}
	if (l->stopping) {
		give_up(s, -ECANCELED);
		return;
	}
	job = local_job_new(l, take_ptr(s->rec));
	if (!job) {
		give_up(s, -ENOMEM);
		return;
	}
	/* Its processes' first turn comes later: nothing runs if this fails. */
	if (local_wait_add(job, LOCAL_WAIT_SUBMIT, s->rq) < 0) {
		local_job_free(job);
		give_up(s, -ENOMEM);
		return;
	}
	l->submitting--;
	submit_free(s);
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		local_replica_begin(&job->reps[i], 0);
}

void local_submit(struct backend *b, struct backend_request *rq)
{
	struct local *l = local_of(b);
	struct submit *s = calloc(1, sizeof(*s));

	if (!s) {
		backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	s->l = l;
	s->rq = rq;
	l->submitting++;
	loop_work(b->loop, submit_work, submit_done, s);
}
