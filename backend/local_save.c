/* SPDX-License-Identifier: MIT */
/*
 * A job's record on disk and its snapshot in the store. One write at a time; what changes
 * meanwhile goes into the next. A state that users rely on (a final one, or the move to history) is published only
 * after it has been written, so that a crash never takes back what somebody has seen; any other
 * is published at once. When the disk takes nothing more, the state is published all the same and
 * the record is tried again until it can be written.
 */
#include <errno.h>

#include "backend/local.h"

#define RETRY_MS 10000
/* A job of thousands of replicas is shown before all are started. */
#define SHOW_NS (2 * INT64_C(1000000000))

struct save {
	struct local_job *job;
	char *dir;
	char *text;
	int err;
};

static void save_turn(void *data);

static void save_free(struct save *s)
{
	free(s->dir);
	free(s->text);
	free(s);
}

void local_save(struct local_job *job)
{
	job->dirty = true;
	if (job->posted || job->writing)
		return;
	job->posted = true;
	loop_post(job->l->b->loop, save_turn, job);
}

static void publish(struct local_job *job, struct spec_job *snap)
{
	cleanup_job const struct spec_job *seen = spec_job_ref(snap);

	if (store_put(job->l->b->store, snap) < 0) {
		/* The next change, or the retry, brings another. */
		diag(DIAG_ERROR, "%s: no memory to show its state", snap->id);
		spec_job_unref(snap);
		return;
	}
	local_wait_check(job, seen);
}

static void save_work(void *data)
{
	struct save *s = data;

	s->err = file_write(s->dir, "job.json", s->text, strlen(s->text));
}

static void retry_now(void *data)
{
	struct local_job *job = data;

	loop_timer_free(take_ptr(job->retry));
	local_save(job);
}

/* Try the save again later. While stopping there is no later. */
static void save_failed(struct local_job *job, int err)
{
	atomic_fetch_add(&job->l->n_unsaved, 1);
	if (!job->write_failed)
		diag(DIAG_ERROR,
		     "%s: its state can't be recorded: %s; it is tried again every %d s",
		     job->rec->id, strerror(-err), RETRY_MS / 1000);
	job->write_failed = true;
	if (!job->l->stopping && !job->retry)
		job->retry = loop_timer_new(job->l->b->loop, RETRY_MS, 0, retry_now, job);
}

/* It is over, and that is known on disk and in the store: it need not stay in memory. */
static void retire(struct local_job *job)
{
	struct local *l = job->l;

	spool_job_close(take_ptr(job->spool)); /* what waits may remove its directory */
	local_wait_retired(job);
	local_job_free(job);
	keep_soon(l->keep);
	local_check_stopped(l);
}

static void save_done(void *data)
{
	struct save *s = data;
	struct local_job *job = s->job;

	job->writing = false;
	if (s->err == 0) {
		if (job->write_failed)
			diag(DIAG_INFO, "%s: its state is recorded again", job->rec->id);
		job->write_failed = false;
		loop_timer_free(take_ptr(job->retry));
	} else {
		save_failed(job, s->err);
	}
	save_free(s);
	if (job->snapshot)
		publish(job, take_ptr(job->snapshot));
	if (job->dirty)
		local_save(job);
	else if (job->over && job->live == 0 && !job->retry)
		retire(job);
}

static struct save *save_new(struct local_job *job)
{
	struct save *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->job = job;
	s->dir = file_path(job->l->b->config.state_dir, job->rec->id, NULL);
	s->text = spec_record_text(job->rec);
	if (s->dir && s->text)
		return s;
	save_free(s);
	return NULL;
}

/* Nobody sees a job before all of it has been started; but who submitted it does not wait long. */
static bool is_hidden(const struct local_job *job)
{
	return !job->shown && job->to_start > 0 && job->goal == LOCAL_RUN &&
	       job->rec->retries == 0 && loop_time_ns() - job->rec->created < SHOW_NS;
}

/* From now on it is seen, whole: all its logs are there. */
static void show(struct local_job *job)
{
	job->shown = true;
	for (size_t i = 0; i < job->rec->n_replicas && job->to_start > 0; i++)
		local_replica_open_log(&job->reps[i]);
}

static void save_turn(void *data)
{
	struct local_job *job = data;
	const struct spec_record *rec = job->rec;
	struct spec_job *snap;
	struct save *s;

	job->posted = false;
	if (is_hidden(job))
		return;
	if (!job->shown)
		show(job);
	s = save_new(job);
	snap = s ? spec_record_job(rec) : NULL;
	if (!snap) {
		if (s)
			save_free(s);
		save_failed(job, -ENOMEM);
		return;
	}
	job->dirty = false;
	job->writing = true;
	if (rec->history || job->over)
		job->snapshot = snap;
	else
		publish(job, snap);
	loop_work(job->l->b->loop, save_work, save_done, s);
}

void local_save_free(struct local_job *job)
{
	spec_job_unref(take_ptr(job->snapshot));
	loop_timer_free(take_ptr(job->retry));
}
