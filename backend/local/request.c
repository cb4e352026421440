/* SPDX-License-Identifier: MIT */
/*
 * Submissions and dry runs run on the pool first, and then continue on the I/O thread. A job's
 * record is SUBMITTING on disk before anything is started. If the job was held, its record already
 * exists, and this file adds the plan and the snapshot.
 */
#include "backend/local/request.h"

#include <errno.h>
#include <fcntl.h>

#include <utlist.h>

#include "backend/base/file.h"
#include "backend/base/lookup.h"
#include "backend/base/process.h"
#include "backend/base/random.h"
#include "backend/base/work.h"
#include "backend/local/record.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/record/dry_run.h"
#include "spec/record/local.h"

#define CONTROL_WAIT_MS 5000

/* how long the lookup of a working directory may take */
#define LOOK_MS 10000

enum wait_kind { WAIT_SUBMIT, WAIT_CONTROL, WAIT_CANCEL, WAIT_FORGET };

struct local_wait {
	struct local_wait *prev, *next;
	struct local_requests *c;
	struct local_job *job;
	struct backend_request *rq;
	enum wait_kind kind;
	uint64_t change;	 /* number of the change that the request made, or 0 */
	struct loop_timer timer; /* only for WAIT_CONTROL: when to call on_late */
};

struct local_requests {
	struct backend *b;
	struct group *group;
	struct local_jobs *jobs;
	struct saved *saved;
	unsigned gpus; /* number of GPUs for jobs */
	bool stopping; /* the mount is ending: launch no more jobs */
	struct local_wait *waits;
};

static void answer(struct local_wait *w, int err, const char *text)
{
	struct backend_request *rq = w->rq;
	const char *id = local_job_record(w->job)->job->id;

	DL_DELETE(w->c->waits, w);
	loop_timer_stop(&w->timer);
	free(w);
	backend_answer(rq, err, id, text);
}

/* If the change is on disk, report success, even before the effect is visible. Else wait again. */
static void on_late(void *data)
{
	struct local_wait *w = data;

	if (local_job_has_saved(w->job, w->change))
		answer(w, 0, NULL);
	else
		loop_timer_set(&w->timer, CONTROL_WAIT_MS);
}

static void wait_for(struct local_requests *c, struct local_job *job, enum wait_kind kind,
		     struct backend_request *rq, uint64_t change)
{
	struct local_wait *w = new0(struct local_wait);

	w->c = c;
	w->job = job;
	w->rq = rq;
	w->kind = kind;
	w->change = change;
	loop_timer_init(&w->timer, c->b->loop, on_late, w);
	if (kind == WAIT_CONTROL)
		loop_timer_set(&w->timer, CONTROL_WAIT_MS);
	DL_APPEND(c->waits, w);
}

static bool is_fulfilled(const struct local_wait *w, const struct spec_job *snap)
{
	bool final = spec_job_has_ended(snap);

	switch (w->kind) {
	case WAIT_SUBMIT:
		return true;
	case WAIT_CANCEL:
		return snap->history;
	case WAIT_FORGET:
		return false;
	case WAIT_CONTROL:
		break;
	}
	switch (w->rq->action) {
	case SPEC_SUSPEND:
		return snap->suspended || final;
	case SPEC_RESUME:
		return !snap->suspended;
	case SPEC_RESTART:
		return final || streq(snap->phase, "Running");
	default:
		return final;
	}
}

/* --- events of jobs --- */

static void on_published(void *data, struct local_job *job, const struct spec_job *snap)
{
	struct local_requests *c = data;
	struct local_wait *w, *next;

	DL_FOREACH_SAFE(c->waits, w, next)
		if (w->job == job && is_fulfilled(w, snap))
			answer(w, 0, NULL);
}

static void on_unwritten(void *data, struct local_job *job, int err, uint64_t change)
{
	struct local_requests *c = data;
	cleanup_free char *text = text_print(
		"the change is in effect, but kxfs could not write it to disk: %s. A crash of "
		"kxfs would undo the change",
		strerror(-err));
	struct local_wait *w, *next;

	DL_FOREACH_SAFE(c->waits, w, next)
		if (w->job == job && w->change && w->change <= change)
			answer(w, err, text);
}

