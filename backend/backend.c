/* SPDX-License-Identifier: MIT */
/*
 * The functions of the backend that fs/ calls. A backend owns the store of snapshots, the output of
 * jobs, and one implementation (local/ or kube/). The implementation updates the store and the
 * output, and answers requests. This file starts and stops these parts in the right order. Start
 * and stop block the calling thread until the I/O thread has called backend_started or
 * backend_stopped.
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
/* After the grace period: the time limit for sending SIGKILL and recording how jobs ended. */
#define BACKEND_STOP_S 8
/* kxfs writes the result of backend_unlink_file to disk within this time. */
#define UNLINK_MS 500

/* --- start and stop --- */

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
	bool taken = new_job && !new_job->held &&
		     (b->config.capture == BACKEND_CAPTURE_ALL || new_job->own);

	held_changed(b->held, old, new_job);
	if (!old || !new_job || old->history != new_job->history || !streq(old->id, new_job->id))
		records_show(b->records, spec_job_key(new_job ? new_job : old), new_job);
	/*
	 * Report each removed job to the archiver. Report another job only if it was submitted
	 * here, or kxfs captures the output of all jobs. A held job has no output yet.
	 */
	if (b->config.archives && (taken || !new_job))
		archive_job(b->archive, old, new_job);
	if (b->events.job)
		return b->events.job(b->events.data, old, new_job);
}

static bool is_settled(void *data, const struct spec_job *job)
{
	struct backend *b = data;

	return b->ops->is_settled(b, job);
}

/* Runs on the pool; see archive_config.text. */
static int archive_text(void *data, const struct spec_job *job, const char *name, char **ret,
			size_t *ret_len, mode_t *ret_mode)
{
	struct backend *b = data;
	int64_t changed;
	int err;

	if (streq(name, "events")) {
		err = backend_events(b, job, ret, ret_len, &changed);
	} else {
		err = backend_text(b, job,
				   streq(name, "app.yaml") ? BACKEND_APPDEF : BACKEND_MANIFEST, ret,
				   ret_len);
		*ret_mode = S_IRUSR | S_IWUSR | backend_text_readable(b, job);
	}
	return err == -ENOENT ? 0 : err;
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
	int err;

	b = new0(struct backend);
	b->loop = loop;
	b->events = *events;
	wait_init(&b->started);
	wait_init(&b->stopped);
	b->config = *config;
	b->store = store_new(&(struct store_events){on_job, b});
	b->records = records_new(loop, b->config.state_dir, config->passive);
	b->held = held_new(b);
	err = output_new(loop, b->config.state_dir, &(struct output_events){on_log, b}, &b->output,
			 ret_text);
	if (err < 0)
		return err;
	if (config->archive)
		b->archive = archive_new(&(struct archive_config){
			.loop = loop,
			.output = b->output,
			.dir = config->archive,
			.state_dir = b->config.state_dir,
			.stop_ms = config->grace_ms,
			.is_settled = is_settled,
			.text = archive_text,
			.data = b,
		});
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
	archive_free(b->archive);
	held_free(b->held);
	records_free(b->records);
	output_free(b->output);
	store_free(b->store);
	wait_clear(&b->started);
	wait_clear(&b->stopped);
	free(b);
}

static void on_records(void *data, int err, const char *text)
{
	struct backend *b = data;

	if (b->stopping)
		return;
	if (err)
		return backend_started(b, err, text);
	b->up = true;
	output_start(b->output);
	b->ops->start(b);
}

static void backend_run_start(void *data)
{
	struct backend *b = data;

	records_load(b->records, on_records, b);
}

int backend_start(struct backend *b, char **ret_text)
{
	int err;

	assert(!loop_is_here(b->loop));
	if (b->config.archives) {
		err = archive_check(b->config.archive, b->config.state_dir, ret_text);
		/* Start even if the archive does not answer now. It may answer later. */
		if (err && err != -ETIMEDOUT)
			return err;
		free(take_ptr(*ret_text));
	}
	loop_post(b->loop, backend_run_start, b);
	err = wait_get(&b->started, BACKEND_START_S, ret_text);
	if (err == -ETIMEDOUT && !*ret_text)
		*ret_text =
			text_print("the list of jobs did not arrive within %d s", BACKEND_START_S);
	return err;
}

