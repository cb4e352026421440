/* SPDX-License-Identifier: MIT */
/*
 * What fs/ sees of the backend, but for requests (request.c). A backend owns the store of snapshots (jobs/), the
 * output of jobs (output/), and one implementation (local/ or kube/), which writes both and answers requests. This
 * file finds the implementation, starts and ends all of it in the right order, and answers what can be answered
 * from store and output, on the thread that asks. Starting and stopping wait, on the thread that calls, for the
 * I/O thread to say how it went: backend_started, backend_stopped.
 */
#include "backend/backend.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/print.h"
#include "backend/impl/held.h"
#include "backend/impl/impl.h"
#include "spec/base/mem.h"

#define BACKEND_START_S 60
/* How long stopping may take beyond the grace of processes, to record how they have ended. */
#define BACKEND_STOP_S 20

/* --- life --- */

static const struct backend_ops *backend_find(const char *kind)
{
	return streq(kind, "local") ? &local_ops : &kube_ops;
}

int backend_key(const struct backend_config *config, char **ret, char **ret_text)
{
	return backend_find(config->kind)->key(config, ret, ret_text);
}

define_cleanup(backend_freep, struct backend *, backend_free)

static void on_job(void *data, const struct spec_job *old, const struct spec_job *new_job)
{
	const struct backend *b = data;
	const struct spec_job *before = old && old->held ? NULL : old;

	held_news(b->held, old, new_job);
	if (b->reader)
		reader_job(b->reader, old, new_job);
	/* A job that was never launched is kept in no archive. */
	if (b->keep && (before || new_job) && !(new_job && new_job->held))
		keep_job(b->keep, before, new_job);
	if (b->events.job)
		return b->events.job(b->events.data, old, new_job);
}

/* Runs on the pool. */
static int keep_text(void *data, const struct spec_job *job, enum keep_text which, char **ret,
		     size_t *ret_len)
{
	struct backend *b = data;
	int64_t changed;

	if (which == KEEP_EVENTS)
		return backend_events(b, job, ret, ret_len, &changed);
	return backend_text(b, job, which == KEEP_APPDEF ? BACKEND_APPDEF : BACKEND_MANIFEST, ret,
			    ret_len);
}

static void on_log(void *data, struct log *log)
{
	struct backend *b = data;

	if (b->events.log)
		return b->events.log(b->events.data, log);
}

int backend_new(struct loop *loop, const struct backend_config *config,
		const struct backend_events *events, struct backend **ret, char **ret_text)
{
	struct backend *b cleanup(backend_freep) = NULL;
	const struct backend_ops *ops = backend_find(config->kind);
	int err = 0;

	b = new0(struct backend);
	b->loop = loop;
	b->events = *events;
	end_init(&b->started);
	end_init(&b->stopped);
	b->config = *config;
	b->store = store_new(&(struct store_events){on_job, b});
	if (config->archive && config->archives)
		err = keep_new(
			&(struct keep_config){
				.loop = loop,
				.place = {config->archive, config->archive_endpoint,
					  config->archive_region},
				.state_dir = b->config.state_dir,
				.writer = config->submitter,
				.stop_ms = config->grace_ms,
				.text = keep_text,
				.data = b,
			},
			&b->keep, ret_text);
	if (err < 0)
		return err;
	b->held = held_new(b, &backend_held_ways);
	err = output_new(loop, b->config.state_dir, &(struct output_events){on_log, b}, &b->output,
			 ret_text);
	if (err < 0)
		return err;
	if (config->archive && !config->archives)
		err = reader_new(
			&(struct reader_config){
				.loop = loop,
				.store = b->store,
				.output = b->output,
				.place = {config->archive, config->archive_endpoint,
					  config->archive_region},
				.state_dir = b->config.state_dir,
				.spool_limit = config->spool_limit,
				.history_keep = config->history_keep,
			},
			&b->reader, ret_text);
	if (err < 0)
		return err;
	err = ops->init(b, ret_text);
	if (err < 0)
		return err;
	b->ops = ops;
	*ret = take_ptr(b);
	return 0;
}

void backend_free(struct backend *b)
{
	if (!b)
		return;
	if (b->ops)
		b->ops->fini(b);
	keep_free(b->keep);
	reader_free(b->reader);
	held_free(b->held);
	output_free(b->output);
	store_free(b->store);
	end_clear(&b->started);
	end_clear(&b->stopped);
	free(b);
}

static void backend_run_start(void *data)
{
	struct backend *b = data;

	b->up = true;
	output_start(b->output);
	b->ops->start(b);
}