static void on_leaving(void *data, struct local_job *job)
{
	struct local_requests *c = data;
	struct local_wait *w, *next;

	DL_FOREACH_SAFE(c->waits, w, next) {
		if (w->job != job)
			continue;
		if (w->kind != WAIT_FORGET) {
			answer(w, 0, NULL);
			continue;
		}
		DL_DELETE(c->waits, w);
		saved_change(c->saved, SAVED_FORGET, local_job_record(job)->job->uid, w->rq);
		free(w);
	}
	saved_soon(c->saved);
}

/* --- requests about a job --- */

static void cancel_job(struct local_requests *c, struct backend_request *rq)
{
	struct local_job *job = local_jobs_find(c->jobs, rq->id);

	if (!job) {
		saved_change(c->saved, SAVED_CANCEL, rq->uid, rq);
		return;
	}
	wait_for(c, job, WAIT_CANCEL, rq, local_job_cancel(job));
}

/* Return true if the published job allows RQ's action. Otherwise answer RQ. */
static bool allows(struct local_requests *c, struct backend_request *rq)
{
	const struct spec_job *job cleanup_job = store_get_uid(c->b->store, rq->uid);

	if (job && job->actions & 1u << rq->action)
		return true;
	backend_answer_no_effect(rq, job ? job->phase : "gone");
	return false;
}

/* True if JOB, which may have changed since it was published, still allows ACTION. */
static bool still_allows(const struct local_job *job, enum spec_action action)
{
	if (local_job_is_ending(job))
		return false;
	if (action == SPEC_SUSPEND || action == SPEC_RESUME)
		return local_job_record(job)->job->suspended == (action == SPEC_RESUME);
	return true;
}

static void control_job(struct local_requests *c, struct backend_request *rq)
{
	struct local_job *job = local_jobs_find(c->jobs, rq->id);
	enum spec_action action = rq->action;
	uint64_t change;

	if (!allows(c, rq))
		return;
	if (!job || !still_allows(job, action)) {
		backend_answer(
			rq, -EINVAL, NULL,
			"the job's phase has just changed; read the file ctl for the actions "
			"that are possible now");
		return;
	}
	if (action == SPEC_SUSPEND)
		change = local_job_suspend(job);
	else if (action == SPEC_RESUME)
		change = local_job_resume(job);
	else if (action == SPEC_RESTART)
		change = local_job_restart(job);
	else
		change = local_job_end(job, SPEC_GOAL_TERMINATE);
	wait_for(c, job, WAIT_CONTROL, rq, change);
}

static void forget_job(struct local_requests *c, struct backend_request *rq)
{
	struct local_job *job = local_jobs_find(c->jobs, rq->id);

	if (!job) {
		saved_change(c->saved, SAVED_FORGET, rq->uid, rq);
		return;
	}
	wait_for(c, job, WAIT_FORGET, rq, 0);
	local_job_kill(job);
}

/* --- submissions and dry runs --- */

/*
 * A submission or a dry run. WORK parses the document on the pool. The working directory may be on
 * a hanging disk, so kxfs looks the directory up separately, and then repeats WORK.
 */
struct local_submit {
	struct local_requests *c;
	struct backend_request *rq;
	struct work work;
	char *asked; /* the working directory that the document names, or NULL */
	bool looked; /* the lookup of ASKED has ended */
	char *fault; /* why jobs can't run in ASKED, or NULL */
	bool hangs;  /* FAULT is a problem of a disk or file server, and may be temporary */
	struct spec_record *rec;
	char *plan, *snapshot; /* parts of ENTRY */
	struct record *entry;  /* the job's record */
	bool left;	       /* the record was not written, but may appear after a power cut */
	char *id;
	char *manifest; /* of a dry run */
	char *text;	/* the error text of the answer */
};

static void submit_start(struct local_requests *c, struct backend_request *rq, loop_fn run,
			 loop_fn done)
{
	struct local_submit *s = new0(struct local_submit);

	s->c = c;
	s->rq = rq;
	s->work = (struct work){.run = run, .done = done, .group = c->group, .data = s};
	work_start(&s->work, c->b->loop);
}

static void submit_free(struct local_submit *s)
{
	free(s->asked);
	free(s->fault);
	spec_record_free(s->rec);
	free(s->plan);
	free(s->snapshot);
	free(s->id);
	free(s->manifest);
	free(s->text);
	free(s);
}