void backend_give_up(struct backend *b)
{
	if (b->ops->start_asks)
		wait_set(&b->started, -ECANCELED, NULL);
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

	b->stopping = true;
	if (!b->up) {
		backend_stopped(b);
		return;
	}
	b->up = false;
	backend_answer_removals(b);
	b->ops->stop(b);
}

unsigned backend_stop_seconds(unsigned grace_ms, bool archives)
{
	/* After the jobs have ended, the archiver may spend another grace period on copies. */
	return (archives ? 2 : 1) * grace_ms / 1000 + 1 + BACKEND_STOP_S;
}

bool backend_stop(struct backend *b)
{
	unsigned seconds = backend_stop_seconds(b->config.grace_ms, b->config.archive);

	assert(!loop_is_here(b->loop));
	loop_post(b->loop, backend_run_stop, b);
	if (wait_get(&b->stopped, seconds, NULL) == 0)
		return true;
	diag(DIAG_ERROR,
	     "some jobs did not end within %u s, or kxfs could not record their end; the next "
	     "start of kxfs ends or records them",
	     seconds);
	return false;
}

/* --- jobs --- */

const struct spec_job *backend_job(struct backend *b, enum backend_place place, const char *id)
{
	return store_get(b->store, place, id);
}

const struct spec_job *backend_job_by_uid(struct backend *b, const char *uid)
{
	return store_get_uid(b->store, uid);
}

void backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		  size_t *ret_n)
{
	struct store_jobs jobs;

	store_list(b->store, place, &jobs);
	*ret = jobs.v;
	*ret_n = jobs.n;
}

int64_t backend_changed(struct backend *b, enum backend_place place)
{
	return store_changed(b->store, place);
}

int backend_file(struct backend *b, const char *file, struct backend_file *ret)
{
	const struct spec_job *job cleanup_job = NULL;
	int err = job_files_find(records_files(b->records), file, ret);

	if (err)
		return err;
	job = store_get_uid(b->store, ret->uuid);
	if (job) {
		text_set(&ret->id, "%s", job->id);
		ret->place = job->history ? BACKEND_HISTORY : BACKEND_JOBS;
	}
	return 0;
}

size_t backend_files(struct backend *b, char ***ret)
{
	return job_files_list(records_files(b->records), ret);
}

int64_t backend_files_changed(struct backend *b)
{
	return job_files_changed(records_files(b->records));
}

bool backend_knows_digest(struct backend *b, const char *digest)
{
	return job_files_know(records_files(b->records), digest);
}

struct unlinked {
	struct backend *b;
	char uuid[JOB_FILES_UUID];
};

static void backend_run_unlink(void *data)
{
	struct unlinked *u = data;
	struct record *r = records_by_key(u->b->records, u->uuid);

	if (r)
		records_note(r,
			     &(struct record_change){.state = record_head(r)->state,
						     .unlinked = true},
			     UNLINK_MS);
	free(u);
}

int backend_unlink_file(struct backend *b, const char *file)
{
	char uuid[JOB_FILES_UUID];
	struct unlinked *u;
	int err = job_files_unlink(records_files(b->records), file, uuid);

	if (err)
		return err;
	u = new0(struct unlinked);
	u->b = b;
	memcpy(u->uuid, uuid, sizeof(uuid));
	loop_post(b->loop, backend_run_unlink, u);
	return 0;
}

void backend_wanted(struct backend *b, enum backend_data which)
{
	lock_assert_none();
	if (b->ops->wanted)
		b->ops->wanted(b, which);
}

uint64_t backend_revision(struct backend *b, enum backend_place place)
{
	return store_revision(b->store, place);
}

int64_t backend_stale_since(struct backend *b)
{
	return b->ops->stale_since ? b->ops->stale_since(b) : 0;
}