int backend_start(struct backend *b, char **ret_text)
{
	int err;

	assert(!loop_is_here(b->loop));
	loop_post(b->loop, backend_run_start, b);
	err = end_wait(&b->started, BACKEND_START_S, ret_text);
	if (err == -ETIMEDOUT && !*ret_text)
		*ret_text =
			text_print("the list of jobs did not come in within %d s", BACKEND_START_S);
	return err;
}

void backend_give_up(struct backend *b)
{
	if (b->ops->start_asks)
		end_reach(&b->started, -ECANCELED, NULL);
}

static void backend_run_charge(void *data)
{
	struct backend *b = data;

	if (b->ops->take_charge)
		b->ops->take_charge(b);
	held_take_charge(b->held);
}

void backend_take_charge(struct backend *b)
{
	loop_post(b->loop, backend_run_charge, b);
}

static void backend_run_stop(void *data)
{
	struct backend *b = data;

	if (!b->up) {
		backend_stopped(b);
		return;
	}
	b->up = false;
	b->ops->stop(b);
}

bool backend_stop(struct backend *b)
{
	/* Processes have the grace, and then so has what is still to be archived. */
	unsigned seconds = (b->keep ? 2 : 1) * b->config.grace_ms / 1000 + 1 + BACKEND_STOP_S;

	assert(!loop_is_here(b->loop));
	loop_post(b->loop, backend_run_stop, b);
	if (end_wait(&b->stopped, seconds, NULL) == 0)
		return true;
	diag(DIAG_ERROR, "jobs did not end within %u s; the next start ends what is left", seconds);
	return false;
}

/* --- jobs --- */

const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id)
{
	return store_get(b->store, place, id);
}

const struct spec_job *backend_job_by_uid(struct backend *b, const char *uid)
{
	const struct spec_job *job = store_get_uid(b->store, uid);

	const struct spec_job *read cleanup_job = NULL;

	/* The reader may know more of the job than the store. */
	if (b->reader && (!job || job->archived))
		read = reader_by_uid(b->reader, uid);
	if (!read)
		return job;
	spec_job_unref(job);
	return take_ptr(read);
}

void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n)
{
	store_list(b->store, place, ret, ret_n);
}

int64_t backend_changed(struct backend *b, enum backend_place place)
{
	return store_changed(b->store, place);
}

void backend_wanted(struct backend *b, const struct spec_job *job)
{
	lock_assert_none();
	if (b->ops->wanted && !job->history)
		b->ops->wanted(b, job);
}

void backend_usage_wanted(struct backend *b)
{
	lock_assert_none();
	if (b->ops->usage_wanted)
		b->ops->usage_wanted(b);
}

uint64_t backend_revision(struct backend *b, enum backend_place place)
{
	return store_revision(b->store, place);
}

int64_t backend_stale_since(struct backend *b)
{
	return b->ops->stale_since ? b->ops->stale_since(b) : 0;
}

/* --- the archive --- */

bool backend_has_archive(const struct backend *b)
{
	return b->reader;
}

void backend_archive_look(struct backend *b)
{
	lock_assert_none();
	if (b->reader)
		reader_look(b->reader);
}

int backend_archive_days(struct backend *b, char ***ret, size_t *ret_n)
{
	*ret = NULL;
	*ret_n = 0;
	return b->reader ? reader_days(b->reader, ret, ret_n) : 0;
}

int backend_archive_jobs(struct backend *b, const char *day, const struct spec_job ***ret,
			 size_t *ret_n)
{
	return b->reader ? reader_jobs(b->reader, day, ret, ret_n) : -ENOENT;
}

int backend_archive_job(struct backend *b, const char *day, const char *id,
			const struct spec_job **ret)
{
	return b->reader ? reader_job_of(b->reader, day, id, ret) : -ENOENT;
}

int backend_archive_find(struct backend *b, const char *id, const struct spec_job **ret)
{
	return b->reader ? reader_find(b->reader, id, ret) : -ENOENT;
}

int backend_complete(struct backend *b, const struct spec_job **job)
{
	return b->reader ? reader_complete(b->reader, job) : 0;
}

/* --- texts --- */

int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len)
{
	lock_assert_none();
	if (job->held)
		return held_text(b->config.state_dir, job, which, ret, ret_len);
	if (job->archived)
		return reader_text(b->reader, job,
				   which == BACKEND_APPDEF ? KEEP_APPDEF : KEEP_MANIFEST, ret,
				   ret_len);
	return b->ops->text(b, job, which, ret, ret_len);
}

