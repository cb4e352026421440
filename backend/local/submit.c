/* SPDX-License-Identifier: MIT */
/* Submissions and dry runs: their part on the pool, and what follows on the I/O thread. */
#include "backend/local/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/random.h"
#include "backend/local/record_file.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/record/dry_run.h"
#include "spec/record/local.h"

/* A suffix has 64 random bits: a second try is already a surprise. */
#define TRIES 16

struct submit {
	struct submit_context *c;
	struct backend_request *rq;
	struct spec_record *rec;
	char *id;	/* its directory is made */
	char *manifest; /* of a dry run */
	int err;
	char *text; /* what is wrong, for people */
};

static struct submit *submit_new(struct submit_context *c, struct backend_request *rq)
{
	struct submit *s = new0(struct submit);

	s->c = c;
	s->rq = rq;
	group_enter(c->group);
	return s;
}

static void submit_free(struct submit *s)
{
	struct group *group = s->c->group;

	spec_record_free(s->rec);
	free(s->id);
	free(s->manifest);
	free(s->text);
	free(s);
	group_leave(group);
}

/* --- where jobs run --- */

/* The canonical path of DIR, malloc'ed; NULL: programs can't be started there, as errno says. */
static char *find_dir(const char *dir)
{
	char *ret cleanup_free = realpath(dir, NULL);
	int fd cleanup_fd = ret ? open(ret, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0 || faccessat(fd, ".", X_OK, AT_EACCESS) < 0)
		return NULL;
	return take_ptr(ret);
}

/* A dir_error of struct spec_machine. A job in the mount itself would keep it busy for ever. */
static char *dir_error(void *data, const char *dir)
{
	const struct backend_config *config = data;
	char *path cleanup_free = find_dir(dir);

	if (!path)
		return text_print("%s: %s: no job can run there", dir, strerror(errno));
	if (config->mountpoint && file_is_below(path, config->mountpoint))
		return text_print("%s: is in the mount, which a job would keep busy: name another "
				  "directory",
				  dir);
	return NULL;
}

static struct spec_machine machine_of(struct backend *b)
{
	return (struct spec_machine){.home = b->config.home,
				     .work_dir = b->config.work_dir,
				     .dir_error = dir_error,
				     .data = &b->config};
}

/* --- dry runs --- */

/* The manifest of the document in RQ. 0, or an errno, with errors in E if the document is to blame. */
static int make_manifest(struct backend *b, const struct backend_request *rq, char **ret,
			 struct spec_errors *e)
{
	const struct backend_config *config = &b->config;
	struct spec_dry_run d = {
		.backend = "local",
		.namespace = "",
		.args = config->args,
		.n_args = config->n_args,
		.file = rq->file,
		.submitter = rq->submitter,
		.machine = machine_of(b),
		.now = loop_time_ns(),
	};
	size_t len;

	if (random_bytes(d.random, sizeof(d.random)) < 0)
		return -EIO;
	return spec_dry_run(&d, rq->text, rq->len, ret, &len, e);
}

static void dry_run_work(void *data)
{
	struct submit *s = data;
	struct spec_errors e = SPEC_ERRORS_INIT;

	s->err = make_manifest(s->c->b, s->rq, &s->manifest, &e);
	if (s->err < 0 && e.n > 0)
		s->text = spec_errors_text(&e, s->rq->file);
	spec_errors_clear(&e);
}

static void dry_run_done(void *data)
{
	struct submit *s = data;

	if (s->err < 0)
		backend_answer(s->rq, s->err, NULL, s->text);
	else
		backend_answer_dry_run(s->rq, s->manifest);
	submit_free(s);
}

void submit_dry_run(struct submit_context *c, struct backend_request *rq)
{
	loop_work(c->b->loop, dry_run_work, dry_run_done, submit_new(c, rq));
}

/* --- on the pool --- */