/* --- the working directory --- */

struct job_dir {
	char *dir;
	/* canonical path; NULL if programs can't be started in DIR */
	char *path;
	int err;
};

static void job_dir_free(void *question)
{
	struct job_dir *p = question;

	free(p->dir);
	free(p->path);
	free(p);
}

static void job_dir_look(void *question)
{
	struct job_dir *p = question;
	char *path cleanup_free = realpath(p->dir, NULL);
	int fd cleanup_fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0 || faccessat(fd, ".", X_OK, AT_EACCESS) < 0)
		p->err = errno;
	else
		p->path = take_ptr(path);
}

/* Refuse a directory in the mount: a job that runs there would keep the mount busy. */
static void job_dir_found(void *data, void *question)
{
	struct local_submit *s = data;
	const struct backend_config *config = &s->c->b->config;
	const struct job_dir *p = question;

	s->looked = true;
	s->hangs = !p || p->err == EIO || p->err == ESTALE || p->err == ETIMEDOUT ||
		   p->err == ENOTCONN || p->err == EHOSTDOWN || p->err == EHOSTUNREACH;
	if (!p || !p->path)
		s->fault = text_print("%s: %s; jobs can't run in this directory", s->asked,
				      p ? strerror(p->err) : "does not respond");
	else if (config->mountpoint && file_is_below(p->path, config->mountpoint))
		s->fault = text_print("%s: is inside the mount, and a job that runs there would "
				      "prevent unmounting: name another directory",
				      s->asked);
	work_start(&s->work, s->c->b->loop);
}

/* If WORK has found a directory that was not looked up yet, start the lookup and return true. */
static bool submit_looks(struct local_submit *s)
{
	struct lookup l = {.key = s->asked,
			   .ms = LOOK_MS,
			   .look = job_dir_look,
			   .free = job_dir_free,
			   .done = job_dir_found,
			   .data = s,
			   .group = s->c->group};
	struct job_dir *p;

	if (!s->asked || s->looked || s->work.err < 0)
		return false;
	p = new0(struct job_dir);
	p->dir = text_copy(s->asked);
	l.question = p;
	lookup_start(s->c->b->loop, &l);
	return true;
}

/* See struct spec_machine. */
static char *dir_error(void *data, const char *dir)
{
	struct local_submit *s = data;

	if (s->looked)
		return s->fault ? text_copy(s->fault) : NULL;
	text_set(&s->asked, "%s", dir);
	return NULL;
}

static struct spec_machine machine_of(struct local_submit *s)
{
	const struct backend_config *config = &s->c->b->config;

	return (struct spec_machine){.home = config->home,
				     .work_dir = config->work_dir,
				     .args = config->args,
				     .n_args = config->n_args,
				     .gpus = s->c->gpus,
				     .dir_error = dir_error,
				     .data = s};
}

/* --- documents --- */

/* Return 0 or a negative errno. E gets the document's errors. */
static int make_manifest(struct local_submit *s, char **ret, struct spec_errors *e)
{
	const struct backend_config *config = &s->c->b->config;
	const struct backend_request *rq = s->rq;
	struct spec_dry_run d = {
		.kinds = config->kinds,
		.backend = "local",
		.namespace = "",
		.args = config->args,
		.n_args = config->n_args,
		.file = rq->file,
		.submitter = rq->submitter,
		.machine = machine_of(s),
		.now = loop_time_ns(),
	};
	size_t len;

	if (random_bytes(&d.random, sizeof(d.random)) < 0)
		return -EIO;
	if (rq->held)
		memcpy(d.random.name, rq->seed, sizeof(rq->seed));
	return spec_dry_run(&d, rq->text, rq->len, ret, &len, e);
}

/* Refuse a document for a cluster. Return -EFBIG if it is too large for any cluster. */
static int refuse_scheduler(struct local_submit *s, const char *scheduler, struct spec_errors *e)
{
	cleanup(spec_errors_clear) struct spec_errors other = SPEC_ERRORS_INIT;
	cleanup_free char *manifest = NULL;

	if (make_manifest(s, &manifest, &other) == -EFBIG) {
		s->text = spec_errors_text(&other, s->rq->file);
		return -EFBIG;
	}
	spec_errors_add(e, -EINVAL, 0, 0, "scheduler",
			"this mount runs only local jobs; submit the file on a mount of %s, or "
			"write it to dryrun/ to see its manifest",
			scheduler);
	spec_local_locate(s->rq->text, s->rq->len, e);
	s->text = spec_errors_text(e, s->rq->file);
	return -EINVAL;
}

