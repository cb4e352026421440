/* SPDX-License-Identifier: MIT */
/*
 * The spool's directories and jobs: making, finding, ending and removing them, and how much room all
 * of it takes. What may take long (counting, removing) runs on the pool.
 */
#include "backend/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <utlist.h>

#include "backend/diag.h"
#include "backend/spool_impl.h"
#include "spec/name.h"

#define SPOOL_BUFFER   (256u << 10)
#define SPOOL_DEPTH    16 /* folders in folders that are counted or removed */
#define SPOOL_DRAIN_MS 5000

/* A job on its way out: atomically not there any more, also after a crash half way. */
#define SPOOL_REMOVED ".removed-"

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
	if (!spool->buf || asprintf(&spool->dir, "%s/jobs", state_dir) < 0) {
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

void spool_stop(struct spool *spool)
{
	struct spool_job *j, *next;

	spool_index_drain(spool, SPOOL_DRAIN_MS);
	spool->stopped = true;
	spool_watch_stop(spool);
	loop_timer_free(take_ptr(spool->retry));
	HASH_ITER(hh, spool->jobs, j, next)
	{
		spool_index_release(j);
	}
}

void spool_free(struct spool *spool)
{
	struct spool_job *j, *next;

	if (!spool)
		return;
	HASH_ITER(hh, spool->jobs, j, next)
	{
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
	HASH_ITER(hh, j->sources, s, next)
	{
		HASH_DEL(j->sources, s);
	}
}

void spool_job_free(struct spool_job *j)
{
	if (!j)
		return;
	spool_index_release(j);
	spool_unwatch_job(j);
	spool_unlist(j);
	for (size_t i = 0; i < j->keys.n; i++) {
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

/* Its folders, its index, and a place in the table. */
static int spool_job_begin(struct spool_job *j)
{
	struct spool *spool = j->spool;
	char path[SPOOL_PATH_MAX];
	struct log *log;
	int err = spool_mkdir(spool->dir_fd, j->id);

	if (err < 0)
		return err;
	if (!spool_name(path, j->id, NULL, "logs"))
		return -ENAMETOOLONG;
	err = spool_mkdir(spool->dir_fd, path);
	if (err < 0)
		return err;
	err = spool_index_load(j);
	if (err < 0)
		return err;
	lock_scope(&spool->lock);
	HASH_ADD_KEYPTR(hh, spool->jobs, j->id, strlen(j->id), j);
	if (!j->hh.tbl)
		return -ENOMEM;
	log = log_find_locked(spool, j->id, NULL);
	if (log)
		log_join_merged(log, j);
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
		spool_index_end(j);
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
	if (j->busy)
		return;
	if (j->end_asked)
		spool_index_end(j);
	else
		spool_job_free(j);
}

/* --- logs of a job --- */

/* Open logs/KEY of J for appending, made if it is not there. */
static int spool_log_file(struct spool_job *j, const char *key, uint64_t *ret_size)
{
	char path[SPOOL_PATH_MAX];
	struct stat st;
	cleanup_fd int fd = -1;

	if (!spool_name(path, j->id, "logs", key))
		return -ENAMETOOLONG;
	fd = openat(j->spool->dir_fd, path,
		    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((st.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0)
		return -errno;
	if (fcntl(fd, F_SETFL, O_APPEND) < 0)
		return -errno;
	*ret_size = (uint64_t)st.st_size;
	return take_fd(&fd);
}

int spool_log_begin(struct spool_job *j, const char *key, const char *prefix, int *ret_fd)
{
	struct spool_source *s = spool_find_source(j, key);
	cleanup_fd int fd = -1;
	uint64_t size;

	if (!merge_key_is_valid(key, prefix))
		return -EINVAL;
	fd = spool_log_file(j, key, &size);
	if (fd < 0)
		return fd;
	if (!s)
		s = spool_index_add(j, key, prefix);
	if (!s)
		return -ENOMEM;
	if (!s->live) {
		s->live = true;
		s->counted = size; /* by spool_count, or nothing yet */
		j->n_live++;
	}
	s->ending = false;
	{
		struct log *log;

		lock_scope(&j->spool->lock);
		s->ended = false;
		log = log_find_locked(j->spool, j->id, key);
		if (log)
			log_join(log, s);
	}
	spool_watch_job(j);
	spool_index_queue(s);
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return 0;
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
	spool_index_queue(s);
}

/* --- walking directories; on the pool --- */

struct spool_walk {
	uint64_t bytes;
	bool remove;
};

/* Count, and if so wanted remove, what is in the folder NAME of DIR. Never follows a link. */
static void spool_walk(int dir, const char *name, unsigned depth, struct spool_walk *w)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d))) {
		if (streq(e->d_name, ".") || streq(e->d_name, "..") ||
		    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth < SPOOL_DEPTH)
			spool_walk(fd, e->d_name, depth + 1, w);
		else if (S_ISREG(st.st_mode))
			w->bytes += (uint64_t)st.st_size;
		if (w->remove)
			unlinkat(fd, e->d_name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	}
	closedir(d);
}

/* --- how much there is --- */

struct spool_counting {
	struct spool *spool;
	struct spool_walk walk;
};

static void spool_count_work(void *data)
{
	struct spool_counting *c = data;
	int dir = c->spool->dir_fd;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d))) {
		struct spool_walk left = {.remove = true};

		if (strncmp(e->d_name, SPOOL_REMOVED, strlen(SPOOL_REMOVED)) == 0) {
			spool_walk(dir, e->d_name, 0, &left);
			unlinkat(dir, e->d_name, AT_REMOVEDIR);
		} else if (e->d_name[0] != '.') {
			spool_walk(dir, e->d_name, 0, &c->walk);
		}
	}
	closedir(d);
}

