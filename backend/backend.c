/* SPDX-License-Identifier: MIT */
/*
 * The interface that fs/ sees, but for requests (request.c): finds the implementation, keeps the
 * life of a backend in order, and answers from the store and the spool.
 */
#include "backend/backend.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#include "backend/diag.h"
#include "backend/impl.h"

#define BACKEND_START_S 60
/* Beyond the grace that processes get: to record their ends. */
#define BACKEND_STOP_S 20

static const struct backend_impl {
	const char *kind;
	const struct backend_ops *ops;
} backend_impls[] = {{"local", &local_ops},
		     {"volcano", &kube_ops},
		     {"mcad", &kube_ops},
		     {"appwrapper", &kube_ops}};

/* --- life --- */

/* The strings of a config. */
static const size_t backend_config_strings[] = {
	offsetof(struct backend_config, kind),	    offsetof(struct backend_config, context),
	offsetof(struct backend_config, namespace), offsetof(struct backend_config, kubeconfig),
	offsetof(struct backend_config, as),	    offsetof(struct backend_config, selector),
	offsetof(struct backend_config, state_dir), offsetof(struct backend_config, work_dir),
	offsetof(struct backend_config, submitter), offsetof(struct backend_config, home),
};

static char **backend_config_string(struct backend_config *c, size_t i)
{
	return (char **)(void *)((char *)c + backend_config_strings[i]);
}

static void backend_config_clear(struct backend_config *c)
{
	for (size_t i = 0; i < array_size(backend_config_strings); i++)
		free(*backend_config_string(c, i));
}

static int backend_config_copy(struct backend_config *c, const struct backend_config *from)
{
	bool failed = false;

	*c = *from;
	for (size_t i = 0; i < array_size(backend_config_strings); i++) {
		char **s = backend_config_string(c, i);

		*s = *s ? strdup(*s) : NULL;
		failed |=
			!*s && *backend_config_string((struct backend_config *)(uintptr_t)from, i);
	}
	return failed ? -ENOMEM : 0;
}

static const struct backend_ops *backend_find(const char *kind, char **ret_text)
{
	for (size_t i = 0; i < array_size(backend_impls); i++) {
		if (streq(backend_impls[i].kind, kind))
			return backend_impls[i].ops;
	}
	if (asprintf(ret_text,
		     "there is no backend '%s'; use volcano:, mcad:, appwrapper: or local:", kind) <
	    0)
		*ret_text = NULL;
	return NULL;
}

int backend_key(const struct backend_config *config, char **ret, char **ret_text)
{
	const struct backend_ops *ops = backend_find(config->kind, ret_text);

	return ops ? ops->key(config, ret, ret_text) : -EOPNOTSUPP;
}

static void backend_freep(struct backend **b)
{
	backend_free(*b);
}

int backend_new(struct loop *loop, const struct backend_config *config,
		const struct backend_events *events, struct backend **ret, char **ret_text)
{
	struct backend *b cleanup(backend_freep) = NULL;
	const struct backend_ops *ops = backend_find(config->kind, ret_text);
	int err;

	if (!ops)
		return -EOPNOTSUPP;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->loop = loop;
	b->events = *events;
	b->lock = (struct lock)LOCK_INIT;
	sem_init(&b->started.done, 0, 0);
	sem_init(&b->stopped.done, 0, 0);
	err = backend_config_copy(&b->config, config);
	if (err < 0)
		return err;
	err = store_new(&b->events, &b->store);
	if (err < 0)
		return err;
	err = spool_new(loop, b->config.state_dir, &b->events, &b->spool, ret_text);
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
	spool_free(b->spool);
	store_free(b->store);
	free(b->started.text);
	free(b->stopped.text);
	sem_destroy(&b->started.done);
	sem_destroy(&b->stopped.done);
	backend_config_clear(&b->config);
	free(b);
}