static int parse(struct local_submit *s, struct spec_app **ret, struct spec_terms *ret_terms)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	const struct backend_request *rq = s->rq;
	const struct spec_machine machine = machine_of(s);
	int err = spec_local_parse(rq->text, rq->len, &machine, &app, ret_terms, &e);

	if (err == 0 && app->scheduler && !streq(app->scheduler, "local"))
		return refuse_scheduler(s, app->scheduler, &e);
	if (err < 0)
		s->text = spec_errors_text(&e, rq->file);
	else
		*ret = take_ptr(app);
	return err;
}

/* --- dry runs --- */

static void dry_run_work(void *data)
{
	struct local_submit *s = data;
	struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	struct spec_terms terms cleanup(spec_terms_clear) = {0};

	s->work.err = 0;
	/* If this mount can't launch the job, refuse it before it is held. */
	if (s->rq->held) {
		s->work.err = parse(s, &app, &terms);
		if (!s->work.err && !s->id)
			s->id = spec_name_job(app->name, s->rq->seed[0]);
	}
	if (!s->work.err)
		s->work.err = make_manifest(s, &s->manifest, &e);
	if (s->work.err < 0 && e.n > 0)
		s->text = spec_errors_text(&e, s->rq->file);
	spec_errors_clear(&e);
}

static void dry_run_done(void *data)
{
	struct local_submit *s = data;

	if (submit_looks(s))
		return free(take_ptr(s->manifest));
	if (s->work.err < 0)
		backend_answer(s->rq, s->work.err, NULL, s->text);
	else
		backend_reply(s->rq, &(struct backend_result){.text = "",
							      .id = s->id ? s->id : "",
							      .manifest = s->manifest,
							      .backend = "local",
							      .namespace = ""});
	submit_free(s);
}

/* --- submissions, on the pool --- */

/*
 * Choose the job's id. A held job's id follows from the seed in its record. The id of any other job
 * has 64 random bits, so it is unique.
 */
static int choose_id(struct local_submit *s, const char *app)
{
	uint64_t v = s->rq->seed[0];

	if (!s->rq->held && random_name(&v) < 0)
		return -EIO;
	s->id = spec_name_job(app, v);
	return spec_name_is_file(s->id) ? 0 : -EINVAL;
}

/* Make the record of a job. Take ownership of APP. */
static void make_record(struct local_submit *s, struct spec_app *app,
			const struct spec_terms *terms)
{
	const struct backend_request *rq = s->rq;
	const struct spec_record_origin origin = {
		.id = s->id,
		.uid = rq->submission,
		.submission = rq->submission,
		.submitter = rq->submitter,
		.work_dir = terms->dir,
		.created = loop_time_ns(),
		.time_limit = terms->time_limit,
		.ttl = terms->ttl,
	};

	s->rec = spec_record_new(app, &origin);
	s->plan = spec_record_plan(s->rec);
	s->snapshot = spec_record_snapshot(s->rec);
}

static void submit_work(void *data)
{
	struct local_submit *s = data;
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	struct spec_terms terms cleanup(spec_terms_clear) = {0};

	s->work.err = parse(s, &app, &terms);
	/*
	 * The dry run has accepted the document of this held job, and the problem of the directory
	 * may be temporary. So let held.c retry the launch.
	 */
	if (s->work.err == -EINVAL && s->hangs && s->rq->held)
		s->work.err = -EAGAIN;
	if (s->work.err < 0 || (s->asked && !s->looked))
		return;
	s->work.err = choose_id(s, app->name);
	if (!s->work.err)
		make_record(s, take_ptr(app), &terms);
}

/* --- submissions, on the I/O thread --- */

static void refuse(struct local_submit *s, int err)
{
	/* If the document has caused the error, the text is set already. */
	if (!s->text)
		s->text = text_print(
			"%s: kxfs can't record the job in %s: %s; nothing was launched\n",
			s->rq->file, s->c->b->config.state_dir, strerror(-err));
	backend_answer(s->rq, err, NULL, s->text);
	submit_free(s);
}