int backend_text_size(struct backend *b, const struct spec_job *job, enum backend_text which,
		      size_t *ret_len)
{
	cleanup_free char *text = NULL;
	cleanup_free char *path = NULL;
	struct stat st;
	int err;

	if (which != BACKEND_APPDEF || job->archived)
		return backend_text(b, job, which, &text, ret_len);
	if (!job->has_appdef)
		return -ENOENT;
	path = file_path(b->config.state_dir, job->id, "app.yaml");
	err = disk_stat(AT_FDCWD, path, &st);
	if (err)
		return err == -ENOENT ? backend_text(b, job, which, &text, ret_len) : err;
	*ret_len = (size_t)st.st_size;
	return 0;
}

mode_t backend_text_readable(struct backend *b, const struct spec_job *job)
{
	cleanup_free char *path = file_path(b->config.state_dir, job->id, "app.yaml");
	struct stat st;
	int err;

	/* It is not known who may read it in the archive. */
	if (job->archived)
		return 0;
	err = disk_stat(AT_FDCWD, path, &st);
	/* The mode is that of the file on disk, which nobody but the user reaches there. */
	if (err)
		return err == -ENOENT && !job->own ? S_IRGRP | S_IROTH : 0;
	return st.st_mode & (S_IRGRP | S_IROTH);
}

int backend_events(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		   int64_t *ret_changed)
{
	lock_assert_none();
	*ret_changed = job->changed;
	if (job->archived)
		return reader_text(b->reader, job, KEEP_EVENTS, ret, ret_len);
	return b->ops->events && !job->held ? b->ops->events(b, job, ret, ret_len, ret_changed)
					    : -ENOENT;
}

void backend_info(struct backend *b, FILE *out)
{
	fprintf(out, "backend: %s\n", *b->config.kind ? b->config.kind : "all");
	fprintf(out, "jobs: %zu\n", store_count(b->store, BACKEND_JOBS));
	fprintf(out, "history: %zu\n", store_count(b->store, BACKEND_HISTORY));
	fprintf(out, "spool_bytes: %" PRIu64 "\n",
		output_bytes(b->output) + (b->reader ? reader_bytes(b->reader) : 0));
	fprintf(out, "spool_limit: %llu\n", (unsigned long long)b->config.spool_limit);
	fprintf(out, "history_keep: %lld\n", (long long)b->config.history_keep);
	if (b->reader)
		reader_info(b->reader, out);
	b->ops->info(b, out);
}

/* --- metrics: what is the same for all; the implementation adds its own --- */

static void print_jobs(struct backend *b, FILE *out)
{
	size_t count[SPEC_N_STATES] = {0};
	const struct spec_job **jobs cleanup_free = NULL;
	size_t n;

	store_list(b->store, BACKEND_JOBS, &jobs, &n);
	for (size_t i = 0; i < n; i++) {
		count[jobs[i]->state]++;
		spec_job_unref(jobs[i]);
	}
	print_metric_head(out, "jobs", "gauge", "Jobs in jobs/ by state");
	for (size_t i = 0; i < SPEC_N_STATES; i++)
		fprintf(out, "kxfs_jobs{state=\"%s\"} %zu\n", spec_state_name((enum spec_state)i),
			count[i]);
}

static void print_requests(struct backend *b, FILE *out)
{
	static const char *const results[] = {"ok", "error"};

	print_metric_head(out, "requests_total", "counter",
			  "Submissions, cancellations and so on that were answered");
	for (size_t i = 0; i < BACKEND_N_REQUESTS; i++)
		for (size_t r = 0; r < array_size(results); r++)
			fprintf(out,
				"kxfs_requests_total{request=\"%s\",result=\"%s\"} %" PRIu64 "\n",
				request_name((enum backend_request_kind)i), results[r],
				(uint64_t)atomic_load(&b->answered[i][r]));
}

void backend_metrics(struct backend *b, FILE *out)
{
	uint64_t bytes, lines;

	print_jobs(b, out);
	output_captured(b->output, &bytes, &lines);
	const struct print_metric metrics[] = {
		{"history_jobs", "gauge", "Jobs in history/",
		 store_count(b->store, BACKEND_HISTORY)},
		{"captured_bytes_total", "counter", "Bytes of output that were captured", bytes},
		{"captured_lines_total", "counter", "Lines of them", lines},
		{"spool_bytes", "gauge", "Output of jobs on disk", output_bytes(b->output)},
		{"spool_limit_bytes", "gauge", "Limit of kxfs_spool_bytes", b->config.spool_limit},
	};
	print_metrics(out, metrics, array_size(metrics));
	print_requests(b, out);
	if (b->keep)
		keep_metrics(b->keep, out);
	b->ops->metrics(b, out);
}

/* --- queues --- */

int backend_queues(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n)
{
	lock_assert_none();
	return b->ops->queues ? b->ops->queues(b, ret, ret_n) : -ENOENT;
}