char *backend_trouble(struct backend *b)
{
	return b->ops->trouble ? b->ops->trouble(b) : NULL;
}

char *backend_archive(struct backend *b)
{
	return b->archive ? text_print("%s/%s", b->config.archive, b->ops->namespace(b)) : NULL;
}

int backend_examine_archive(const char *dir, char **ret_text)
{
	return archive_check(dir, NULL, ret_text);
}

/* --- texts --- */

int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len)
{
	lock_assert_none();
	if (job->held)
		return record_file_read_rest(b->config.state_dir, job->uid,
					     which == BACKEND_MANIFEST, ret, ret_len);
	return b->ops->text(b, job, which, ret, ret_len);
}

int backend_text_size(struct backend *b, const struct spec_job *job, enum backend_text which,
		      size_t *ret_len)
{
	cleanup_free char *text = NULL;
	unsigned readable;
	int err = -ENOENT;

	if (which == BACKEND_APPDEF && !job->has_appdef)
		return -ENOENT;
	/* Only the cluster has the document of a job that was submitted elsewhere. */
	if (which == BACKEND_APPDEF && job->own)
		err = record_file_stat(b->config.state_dir, spec_job_key(job), ret_len, &readable);
	return err == -ENOENT ? backend_text(b, job, which, &text, ret_len) : err;
}

mode_t backend_text_readable(struct backend *b, const struct spec_job *job)
{
	unsigned readable;
	size_t len;

	if (!job->own)
		return S_IRGRP | S_IROTH;
	if (record_file_stat(b->config.state_dir, spec_job_key(job), &len, &readable))
		return 0;
	return (mode_t)readable & (S_IRGRP | S_IROTH);
}

int backend_events(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		   int64_t *ret_changed)
{
	lock_assert_none();
	return b->ops->events && !job->held ? b->ops->events(b, job, ret, ret_len, ret_changed)
					    : -ENOENT;
}

void backend_info(struct backend *b, FILE *out)
{
	fprintf(out, "backend: %s\n", *b->config.kind ? b->config.kind : "all");
	fprintf(out, "jobs: %zu\n", store_count(b->store, BACKEND_JOBS));
	fprintf(out, "history: %zu\n", store_count(b->store, BACKEND_HISTORY));
	fprintf(out, "spool_bytes: %" PRIu64 "\n", output_bytes(b->output));
	fprintf(out, "spool_limit: %llu\n", (unsigned long long)b->config.spool_limit);
	fprintf(out, "history_keep: %lld\n", (long long)b->config.history_keep);
	if (b->archive)
		archive_info(b->archive, out);
	b->ops->info(b, out);
}

/* --- metrics of both implementations --- */

static void print_jobs(struct backend *b, FILE *out)
{
	size_t count[SPEC_N_STATES] = {0};
	cleanup_jobs struct store_jobs jobs;

	store_list(b->store, BACKEND_JOBS, &jobs);
	for (size_t i = 0; i < jobs.n; i++)
		count[jobs.v[i]->state]++;
	print_metric_head(out, "jobs", "gauge", "Jobs in jobs/ by state");
	for (size_t i = 0; i < SPEC_N_STATES; i++)
		fprintf(out, "kxfs_jobs{state=\"%s\"} %zu\n", spec_state_name((enum spec_state)i),
			count[i]);
}

static void print_requests(struct backend *b, FILE *out)
{
	static const char *const results[] = {"ok", "error"};

	print_metric_head(out, "requests_total", "counter",
			  "Submissions, cancellations and other requests that kxfs answered");
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
		{"captured_lines_total", "counter", "Lines of output that were captured", lines},
		{"spool_bytes", "gauge", "Bytes of job output on disk", output_bytes(b->output)},
		{"spool_limit_bytes", "gauge", "Limit of kxfs_spool_bytes", b->config.spool_limit},
	};
	print_metrics(out, metrics, array_size(metrics));
	print_requests(b, out);
	if (b->archive)
		archive_metrics(b->archive, out);
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
	cleanup_jobs struct store_jobs jobs;

	store_list(b->store, BACKEND_JOBS, &jobs);
	*ret = (struct backend_queue_jobs){.changed = store_changed(b->store, BACKEND_JOBS)};
	for (size_t i = 0; i < jobs.n; i++) {
		const struct spec_job *job = jobs.v[i];

		if (!streq(job->queue, name))
			continue;
		ret->pending += job->state == SPEC_SUBMITTED || job->state == SPEC_PENDING;
		ret->running += job->state == SPEC_RUNNING;
		ret->changed = max_of(ret->changed, job->changed);
	}
}

