/* SPDX-License-Identifier: MIT */
/*
 * The spool's directories and jobs: making, finding, beginning and ending them and their logs.
 */
#include "backend/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <utlist.h>

#include "backend/spool_impl.h"
#include "spec/name.h"

#define SPOOL_DRAIN_MS 5000

/* --- the spool --- */

/* Make the folder NAME in DIR, 0700 whatever the umask. */
static int spool_mkdir(int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	return fchmodat(dir, name, 0700, 0) < 0 ? -errno : 0;
}

static int spool_open_dir(struct spool *spool)
{
	int err = spool_mkdir(AT_FDCWD, spool->dir);

	if (err < 0)
		return err;
	spool->dir_fd = open(spool->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (spool->dir_fd < 0)
		return -errno;
	return faccessat(spool->dir_fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

void spool_unref(struct spool *spool)
{
	if (!spool || atomic_fetch_sub(&spool->refs, 1) > 1)
		return;
	if (spool->dir_fd >= 0)
		close(spool->dir_fd);
	free(spool->dir);
	free(spool->windows);
	free(spool->buf);
	free(spool);
}

static void spool_unrefp(struct spool **spool)
{
	spool_unref(*spool);
}

int spool_new(struct loop *loop, const char *state_dir, const struct backend_events *events,
	      struct spool **ret, char **ret_text)
{
	struct spool *spool cleanup(spool_unrefp) = calloc(1, sizeof(*spool));
	int err;

	if (!spool)
		return -ENOMEM;
	atomic_store(&spool->refs, 1);
	spool->loop = loop;
	spool->events = events;
	spool->lock = (struct lock)LOCK_INIT;
	spool->dir_fd = -1;
	spool->inotify_fd = -1;
	spool->buf = malloc(SPOOL_BUFFER);
	spool->windows = spool_windows_new();
	if (!spool->buf || !spool->windows || asprintf(&spool->dir, "%s/jobs", state_dir) < 0) {
		spool->dir = NULL;
		return -ENOMEM;
	}
	err = spool_open_dir(spool);
	if (err < 0) {
		if (asprintf(ret_text, "can't keep jobs in %s: %s", spool->dir, strerror(-err)) < 0)
			*ret_text = NULL;
		return err;
	}
	*ret = take_ptr(spool);
	return 0;
}

void spool_set_fetch(struct spool *spool, spool_fetch_fn fetch, void *data)
{
	spool->fetch = fetch;
	spool->fetch_data = data;
}

void spool_stop(struct spool *spool)
{
	struct spool_job *j, *next;

	spool_pump_drain(spool, SPOOL_DRAIN_MS);
	spool->stopped = true;
	spool_watch_stop(spool);
	loop_timer_free(take_ptr(spool->retry));
	HASH_ITER(hh, spool->jobs, j, next) {
		spool_settle_check(j, true);
	}
}

void spool_free(struct spool *spool)
{
	struct spool_job *j, *next;

	if (!spool)
		return;
	HASH_ITER(hh, spool->jobs, j, next) {
		spool_job_free(j);
	}
	if (spool->inotify_fd >= 0)
		close(spool->inotify_fd);
	spool->inotify_fd = -1;
	spool_unref(spool);
}

/* --- names --- */

bool spool_name(char ret[SPOOL_PATH_MAX], const char *id, const char *folder, const char *name)
{
	int n = snprintf(ret, SPOOL_PATH_MAX, "%s/%s%s%s", id, folder ? folder : "",
			 folder ? "/" : "", name);

	return n < SPOOL_PATH_MAX;
}

int spool_open(const struct spool *spool, const char *id, const char *folder, const char *name)
{
	char path[SPOOL_PATH_MAX];
	int fd;

	if (!spool_name(path, id, folder, name))
		return -ENAMETOOLONG;
	fd = openat(spool->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

char *spool_path(struct spool *spool, const char *id, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s/%s", spool->dir, id, name) < 0 ? NULL : path;
}

/* --- jobs --- */

struct spool_job *spool_find_job(struct spool *spool, const char *id)
{
	struct spool_job *j;

	HASH_FIND_STR(spool->jobs, id, j);
	return j;
}

struct spool_source *spool_find_source(struct spool_job *j, const char *key)
{
	struct spool_source *s;

	HASH_FIND_STR(j->sources, key, s);
	return s;
}

/* Take J from where readers find it. */
static void spool_unlist(struct spool_job *j)
{
	struct spool *spool = j->spool;
	struct spool_source *s, *next;

	lock_scope(&spool->lock);
	if (j->hh.tbl)
		HASH_DEL(spool->jobs, j);
	spool->closes++;
	HASH_ITER(hh, j->sources, s, next) {
		HASH_DEL(j->sources, s);
	}
}

void spool_job_free(struct spool_job *j)
{
	if (!j)
		return;
	spool_settle_check(j, true);
	spool_unwatch_job(j);
	spool_unlist(j);
	spool_order_forget(j);
	spool_index_forget(j);
	spool_load_forget(j);
	for (size_t i = 0; i < j->keys.n; i++) {
		spool_source_gone(j->by_number[i]);
		if (j->by_number[i]->queued)
			DL_DELETE(j->spool->queue, j->by_number[i]);
		free(j->by_number[i]);
	}
	free(j->by_number);
	merge_keys_clear(&j->keys);
	free(j->id);
	free(j);
}

static void spool_job_freep(struct spool_job **j)
{
	spool_job_free(*j);
}

int spool_make_dirs(struct spool *spool, const char *id)
{
	char path[SPOOL_PATH_MAX];
	int err = spool_mkdir(spool->dir_fd, id);

	if (err < 0)
		return err;
	if (!spool_name(path, id, NULL, "logs"))
		return -ENAMETOOLONG;
	return spool_mkdir(spool->dir_fd, path);
}

/* Its folders and its index, which may come later, and a place in the table. */
static int spool_job_begin(struct spool_job *j)
{
	struct spool *spool = j->spool;
	struct log *log;
	int err = spool->fetch ? spool_load(j) : spool_load_now(j);

	if (err < 0)
		return err;
	lock_scope(&spool->lock);
	HASH_ADD_KEYPTR(hh, spool->jobs, j->id, strlen(j->id), j);
	if (!j->hh.tbl)
		return -ENOMEM;
	log = log_find_locked(spool, j->id, NULL);
	if (log && j->loaded)
		log_join_merged(log, j);
	else if (log)
		log_await_merged(log, j);
	return 0;
}

struct spool_job *spool_job_open(struct spool *spool, const char *id)
{
	struct spool_job *j cleanup(spool_job_freep) = spool_find_job(spool, id);
	int err;

	if (j) {
		j->closed = false;
		return take_ptr(j);
	}
	if (!spec_name_is_file(id)) {
		errno = EINVAL;
		return NULL;
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->spool = spool;
	j->wd = -1;
	j->id = strdup(id);
	if (!j->id)
		return NULL;
	err = spool_job_begin(j);
	if (err < 0) {
		errno = -err;
		return NULL;
	}
	return take_ptr(j);
}

void spool_job_end(struct spool_job *j)
{
	j->end_asked = true;
	if (!j->busy)
		spool_pump_end(j);
}

void spool_job_resume(struct spool_job *j)
{
	j->end_asked = false;
	lock_scope(&j->spool->lock);
	j->ended = false;
	if (j->log)
		atomic_store(&j->log->ended, false);
}

void spool_job_close(struct spool_job *j)
{
	if (!j)
		return;
	j->closed = true;
	for (size_t i = 0; i < j->keys.n; i++)
		j->by_number[i]->fn = NULL;
	/* One that has ended stays until its index is whole; any other is taken up at the next start. */
	if (j->busy || j->batch || j->load)
		return;
	if (j->end_asked)
		spool_pump_end(j);
	else
		spool_job_free(j);
}

/* --- logs of a job --- */

int spool_log_begin(struct spool_job *j, const char *key, const char *prefix, int *ret_fd)
{
	struct spool_source *s = spool_find_source(j, key);
	bool later = j->spool->fetch;
	cleanup_fd int fd = -1;
	uint64_t size = 0;

	assert(!later || !ret_fd);
	if (!merge_key_is_valid(key, prefix))
		return -EINVAL;
	if (!later) {
		fd = spool_open_log(j->spool, j->id, key, &size);
		if (fd < 0)
			return fd;
	}
	if (!s)
		s = spool_index_add(j, key, prefix);
	if (!s)
		return -ENOMEM;
	if (!s->live) {
		s->live = true;
		s->counted = size; /* by spool_count, or nothing yet */
		j->n_live++;
		if (later)
			spool_source_open(s);
	}
	s->ending = false;
	spool_order_open(s);
	{
		struct log *log;

		lock_scope(&j->spool->lock);
		s->ended = false;
		log = log_find_locked(j->spool, j->id, key);
		if (log)
			log_join(log, s);
	}
	/* Of what is fetched the writer says how it grows. */
	if (!later)
		spool_watch_job(j);
	spool_pump_queue(s);
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return 0;
}

void spool_log_hold(struct spool_job *j, const char *key, bool hold)
{
	struct spool_source *s = spool_find_source(j, key);

	if (s && s->open)
		spool_order_hold(s, hold);
}

static void spool_log_gone(void *data)
{
	struct spool_source *s = data;
	loop_fn fn = s->fn;

	s->fn = NULL;
	if (fn)
		fn(s->data);
}

void spool_log_end(struct spool_job *j, const char *key, loop_fn fn, void *data)
{
	struct spool_source *s = spool_find_source(j, key);

	assert(s);
	s->fn = fn;
	s->data = data;
	if (!s->live) {
		spool_log_gone(s);
		return;
	}
	s->ending = true;
	spool_pump_queue(s);
}