/* The document is for a cluster: refuse it; here we can only find out whether it is too large for any cluster. */
static int refuse_scheduler(struct submit *s, const char *scheduler, struct spec_errors *e)
{
	cleanup(spec_errors_clear) struct spec_errors other = SPEC_ERRORS_INIT;
	cleanup_free char *manifest = NULL;

	if (make_manifest(s->c->b, s->rq, &manifest, &other) == -EFBIG) {
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

static int parse(struct submit *s, struct spec_app **ret, char **ret_dir)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	const struct backend_request *rq = s->rq;
	const struct spec_machine machine = machine_of(s->c->b);
	int err = spec_local_parse(rq->text, rq->len, &machine, &app, ret_dir, &e);

	if (err == 0 && app->scheduler && !streq(app->scheduler, "local"))
		return refuse_scheduler(s, app->scheduler, &e);
	if (err < 0)
		s->text = spec_errors_text(&e, rq->file);
	else
		*ret = take_ptr(app);
	return err;
}

/* Choose the id and make its folder. A folder that is there already belongs to another job. */
static int make_dir(struct submit *s, const char *app)
{
	const char *state_dir = s->c->b->config.state_dir;

	for (int i = 0; i < TRIES; i++) {
		cleanup_free char *id = NULL;
		cleanup_free char *dir = NULL;
		uint64_t v;

		if (random_name(&v) < 0)
			return -EIO;
		id = spec_name_job(app, v);
		if (!spec_name_is_file(id))
			return -EINVAL;
		dir = text_print("%s/jobs/%s", state_dir, id);
		if (mkdir(dir, 0700) == 0) {
			s->id = take_ptr(id);
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* DIR is where the job runs. */
static int fill(struct submit *s, const char *dir)
{
	const struct backend_request *rq = s->rq;
	char uid[37];
	const struct spec_record_origin origin = {
		.id = s->id,
		.uid = uid,
		.submission = rq->submission,
		.submitter = rq->submitter,
		.file = rq->file,
		.work_dir = dir,
		.created = loop_time_ns(),
	};

	if (random_uuid(uid) < 0)
		return -EIO;
	spec_record_begin(s->rec, &origin);
	return 0;
}

static int store_files(struct submit *s)
{
	const char *state_dir = s->c->b->config.state_dir;
	cleanup_free char *dir = text_print("%s/jobs/%s", state_dir, s->id);
	cleanup_free char *jobs = text_print("%s/jobs", state_dir);
	cleanup_free char *app = text_print("%s/app.yaml", dir);
	int err = file_make(dir, "app.yaml", s->rq->text, s->rq->len);

	if (err == 0 && chmod(app, S_IRUSR | S_IWUSR | s->rq->readable) < 0)
		err = -errno;
	if (err == 0)
		err = record_write_first(state_dir, s->rec);
	if (err == 0)
		err = file_sync_dir(jobs);
	return err;
}

static void remove_files(struct submit *s)
{
	static const char *const names[] = {"job.json", ".job.json.room", "app.yaml"};
	cleanup_free char *dir = text_print("%s/jobs/%s", s->c->b->config.state_dir, s->id);

	for (size_t i = 0; i < array_size(names); i++) {
		cleanup_free char *path = text_print("%s/%s", dir, names[i]);

		unlink(path);
	}
	if (rmdir(dir) < 0)
		diag(DIAG_WARNING, "%s: left over from a failed submission: %s", dir,
		     strerror(errno));
}

/* A sentence for an error that the document is not to blame for. */
static void explain(struct submit *s)
{
	if (!s->text)
		s->text = text_print(
			"%s: the job can't be recorded in %s: %s; nothing was launched\n",
			s->rq->file, s->c->b->config.state_dir, strerror(-s->err));
}

static int submit_try(struct submit *s)
{
	struct spec_app *app = NULL;
	char *dir cleanup_free = NULL;
	int err = parse(s, &app, &dir);

	if (err < 0)
		return err;
	err = make_dir(s, app->name);
	if (err < 0) {
		spec_app_free(app);
		return err;
	}
	s->rec = spec_record_new(app);
	err = fill(s, dir);
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

/* --- on the I/O thread --- */

static void refuse(void *data)
{
	struct submit *s = data;

	explain(s);
	backend_answer(s->rq, s->err, NULL, s->text);
	submit_free(s);
}

/* The job is recorded but can't be started: remove it, and answer. */
static void give_up(struct submit *s, int err)
{
	s->err = err;
	output_job_remove(s->c->b->output, s->id, refuse, s);
}

static void submit_done(void *data)
{
	struct submit *s = data;
	struct local_job *job;

	if (s->err < 0) {
		refuse(s);
		return;
	}
	if (s->c->stopping) {
		give_up(s, -ECANCELED);
		return;
	}
	job = local_job_new(s->c->jobs, s->rec);
	if (!job) {
		give_up(s, -errno);
		return;
	}
	s->rec = NULL;
	control_await(s->c->control, job, s->rq);
	local_job_launch(job);
	submit_free(s);
}

void submit_begin(struct submit_context *c, struct backend_request *rq)
{
	loop_work(c->b->loop, submit_work, submit_done, submit_new(c, rq));
}
