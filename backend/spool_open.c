/* SPDX-License-Identifier: MIT */
/*
 * What has to be made or read on the disk before a log that is fetched can grow, and what goes when it has ended: on
 * the pool, so that a disk that hangs there holds up this job's output, and nothing else. First the job's folders and
 * its index (what is begun meanwhile waits for that), then each log's file; then its writer may go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <utlist.h>

#include "backend/diag.h"
#include "backend/spool_impl.h"
#include "backend/spool_write.h"

/* --- a file --- */

int spool_open_log(struct spool *spool, const char *id, const char *key, uint64_t *ret_size)
{
	char path[SPOOL_PATH_MAX];
	struct stat st;
	cleanup_fd int fd = -1;

	if (!spool_name(path, id, "logs", key))
		return -ENAMETOOLONG;
	fd = openat(spool->dir_fd, path,
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
	if (ret_size)
		*ret_size = (uint64_t)st.st_size;
	return take_fd(&fd);
}

/* --- the job --- */

struct spool_load {
	struct spool *spool;	/* a reference */
	struct spool_job *j;	/* NULL: it is gone */
	struct spool_job *read; /* what is on disk; its own, with nothing but that in it */
	int err;
	loop_fn next; /* to be done when no more of the disk is touched; NULL: nothing */
	void *data;
};

static void load_free(struct spool_load *l)
{
	spool_job_free(l->read);
	spool_unref(l->spool);
	free(l);
}

int spool_load_now(struct spool_job *j)
{
	int err = spool_make_dirs(j->spool, j->id);

	if (err == 0)
		err = spool_index_load(j);
	j->loaded = err == 0;
	return err;
}

static void load_work(void *data)
{
	struct spool_load *l = data;

	l->err = spool_load_now(l->read);
}

/* All that J has, begun or read, has a number now. */
static void load_show(struct spool_job *j)
{
	struct log *log;

	lock_scope(&j->spool->lock);
	j->loaded = true;
	log = log_find_locked(j->spool, j->id, NULL);
	if (log)
		log_join_merged(log, j);
}

static void load_done(void *data)
{
	struct spool_load *l = data;
	struct spool_job *j = l->j;

	if (j)
		j->load = NULL;
	if (j && l->err == 0)
		l->err = spool_index_adopt(j, l->read);
	if (j && l->err == 0)
		load_show(j);
	if (l->next)
		l->next(l->data);
	if (j)
		spool_pump_loaded(j, l->err);
	load_free(l);
}

int spool_load(struct spool_job *j)
{
	struct spool_load *l = calloc(1, sizeof(*l));

	assert(!j->loaded && !j->load);
	if (l)
		l->read = calloc(1, sizeof(*l->read));
	if (l && l->read)
		l->read->id = strdup(j->id);
	if (!l || !l->read || !l->read->id) {
		free(l ? l->read : NULL);
		free(l);
		return -ENOMEM;
	}
	atomic_fetch_add(&j->spool->refs, 1);
	l->spool = l->read->spool = j->spool;
	l->read->wd = -1;
	l->j = j;
	j->load = l;
	loop_work(j->spool->loop, load_work, load_done, l);
	return 0;
}

bool spool_job_is_made(const struct spool_job *j)
{
	return j->loaded;
}

bool spool_load_then(struct spool_job *j, loop_fn fn, void *data)
{
	if (!j->load)
		return false;
	assert(!j->load->next);
	j->load->next = fn;
	j->load->data = data;
	return true;
}

void spool_load_forget(struct spool_job *j)
{
	if (j->load)
		take_ptr(j->load)->j = NULL;
}

/* --- a log --- */

/* Something is done to the files of a log. */
struct spool_errand {
	struct spool *spool;	/* a reference */
	struct spool_source *s; /* NULL: it is gone */
	char *id, *key;
	uint64_t size;
	int err;
};

static void errand_free(struct spool_errand *e)
{
	spool_unref(e->spool);
	free(e->id);
	free(e->key);
	free(e);
}

static int errand_run(struct spool_source *s, loop_fn work, loop_fn done)
{
	struct spool_errand *e = calloc(1, sizeof(*e));

	assert(!s->errand);
	if (!e)
		return -ENOMEM;
	e->spool = s->job->spool;
	atomic_fetch_add(&e->spool->refs, 1);
	e->id = strdup(s->job->id);
	e->key = strdup(s->key);
	if (!e->id || !e->key) {
		errand_free(e);
		return -ENOMEM;
	}
	e->s = s;
	s->errand = e;
	loop_work(e->spool->loop, work, done, e);
	return 0;
}

static void open_work(void *data)
{
	struct spool_errand *e = data;
	cleanup_fd int fd = spool_open_log(e->spool, e->id, e->key, &e->size);

	e->err = min_of(fd, 0);
}

/* What waits for S may go on, or hear by itself why it can't. */
static void open_tell(struct spool_source *s, int err)
{
	if (err < 0)
		spool_pump_stuck(s, err);
	else
		spool_pump_queue(s);
	if (s->writer)
		spool_writer_begin(take_ptr(s->writer));
}

static void open_done(void *data)
{
	struct spool_errand *e = data;
	struct spool_source *s = e->s;

	if (s) {
		s->errand = NULL;
		if (e->err == 0) {
			s->opening = false;
			s->size = s->counted = e->size; /* by spool_count, or nothing yet */
		}
		open_tell(s, e->err);
	}
	errand_free(e);
}

void spool_source_open(struct spool_source *s)
{
	int err;

	s->opening = true;
	if (!s->job->loaded || s->errand)
		return; /* when that is done */
	err = errand_run(s, open_work, open_done);
	if (err < 0)
		open_tell(s, err);
}

static void forget_work(void *data)
{
	struct spool_errand *e = data;
	char path[SPOOL_PATH_MAX];
	struct stat st;

	if (spool_name(path, e->id, SPOOL_TIMES, e->key) &&
	    fstatat(e->spool->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    unlinkat(e->spool->dir_fd, path, 0) == 0)
		e->size = (uint64_t)st.st_size;
}

static void forget_done(void *data)
{
	struct spool_errand *e = data;
	struct spool_source *s = e->s;

	atomic_fetch_sub(&e->spool->bytes, (long long)e->size);
	if (s)
		s->errand = NULL;
	if (s && s->opening)
		spool_source_open(s); /* it has begun again */
	errand_free(e);
}

void spool_source_forget_times(struct spool_source *s)
{
	/* Without memory they stay until the job's directory goes. */
	if (!s->errand)
		(void)errand_run(s, forget_work, forget_done);
}

void spool_source_gone(struct spool_source *s)
{
	if (s->errand)
		take_ptr(s->errand)->s = NULL;
	assert(!s->writer);
}