bool backend_has_queues(struct backend *b)
{
	struct spec_queue_view **queues cleanup_free = NULL;
	size_t n = 0;
	int err = backend_queues(b, &queues, &n);

	for (size_t i = 0; i < n; i++)
		spec_queue_view_unref(queues[i]);
	return err != -ENOENT;
}

struct spec_queue_view *backend_queue(struct backend *b, const char *name)
{
	lock_assert_none();
	return b->ops->queue ? b->ops->queue(b, name) : NULL;
}

void backend_queue_jobs(struct backend *b, const char *name, struct backend_queue_jobs *ret)
{
	const struct spec_job **jobs cleanup_free = NULL;
	size_t n = 0;

	store_list(b->store, BACKEND_JOBS, &jobs, &n);
	*ret = (struct backend_queue_jobs){.changed = store_changed(b->store, BACKEND_JOBS)};
	for (size_t i = 0; i < n; i++) {
		const struct spec_job *job = jobs[i];

		if (streq(job->queue, name)) {
			ret->pending += job->state == SPEC_SUBMITTED || job->state == SPEC_PENDING;
			ret->running += job->state == SPEC_RUNNING;
			ret->changed = max_of(ret->changed, job->changed);
		}
		spec_job_unref(job);
	}
}

int backend_queue_text(struct backend *b, const char *name, char **ret, size_t *ret_len)
{
	struct spec_queue_view *queue = backend_queue(b, name);
	struct spec_cluster_queue_view *cluster = NULL;
	const struct spec_job **all cleanup_free = NULL;
	struct backend_queue_jobs jobs;
	size_t n;

	if (!queue)
		return -ENOENT;
	if (b->ops->queue_text) {
		spec_queue_view_unref(queue);
		store_list(b->store, BACKEND_JOBS, &all, &n);
		b->ops->queue_text(b, all, n, ret, ret_len);
		for (size_t i = 0; i < n; i++)
			spec_job_unref(all[i]);
		return 0;
	}
	if (queue->local)
		cluster = b->ops->cluster_queue(b, queue->local->cluster_queue);
	backend_queue_jobs(b, name, &jobs);
	spec_queue_view_text(queue, cluster, jobs.pending, jobs.running, ret, ret_len);
	spec_cluster_queue_view_unref(cluster);
	spec_queue_view_unref(queue);
	return 0;
}

/* --- output --- */

/*
 * Is the log KEY of JOB (NULL: the merged one) to be read in the archive? Yes if only the archive knows it, or if no
 * byte of it was captured here and its pod is gone: so it is with jobs of the history, and mostly with earlier
 * attempts.
 */
static bool is_elsewhere(struct backend *b, const struct spec_job *job, const char *key)
{
	bool known = false, gone = job->history;
	struct log_stat st;

	if (!b->reader || job->archived || job->held)
		return job->archived;
	for (size_t i = 0; key && i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];

		for (size_t k = 0; k < r->n_logs && !known; k++) {
			known = streq(r->logs[k].key, key);
			gone |= known && k + 1 < r->n_logs &&
				streq(r->logs[k].container, r->logs[k + 1].container);
		}
	}
	if (key && !known)
		return true;
	return gone && (output_log_stat(b->output, job->id, key, LOG_PLAIN, &st) || !st.size);
}

/*
 * Does the folder of JOB belong to another job of its name, which is in the history? That folder is moved away when
 * output of JOB is wanted; until then a log in it may be the other job's. The logs of pods have names of their own, but
 * the merged log has the same name for each job.
 */
static bool is_anothers(struct backend *b, const struct spec_job *job, const char *key)
{
	const struct spec_job *other cleanup_job =
		key || job->history ? NULL : store_get(b->store, BACKEND_HISTORY, job->id);

	return other && !other->archived && !streq(other->uid, job->uid);
}

int backend_log(struct backend *b, const struct spec_job *job, const char *key, enum log_form form,
		struct log **ret)
{
	int err = is_elsewhere(b, job, key) ? reader_log(b->reader, job, key, form, ret) : -ENOENT;

	if (!err || job->archived)
		return err;
	if (is_anothers(b, job, key))
		return output_log_await(b->output, job->id, form, ret);
	return output_log(b->output, job->id, key, form, ret);
}

int backend_log_stat(struct backend *b, const struct spec_job *job, const char *key,
		     enum log_form form, struct log_stat *ret)
{
	int err = is_elsewhere(b, job, key) ? reader_log_stat(b->reader, job, key, form, ret)
					    : -ENOENT;

	if (!err || job->archived)
		return err;
	*ret = (struct log_stat){0};
	if (is_anothers(b, job, key))
		return 0;
	return output_log_stat(b->output, job->id, key, form, ret);
}
