/* SPDX-License-Identifier: MIT */
/*
 * The local backend: jobs run as processes of this machine. This file is its face to backend.c:
 * life, texts, info and metrics; local.h says what the other files do.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <sys/stat.h>

#include "backend/local.h"
#include "spec/limits.h"

/* Beyond grace: for processes to go after SIGKILL, and for records to be written. */
#define STOP_EXTRA_MS 5000

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
	if (asprintf(&l->mark, "KXFS_STATE=%s", real) < 0) {
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
	local_keep_free(l);
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
	local_keep_free(l);
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
	path = local_path(b->config.state_dir, job->id, "app.yaml");
	if (!path)
		return -ENOMEM;
	return local_file_read(path, SPEC_MAX_FILE, ret, ret_len);
}

/* TEXT as a YAML string in double quotes. */
static void print_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\x%02x", *p);
		else
			fputc(*p, out);
	}
	fputc('"', out);
}

static int local_info(struct backend *b, FILE *out)
{
	fputs("state: ", out);
	print_quoted(out, b->config.state_dir);
	fputs("\nwork_dir: ", out);
	print_quoted(out, b->config.work_dir);
	fprintf(out, "\ngrace: %u.%03u # seconds\n", b->config.grace_ms / 1000,
		b->config.grace_ms % 1000);
	return ferror(out) ? -ENOMEM : 0;
}

static int local_metrics(struct backend *b, FILE *out)
{
	struct local *l = local_of(b);
	const struct metric {
		const char *name, *type, *help;
		unsigned long value;
	} metrics[] = {
		{"processes", "gauge", "Replicas whose process runs", atomic_load(&l->n_processes)},
		{"starts_total", "counter", "Processes started", atomic_load(&l->n_started)},
		{"start_failures_total", "counter", "Attempts that could not be started",
		 atomic_load(&l->n_not_started)},
		{"restarts_total", "counter", "Restarts by a retry policy",
		 atomic_load(&l->n_restarts)},
		{"record_failures_total", "counter", "Writes of a job's record that failed",
		 atomic_load(&l->n_unsaved)},
	};

	for (size_t i = 0; i < array_size(metrics); i++) {
		const struct metric *m = &metrics[i];

		fprintf(out,
			"# HELP kxfs_local_%s %s.\n# TYPE kxfs_local_%s %s\nkxfs_local_%s %lu\n",
			m->name, m->help, m->name, m->type, m->name, m->value);
	}
	return ferror(out) ? -ENOMEM : 0;
}

const struct backend_ops local_ops = {
	.kind = "local",
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