/*
 * Answer that the record could not be removed. After a power cut, the next start may find the
 * record, and regard the job as launched.
 */
static void leave(struct local_submit *s, int err)
{
	s->text = text_print(
		"%s: kxfs can't record the job in %s: %s, and could not remove the incomplete "
		"record. After the next start of kxfs, jobs/ shows whether the job was launched\n",
		s->rq->file, s->c->b->config.state_dir, strerror(-err));
	return refuse(s, -EINPROGRESS);
}

static void on_given_up(void *data, int err)
{
	struct local_submit *s = data;

	return err ? leave(s, err) : refuse(s, s->work.err);
}

/* Give up the launch of a job that has a record. Remove the record, unless the job was held. */
static void give_up(struct local_submit *s, int err)
{
	s->work.err = err;
	if (s->rq->held)
		return refuse(s, err);
	return records_remove(s->entry, true, on_given_up, s);
}

static void on_recorded(void *data, int err)
{
	struct local_submit *s = data;
	struct local_job *job;

	if (err)
		return s->left ? leave(s, err) : refuse(s, err);
	if (s->c->stopping)
		return give_up(s, -ECANCELED);
	job = local_job_new(s->c->jobs, s->entry, s->rec);
	if (!job)
		return give_up(s, -errno);
	s->rec = NULL;
	wait_for(s->c, job, WAIT_SUBMIT, s->rq, 0);
	local_job_launch(job);
	submit_free(s);
}

static struct spec_head *new_head(const struct local_submit *s, const char *boot)
{
	const struct spec_job *job = s->rec->job;
	struct spec_head *h = backend_head(s->rq);

	spec_set(&h->backend, "local");
	spec_set(&h->id, job->id);
	h->created = job->created;
	h->state = RECORD_SUBMITTING;
	spec_set(&h->more->boot, boot);
	h->more->parts[RECORD_PLAN] = text_copy(s->plan);
	h->more->parts[RECORD_SNAPSHOT] = text_copy(s->snapshot);
	return h;
}

static void submit_done(void *data)
{
	struct local_submit *s = data;
	const struct backend_request *rq = s->rq;
	const struct record_rest rest = {.document = rq->text, .len = rq->len};
	struct records *records = s->c->b->records;
	struct record_change change = {.state = RECORD_SUBMITTING,
				       .plan = s->plan,
				       .snapshot = s->snapshot};
	char boot[37];

	if (submit_looks(s))
		return;
	if (s->work.err < 0 || s->c->stopping)
		return refuse(s, s->work.err ? s->work.err : -ECANCELED);
	process_boot(boot);
	change.boot = boot;
	if (rq->held) {
		s->entry = records_by_key(records, rq->submission);
		return records_commit(s->entry, &change, on_recorded, s);
	}
	s->entry = records_make(records, new_head(s, boot), &rest, &s->left, on_recorded, s);
}

/* --- all requests --- */

void local_requests_take(struct local_requests *c, struct backend_request *rq)
{
	switch (rq->kind) {
	case BACKEND_SUBMIT:
		return submit_start(c, rq, submit_work, submit_done);
	case BACKEND_DRY_RUN:
		return submit_start(c, rq, dry_run_work, dry_run_done);
	case BACKEND_CANCEL:
		return cancel_job(c, rq);
	case BACKEND_CONTROL:
		return control_job(c, rq);
	case BACKEND_FORGET:
		return forget_job(c, rq);
	case BACKEND_N_REQUESTS:
		break;
	}
}

struct local_requests *local_requests_new(struct backend *b, struct group *group,
					  struct local_jobs *jobs, struct saved *saved,
					  unsigned gpus)
{
	struct local_requests *c = new0(struct local_requests);

	*c = (struct local_requests){
		.b = b, .group = group, .jobs = jobs, .saved = saved, .gpus = gpus};
	local_jobs_set_events(jobs, &(struct local_jobs_events){on_published, on_unwritten,
								on_leaving, c});
	return c;
}

void local_requests_stop(struct local_requests *c)
{
	c->stopping = true;
}

void local_requests_free(struct local_requests *c)
{
	struct local_wait *w, *next;

	if (!c)
		return;
	DL_FOREACH_SAFE(c->waits, w, next) {
		loop_timer_stop(&w->timer);
		free(w);
	}
	free(c);
}
