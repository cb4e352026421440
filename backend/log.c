/* SPDX-License-Identifier: MIT */
/*
 * Readers of logs: all who have the same log open share one struct log, found by its name. One
 * container's log is its file; log_merged.c reads merged ones. Whether more will come is known from
 * the spool's open jobs; a log of any other job has ended.
 */
#include "backend/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "backend/spool_impl.h"
#include "spec/name.h"

/* --- the table --- */

struct log *log_find(struct spool *spool, const char *name)
{
	struct log *log;

	lock_scope(&spool->lock);
	HASH_FIND_STR(spool->logs, name, log);
	if (log)
		log->refs++;
	return log;
}

struct log *log_ref(struct log *log)
{
	lock_scope(&log->spool->lock);
	log->refs++;
	return log;
}

/* Out of the table and out of sight of the I/O thread; under the lock. */
static void log_unlist(struct log *log)
{
	struct spool_job *j;
	struct spool_source *s;

	if (!log->listed)
		return;
	log->listed = false;
	HASH_DEL(log->spool->logs, log);
	j = spool_find_job(log->spool, log->id);
	if (!j)
		return;
	if (j->log == log)
		j->log = NULL;
	s = log->key ? spool_find_source(j, log->key) : NULL;
	if (s && s->log == log)
		s->log = NULL;
}

static void log_free(struct log *log)
{
	if (!log)
		return;
	if (log->fd >= 0)
		close(log->fd);
	log_merged_clear(log);
	spool_unref(log->spool);
	free(log->name);
	free(log->id);
	free(log);
}

void log_unref(struct log *log)
{
	if (!log)
		return;
	{
		lock_scope(&log->spool->lock);
		if (--log->refs > 0)
			return;
		log_unlist(log);
	}
	log_free(log);
}

void log_orphan(struct spool *spool, const char *id)
{
	struct log *log, *next;

	lock_scope(&spool->lock);
	HASH_ITER(hh, spool->logs, log, next) {
		if (streq(log->id, id))
			log_unlist(log);
	}
}

void log_tell(struct log *log)
{
	if (!log)
		return;
	lock_assert_none();
	if (log->spool->events->log)
		log->spool->events->log(log->spool->events->data, log);
	log_unref(log);
}

/* --- opening --- */

static struct log *log_new(struct spool *spool, const char *name, const char *id, bool merged)
{
	struct log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	atomic_fetch_add(&spool->refs, 1);
	log->spool = spool;
	log->refs = 1;
	log->fd = -1;
	log->name = strdup(name);
	log->id = strdup(id);
	if (!log->name || !log->id) {
		log_free(log);
		return NULL;
	}
	log->key = merged ? NULL : log->name + strlen(id) + 1;
	atomic_store(&log->ended, !spool->fetch);
	return log;
}

static int log_open_file(struct log *log)
{
	log->fd = spool_open(log->spool, log->id, log->key ? "logs" : NULL,
			     log->key ? log->key : "merged");
	return min_of(log->fd, 0);
}

/* Output that is still to be fetched has a file already, which is empty. */
static int log_make_file(struct log *log)
{
	int err = spool_make_dirs(log->spool, log->id);
	cleanup_fd int fd = err ? err : spool_open_log(log->spool, log->id, log->key, NULL);

	return fd < 0 ? fd : log_open_file(log);
}