int backend_queue_text(struct backend *b, const char *name, char **ret, size_t *ret_len)
{
	struct spec_queue_view *queue = backend_queue(b, name);
	struct spec_queue_view *cluster = NULL;
	cleanup_jobs struct store_jobs all = {0};
	struct backend_queue_jobs jobs;

	if (!queue)
		return -ENOENT;
	if (b->ops->queue_text) {
		spec_queue_view_unref(queue);
		store_list(b->store, BACKEND_JOBS, &all);
		b->ops->queue_text(b, all.v, all.n, ret, ret_len);
		return 0;
	}
	if (queue->kueue)
		cluster = b->ops->cluster_queue(b, queue->kueue->cluster_queue);
	backend_queue_jobs(b, name, &jobs);
	spec_queue_view_text(queue, cluster, jobs.pending, jobs.running, ret, ret_len);
	spec_queue_view_unref(cluster);
	spec_queue_view_unref(queue);
	return 0;
}

/* --- output --- */

int backend_log(struct backend *b, const struct spec_job *job, const char *key, enum log_form form,
		struct log **ret)
{
	return output_log(b->output, spec_job_key(job), key, form, ret);
}

int backend_log_stat(struct backend *b, const struct spec_job *job, const char *key,
		     enum log_form form, struct log_stat *ret)
{
	*ret = (struct log_stat){0};
	return output_log_stat(b->output, spec_job_key(job), key, form, ret);
}

/* --- requests --- */

static void request_post(struct backend_request *rq)
{
	lock_assert_none();
	diag(DIAG_DEBUG, "%s %s", request_name(rq->kind), rq->file ? rq->file : rq->id);
	loop_post(rq->b->loop, held_run, rq);
}

static void request_of_file(struct backend_request *rq, const struct backend_submission *s)
{
	char uuid[JOB_FILES_UUID];

	rq->file = text_copy(s->file);
	rq->text = mem_copy(s->text, s->len);
	rq->len = s->len;
	rq->submitter = text_copy(s->submitter);
	if (rq->kind == BACKEND_SUBMIT &&
	    job_files_next_uuid(records_files(rq->b->records), uuid) == 0)
		rq->submission = text_copy(uuid);
	rq->readable = s->readable;
	rq->owned = s->owned;
	rq->owner = s->uid;
	rq->group = s->gid;
	rq->waits = s->waits;
	request_post(rq);
}

void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data)
{
	request_of_file(backend_request_new(b, BACKEND_SUBMIT, reply, data), s);
}

void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data)
{
	request_of_file(backend_request_new(b, BACKEND_DRY_RUN, reply, data), s);
}

static void request_of_job(struct backend_request *rq, const char *id, const char *uid)
{
	rq->id = text_copy(id);
	rq->uid = text_copy(uid);
	request_post(rq);
}

void backend_cancel(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data)
{
	request_of_job(backend_request_new(b, BACKEND_CANCEL, reply, data), id, uid);
}

void backend_control(struct backend *b, const char *id, const char *uid, enum spec_action action,
		     const char *argument, backend_reply_fn reply, void *data)
{
	struct backend_request *rq = backend_request_new(b, BACKEND_CONTROL, reply, data);

	rq->action = action;
	rq->argument = argument ? text_copy(argument) : NULL;
	request_of_job(rq, id, uid);
}

void backend_forget(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data)
{
	request_of_job(backend_request_new(b, BACKEND_FORGET, reply, data), id, uid);
}