/* Wait for E, at most SECONDS. */
static int backend_wait(struct backend *b, struct backend_end *e, unsigned seconds, char **ret_text)
{
	struct timespec until;

	assert(!loop_is_here(b->loop));
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	while (sem_timedwait(&e->done, &until) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	lock_scope(&b->lock);
	if (ret_text)
		*ret_text = take_ptr(e->text);
	return e->err;
}

static void backend_end(struct backend *b, struct backend_end *e, int err, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	{
		lock_scope(&b->lock);
		assert(!e->over);
		e->over = true;
		e->err = err;
		e->text = copy;
	}
	sem_post(&e->done);
}

void backend_started(struct backend *b, int err, const char *text)
{
	backend_end(b, &b->started, err, text);
}

void backend_launched(struct backend *b, const char *file, const char *id, int64_t time)
{
	if (b->events.launched)
		b->events.launched(b->events.data, file, id, time);
}

void backend_stopped(struct backend *b)
{
	spool_stop(b->spool);
	backend_end(b, &b->stopped, 0, NULL);
}

static void backend_run_start(void *data)
{
	struct backend *b = data;

	b->up = true;
	spool_start(b->spool);
	b->ops->start(b);
}

int backend_start(struct backend *b, char **ret_text)
{
	int err;

	loop_post(b->loop, backend_run_start, b);
	err = backend_wait(b, &b->started, BACKEND_START_S, ret_text);
	if (err == -ETIMEDOUT && !*ret_text &&
	    asprintf(ret_text, "the list of jobs did not come in within %d s", BACKEND_START_S) < 0)
		*ret_text = NULL;
	return err;
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

void backend_stop(struct backend *b)
{
	unsigned seconds = b->config.grace_ms / 1000 + 1 + BACKEND_STOP_S;

	loop_post(b->loop, backend_run_stop, b);
	if (backend_wait(b, &b->stopped, seconds, NULL) < 0)
		diag(DIAG_ERROR, "jobs did not end within %u s; the next start ends what is left",
		     seconds);
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

int backend_jobs(struct backend *b, enum backend_place place, const struct spec_job ***ret,
		 size_t *ret_n)
{
	return store_list(b->store, place, ret, ret_n);
}

size_t backend_n_jobs(struct backend *b, enum backend_place place)
{
	return store_count(b->store, place);
}

int64_t backend_changed(struct backend *b, enum backend_place place)
{
	return store_changed(b->store, place);
}

/* --- texts --- */

int backend_text(struct backend *b, const struct spec_job *job, enum backend_text which, char **ret,
		 size_t *ret_len)
{
	lock_assert_none();
	return b->ops->text(b, job, which, ret, ret_len);
}

int backend_text_size(struct backend *b, const struct spec_job *job, enum backend_text which,
		      size_t *ret_len)
{
	cleanup_free char *text = NULL;
	cleanup_free char *path = NULL;
	struct stat st;

	if (which != BACKEND_APPDEF)
		return backend_text(b, job, which, &text, ret_len);
	if (!job->has_appdef)
		return -ENOENT;
	path = spool_path(b->spool, job->id, "app.yaml");
	if (!path)
		return -ENOMEM;
	if (stat(path, &st) < 0)
		return errno == ENOENT ? backend_text(b, job, which, &text, ret_len) : -errno;
	*ret_len = (size_t)st.st_size;
	return 0;
}

int backend_events(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		   int64_t *ret_changed)
{
	lock_assert_none();
	return b->ops->events ? b->ops->events(b, job, ret, ret_len, ret_changed) : -ENOENT;
}

int backend_info(struct backend *b, FILE *out)
{
	fprintf(out, "backend: %s\n", b->config.kind);
	fprintf(out, "jobs: %zu\n", store_count(b->store, BACKEND_JOBS));
	fprintf(out, "history: %zu\n", store_count(b->store, BACKEND_HISTORY));
	fprintf(out, "spool_bytes: %llu\n", (unsigned long long)spool_bytes(b->spool));
	fprintf(out, "spool_limit: %llu\n", (unsigned long long)b->config.spool_limit);
	fprintf(out, "history_keep: %lld\n", (long long)b->config.history_keep);
	return b->ops->info(b, out);
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

int backend_queue_jobs(struct backend *b, const char *name, struct backend_queue_jobs *ret)
{
	const struct spec_job **jobs cleanup_free = NULL;
	size_t n = 0;
	int err = store_list(b->store, BACKEND_JOBS, &jobs, &n);

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
	return err;
}

/* --- output --- */

int backend_log(struct backend *b, const struct spec_job *job, const char *key, struct log **ret)
{
	return spool_log(b->spool, job->id, key, ret);
}

int backend_log_stat(struct backend *b, const struct spec_job *job, const char *key,
		     struct log_stat *ret)
{
	return spool_log_stat(b->spool, job->id, key, ret);
}