static int64_t log_mtime(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* What LOG's file says. A job without output has no merged index. */
static int log_load(struct log *log)
{
	struct stat st;
	int err = log_open_file(log);

	if (err == -ENOENT && !log->key)
		return 0;
	if (err == -ENOENT && log->spool->fetch)
		err = log_make_file(log);
	if (err < 0)
		return err;
	if (fstat(log->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EIO;
	log->mtime = log_mtime(&st);
	return log->key ? 0 : log_merged_tail(log->fd, &log->records, &log->end);
}

void log_join_merged(struct log *log, struct spool_job *j)
{
	j->log = log;
	log->records = j->records;
	log->end = j->size;
	log->mtime = j->mtime;
	atomic_store(&log->ended, j->ended);
}

void log_await_merged(struct log *log, struct spool_job *j)
{
	j->log = log;
	atomic_store(&log->ended, false);
}

void log_join(struct log *log, struct spool_source *s)
{
	s->log = log;
	atomic_store(&log->ended, s->ended);
}

struct log *log_find_locked(struct spool *spool, const char *id, const char *key)
{
	char name[SPOOL_PATH_MAX];
	struct log *log = NULL;

	if (spool_name(name, id, NULL, key ? key : ""))
		HASH_FIND_STR(spool->logs, name, log);
	return log;
}

/*
 * Put *LOG, loaded when CLOSES jobs had been closed, into the table, or *RET is the one that is
 * there. -EAGAIN: what was loaded may be out of date.
 */
static int log_enter(struct log **log, uint64_t closes, struct log **ret)
{
	struct spool *spool = (*log)->spool;
	struct spool_source *s;
	struct spool_job *j;

	lock_scope(&spool->lock);
	HASH_FIND_STR(spool->logs, (*log)->name, *ret);
	if (*ret) {
		(*ret)->refs++;
		return 0;
	}
	j = spool_find_job(spool, (*log)->id);
	if (!j && spool->closes != closes)
		return -EAGAIN;
	HASH_ADD_KEYPTR(hh, spool->logs, (*log)->name, strlen((*log)->name), *log);
	if (!(*log)->hh.tbl)
		return -ENOMEM;
	(*log)->listed = true;
	s = j && (*log)->key ? spool_find_source(j, (*log)->key) : NULL;
	if (s)
		log_join(*log, s);
	else if (j && j->loaded && !(*log)->key)
		log_join_merged(*log, j);
	*ret = take_ptr(*log);
	return 0;
}

static void log_freep(struct log **log)
{
	log_free(*log);
}

static int log_open(struct spool *spool, const char *name, const char *id, bool merged,
		    struct log **ret)
{
	struct log *log cleanup(log_freep) = log_new(spool, name, id, merged);
	uint64_t closes;
	int err;

	if (!log)
		return -ENOMEM;
	{
		lock_scope(&spool->lock);
		closes = spool->closes;
	}
	err = log_load(log);
	return err < 0 ? err : log_enter(&log, closes, ret);
}

/* The name of KEY's log (NULL: merged). False: no such log can be. */
static bool log_name(char ret[SPOOL_PATH_MAX], const char *id, const char *key)
{
	return spec_name_is_file(id) && (!key || spec_name_is_file(key)) &&
	       spool_name(ret, id, NULL, key ? key : "");
}

int spool_log(struct spool *spool, const char *id, const char *key, struct log **ret)
{
	char name[SPOOL_PATH_MAX];
	int err;

	if (!log_name(name, id, key))
		return -ENOENT;
	*ret = log_find(spool, name);
	err = *ret ? 0 : -EAGAIN;
	while (err == -EAGAIN)
		err = log_open(spool, name, id, !key, ret);
	if (!err && spool->fetch)
		log_fetch(*ret);
	return err;
}

/* --- size and bytes --- */

/* Sizes of a file come in any order from two threads; what is shown only grows. */
static uint64_t log_grow(struct log *log, uint64_t size)
{
	uint64_t seen = atomic_load(&log->size);

	while (seen < size && !atomic_compare_exchange_weak(&log->size, &seen, size))
		;
	return max_of(seen, size);
}

int log_stat(struct log *log, struct log_stat *ret)
{
	struct stat st;

	if (!log->key) {
		lock_scope(&log->spool->lock);
		ret->ended = atomic_load(&log->ended);
		ret->size = log->end;
		ret->mtime = log->mtime;
		return 0;
	}
	ret->ended = atomic_load(&log->ended);
	if (fstat(log->fd, &st) < 0)
		return -errno;
	ret->size = log_grow(log, (uint64_t)st.st_size);
	ret->mtime = log_mtime(&st);
	return 0;
}

/* Of a log that nobody has open. */
static int log_stat_closed(struct spool *spool, const char *id, const char *key,
			   struct log_stat *ret)
{
	char path[SPOOL_PATH_MAX];
	cleanup_fd int fd = -1;
	uint64_t records;
	struct stat st;

	if (!spool_name(path, id, key ? "logs" : NULL, key ? key : "merged"))
		return -ENOENT;
	if (key) {
		if (fstatat(spool->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT && spool->fetch ? 0 : -errno;
		ret->size = (uint64_t)st.st_size;
		ret->mtime = log_mtime(&st);
		return 0;
	}
	fd = openat(spool->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	ret->mtime = log_mtime(&st);
	return log_merged_tail(fd, &records, &ret->size);
}

int spool_log_stat(struct spool *spool, const char *id, const char *key, struct log_stat *ret)
{
	struct log *log cleanup_log = NULL;
	char name[SPOOL_PATH_MAX];
	struct spool_source *s;
	struct spool_job *j;

	if (!log_name(name, id, key))
		return -ENOENT;
	log = log_find(spool, name);
	if (log)
		return log_stat(log, ret);
	*ret = (struct log_stat){.ended = !spool->fetch};
	{
		lock_scope(&spool->lock);
		j = spool_find_job(spool, id);
		s = j && key ? spool_find_source(j, key) : NULL;
		if (s)
			ret->ended = s->ended;
		if (j && j->loaded && !key) {
			*ret = (struct log_stat){j->size, j->mtime, j->ended};
			return 0;
		}
	}
	return log_stat_closed(spool, id, key, ret);
}

static ssize_t log_read_file(struct log *log, char *buf, size_t n, uint64_t off)
{
	ssize_t got;

	do
		got = pread(log->fd, buf, n, (off_t)off);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	/* What can be read has a size; a read beyond the end is no byte. */
	if (got > 0)
		log_grow(log, off + (uint64_t)got);
	return got;
}

ssize_t log_read(struct log *log, void *buf, size_t n, uint64_t off)
{
	lock_assert_none();
	if (off > INT64_MAX || n == 0)
		return 0;
	n = min_of(n, (size_t)SSIZE_MAX);
	return log->key ? log_read_file(log, buf, n, off) : log_merged_read(log, buf, n, off);
}