static void spool_count(struct spool *spool);

static void spool_count_done(void *data)
{
	struct spool_counting *c = data;
	struct spool *spool = c->spool;
	struct spool_job *j, *next;

	atomic_store(&spool->bytes, (long long)c->walk.bytes);
	free(c);
	/* Up to here live logs were in the count. */
	HASH_ITER(hh, spool->jobs, j, next)
	{
		for (size_t i = 0; i < j->keys.n; i++)
			j->by_number[i]->counted = j->by_number[i]->seen;
	}
	spool->counting = false;
	if (spool->recount)
		spool_count(spool);
	spool_unref(spool);
}

static void spool_count(struct spool *spool)
{
	struct spool_counting *c = calloc(1, sizeof(*c));

	if (!c)
		return;
	c->spool = spool;
	spool->counting = true;
	spool->recount = false;
	atomic_fetch_add(&spool->refs, 1);
	loop_work(spool->loop, spool_count_work, spool_count_done, c);
}

void spool_start(struct spool *spool)
{
	spool_count(spool);
}

uint64_t spool_bytes(struct spool *spool)
{
	long long bytes = atomic_load(&spool->bytes);

	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* --- removing --- */

struct spool_removal {
	struct spool *spool;
	char *id;
	struct log *merged; /* if somebody reads it */
	struct spool_walk walk;
	int err;
	loop_fn done;
	void *data;
};

static void spool_remove_work(void *data)
{
	struct spool_removal *r = data;
	int dir = r->spool->dir_fd;
	char name[64];

	if (r->merged)
		log_merged_hold(r->merged);
	snprintf(name, sizeof(name), SPOOL_REMOVED "%lld", (long long)loop_time_ns());
	if (renameat(dir, r->id, dir, name) < 0) {
		r->err = errno == ENOENT ? 0 : -errno;
		return;
	}
	spool_walk(dir, name, 0, &r->walk);
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r->err = -errno;
}

static void spool_remove_done(void *data)
{
	struct spool_removal *r = data;
	struct spool *spool = r->spool;

	if (r->err < 0)
		diag(DIAG_ERROR, "%s: its directory can't be removed: %s", r->id, strerror(-r->err));
	atomic_fetch_sub(&spool->bytes, (long long)r->walk.bytes);
	spool->recount |= spool->counting; /* the count under way may have it or not */
	log_orphan(spool, r->id);
	log_unref(r->merged);
	if (r->done)
		r->done(r->data);
	free(r->id);
	free(r);
	spool_unref(spool);
}

void spool_job_remove(struct spool *spool, const char *id, loop_fn done, void *data)
{
	struct spool_removal *r = calloc(1, sizeof(*r));
	struct spool_job *j = spool_find_job(spool, id);
	char name[SPOOL_PATH_MAX];

	assert(spec_name_is_file(id));
	if (j) {
		assert(j->closed);
		spool_job_free(j);
	}
	if (r)
		r->id = strdup(id);
	if (!r || !r->id) {
		diag(DIAG_ERROR, "%s: its directory can't be removed: out of memory", id);
		free(r);
		if (done)
			loop_post(spool->loop, done, data);
		return;
	}
	atomic_fetch_add(&spool->refs, 1);
	r->spool = spool;
	r->walk.remove = true;
	r->done = done;
	r->data = data;
	if (spool_name(name, id, NULL, ""))
		r->merged = log_find(spool, name);
	loop_work(spool->loop, spool_remove_work, spool_remove_done, r);
}
