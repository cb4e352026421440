/* SPDX-License-Identifier: MIT */
/*
 * The local backend: jobs run as processes of this machine. This file is its face to backend.c:
 * life, texts, info and metrics; local.h says what the other files do.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <sys/stat.h>

#include "backend/local.h"
#include "backend/print.h"
#include "spec/limits.h"

/* Beyond grace: for processes to go after SIGKILL, and for records to be written. */
#define STOP_EXTRA_MS 5000

static bool may_go(struct backend *b, const struct spec_job *job)
{
	return !local_job_find(local_of(b), job->id);
}

static bool is_removing(struct backend *b)
{
	return local_of(b)->cold;
}

static void remove_job(struct backend *b, const struct spec_job *job)
{
	local_cold_add(local_of(b), LOCAL_COLD_EXPIRE, job->uid, NULL);
}

static const struct keep_ops keep_ops = {may_go, is_removing, remove_job};

/* All local mounts of a user are one: a second one would fight for the same state. */
static int local_key(const struct backend_config *config, char **ret, char **ret_text)
{
	(void)ret_text;
	*ret = strdup(config->kind);
	return *ret ? 0 : -ENOMEM;
}

static int local_init(struct backend *b, char **ret_text)
{
	cleanup_free char *real = realpath(b->config.state_dir, NULL);
	cleanup_free char *jobs = NULL;
	struct local *l;
	int err;

	if (real && asprintf(&jobs, "%s/jobs", real) < 0)
		jobs = NULL;
	if (real && !jobs)
		return -ENOMEM;
	if (!real || (mkdir(jobs, 0700) < 0 && errno != EEXIST)) {
		err = -errno;
		if (asprintf(ret_text, "state directory %s: %s", b->config.state_dir,
			     strerror(-err)) < 0)
			*ret_text = NULL;
		return err;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	if (asprintf(&l->mark, "KXFS_STATE=%s", real) < 0)
		l->mark = NULL;
	l->keep = keep_new(b, &keep_ops);
	if (!l->mark || !l->keep) {
		free(l->mark);
		keep_free(l->keep);
		free(l);
		return -ENOMEM;
	}
	l->b = b;
	b->impl = l;
	/* What the daemon has inherited does not go on to jobs; its own are so from the start. */
	(void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	return 0;
}

static void local_start(struct backend *b)
{
	local_recover(local_of(b));
}

static void say_stopped(struct local *l)
{
	loop_timer_free(take_ptr(l->deadline));
	l->stopped = true;
	backend_stopped(l->b);
}

void local_check_stopped(struct local *l)
{
	if (l->stopping && !l->stopped && !l->jobs && !l->cold && !l->scans && !l->submitting &&
	    !l->recovering && !l->n_relays)
		say_stopped(l);
}

static void stop_late(void *data)
{
	struct local *l = data;

	diag(DIAG_ERROR,
	     "%u jobs have not ended or can't be recorded; their processes are ended "
	     "at the next start",
	     HASH_COUNT(l->jobs));
	say_stopped(l);
}

static void local_stop(struct backend *b)
{
	struct local *l = local_of(b);
	struct local_job *job, *next;

	l->stopping = true;
	keep_free(take_ptr(l->keep));
	l->deadline = loop_timer_new(b->loop, b->config.grace_ms + STOP_EXTRA_MS, 0, stop_late, l);
	HASH_ITER(hh, l->jobs, job, next) {
		loop_timer_free(take_ptr(job->retry));
		if (job->over)
			local_save(job); /* it could not be recorded: try a last time */
		else
			local_job_end(job, LOCAL_STOP);
	}
	local_check_stopped(l);
}

static void local_fini(struct backend *b)
{
	struct local *l = local_of(b);
	struct local_job *job, *next;

	if (!l)
		return;
	HASH_ITER(hh, l->jobs, job, next)
		local_job_free(job);
	keep_free(take_ptr(l->keep));
	free(l->mark);
	free(l);
	b->impl = NULL;
}

static int manifest(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len)
{
	cleanup(local_record_freep) struct spec_record *rec = NULL;
	int err = local_record_read(b->config.state_dir, job->id, &rec);

	if (err < 0)
		return err;
	return spec_record_yaml(rec, ret, ret_len);
}

static int local_text(struct backend *b, const struct spec_job *job, enum backend_text which,
		      char **ret, size_t *ret_len)
{
	cleanup_free char *path = NULL;

	if (which == BACKEND_MANIFEST)
		return manifest(b, job, ret, ret_len);
	path = file_path(b->config.state_dir, job->id, "app.yaml");
	if (!path)
		return -ENOMEM;
	return file_read(path, SPEC_MAX_FILE, ret, ret_len);
}

static int local_info(struct backend *b, FILE *out)
{
	print_text(out, "state", b->config.state_dir);
	print_text(out, "work_dir", b->config.work_dir);
	fprintf(out, "grace: %u.%03u # seconds\n", b->config.grace_ms / 1000,
		b->config.grace_ms % 1000);
	return ferror(out) ? -ENOMEM : 0;
}

static int local_metrics(struct backend *b, FILE *out)
{
	struct local *l = local_of(b);
	const struct print_metric metrics[] = {
		{"local_processes", "gauge", "Replicas whose process runs",
		 atomic_load(&l->n_processes)},
		{"local_starts_total", "counter", "Processes started", atomic_load(&l->n_started)},
		{"local_start_failures_total", "counter", "Attempts that could not be started",
		 atomic_load(&l->n_not_started)},
		{"local_restarts_total", "counter", "Restarts by a retry policy",
		 atomic_load(&l->n_restarts)},
		{"local_record_failures_total", "counter", "Writes of a job's record that failed",
		 atomic_load(&l->n_unsaved)},
	};

	print_metrics(out, metrics, array_size(metrics));
	return ferror(out) ? -ENOMEM : 0;
}

const struct backend_ops local_ops = {
	.key = local_key,
	.init = local_init,
	.start = local_start,
	.stop = local_stop,
	.fini = local_fini,
	.submit = local_submit,
	.dry_run = local_dry_run,
	.cancel = local_cancel,
	.control = local_control,
	.forget = local_forget,
	.text = local_text,
	.info = local_info,
	.metrics = local_metrics,
};
