/* SPDX-License-Identifier: MIT */
/*
 * A log's writer. One piece of work at a time is on the pool; what is added meanwhile is the next one.
 */
#include "backend/spool_write.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/file.h"
#include "backend/spool_impl.h"

#define POSITIONS    "positions"
#define POSITION_MAX (64u << 10)
#define READ_BUFFER  (256u << 10)
/*
 * What may wait for the disk: of one log, of all together, and of one when that is reached. A disk that
 * stands still for some tenths of a second is usual, and what has no room has to be fetched again.
 */
#define PENDING_ONE   (32u << 20)
#define PENDING_ALL   (128u << 20)
#define PENDING_LEAST (256u << 10)

/* What is to be done, or is being done. */
struct spool_batch {
	char *bytes;
	size_t len, room;
	char *position; /* to be kept when the bytes are written; NULL: none */
	size_t position_len;
};

struct spool_writer {
	struct spool *spool; /* a reference */
	char *id, *key;
	struct spool_writer_events events;
	bool closed;
	bool busy;   /* the pool has what is marked so */
	bool usable; /* it is open, and nothing has failed */
	struct spool_batch next;

	int fd;			 /* pool */
	struct spool_batch work; /* pool */
	struct spec_logline *l;	 /* pool: of what was found */
	int err;		 /* pool */
};

static void batch_clear(struct spool *spool, struct spool_batch *b)
{
	spool->pending -= b->len;
	free(b->bytes);
	free(b->position);
	*b = (struct spool_batch){0};
}

static void writer_free(struct spool_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	batch_clear(w->spool, &w->next);
	batch_clear(w->spool, &w->work);
	spec_logline_free(w->l);
	spool_unref(w->spool);
	free(w->id);
	free(w->key);
	free(w);
}

/* --- on the pool --- */

/* Replaced in one step, but not synced: what a crash of the machine loses is found again. */
static int position_write(const struct spool_writer *w, const char *text, size_t len)
{
	char dir[SPOOL_PATH_MAX], path[SPOOL_PATH_MAX], temp[SPOOL_PATH_MAX];
	cleanup_fd int fd = -1;
	int at = w->spool->dir_fd, err;

	if (!spool_name(dir, w->id, NULL, POSITIONS) ||
	    !spool_name(path, w->id, POSITIONS, w->key) ||
	    snprintf(temp, sizeof(temp), "%s/.%s", dir, w->key) >= (int)sizeof(temp))
		return -ENAMETOOLONG;
	fd = openat(at, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno == ENOENT && mkdirat(at, dir, 0700) == 0)
		fd = openat(at, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	err = file_write_all(fd, text, len);
	if (err == 0 && renameat(at, temp, at, path) < 0)
		err = -errno;
	return err;
}

static void write_work(void *data)
{
	struct spool_writer *w = data;

	w->err = file_write_all(w->fd, w->work.bytes, w->work.len);
	/* Without a position more is fetched twice; nothing is lost. */
	if (w->err == 0 && w->work.position)
		(void)position_write(w, w->work.position, w->work.position_len);
}

/* What was kept of a log of SIZE bytes; NULL: nothing, or of another one. */
static struct spec_logline *position_read(const struct spool_writer *w, uint64_t size)
{
	cleanup_free char *text = calloc(1, POSITION_MAX);
	char path[SPOOL_PATH_MAX];
	cleanup_fd int fd = -1;
	struct spec_logline *l = NULL;
	ssize_t n;

	if (!text || !spool_name(path, w->id, POSITIONS, w->key))
		return NULL;
	fd = openat(w->spool->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	n = fd < 0 ? -1 : read(fd, text, POSITION_MAX);
	if (n <= 0 || spec_logline_load(text, (size_t)n, &l) < 0)
		return NULL;
	spec_logline_cut(l, size); /* the last write may have been torn */
	return l;
}

/* What the log has beyond what L knows. */
static int read_rest(const struct spool_writer *w, struct spec_logline *l)
{
	cleanup_free char *buf = malloc(READ_BUFFER);
	char path[SPOOL_PATH_MAX];
	cleanup_fd int fd = -1;
	ssize_t n = 0;

	if (!buf)
		return -ENOMEM;
	if (!spool_name(path, w->id, "logs", w->key))
		return -ENAMETOOLONG;
	fd = openat(w->spool->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	while ((n = pread(fd, buf, READ_BUFFER, (off_t)spec_logline_size(l))) > 0)
		spec_logline_known(l, buf, (size_t)n);
	return n < 0 ? -errno : 0;
}

static void open_work(void *data)
{
	struct spool_writer *w = data;
	struct stat st;

	w->fd = w->err = spool_open_log(w->spool, w->id, w->key);
	if (w->err < 0)
		return;
	w->err = fstat(w->fd, &st) < 0 ? -errno : 0;
	if (w->err < 0)
		return;
	w->l = position_read(w, (uint64_t)st.st_size);
	if (!w->l)
		w->l = spec_logline_new();
	w->err = w->l ? read_rest(w, w->l) : -ENOMEM;
}

/* --- on the I/O thread --- */

static void write_done(void *data);

static bool has_next(const struct spool_writer *w)
{
	return w->next.len > 0 || w->next.position;
}

static void write_next(struct spool_writer *w)
{
	w->work = w->next;
	w->next = (struct spool_batch){0};
	w->busy = true;
	loop_work(w->spool->loop, write_work, write_done, w);
}

/* Readers and the merged log may look. */
static void tell_grown(struct spool_writer *w)
{
	struct spool_job *j = w->spool->stopped ? NULL : spool_find_job(w->spool, w->id);
	struct spool_source *s = j ? spool_find_source(j, w->key) : NULL;

	if (s)
		spool_pump_queue(s);
}

static void write_done(void *data)
{
	struct spool_writer *w = data;
	bool grown = w->work.len > 0;

	w->busy = false;
	w->usable = w->err == 0;
	batch_clear(w->spool, &w->work);
	if (grown)
		tell_grown(w);
	if (w->usable && has_next(w)) {
		write_next(w);
		return;
	}
	if (w->closed) {
		writer_free(w);
		return;
	}
	batch_clear(w->spool, &w->next);
	if (grown || w->err < 0)
		w->events.written(w->events.data, w->err);
}

static void open_done(void *data)
{
	struct spool_writer *w = data;
	struct spec_logline *l = take_ptr(w->l);

	w->busy = false;
	w->usable = w->err >= 0;
	if (w->closed || w->err < 0) {
		spec_logline_free(l);
		l = NULL;
	}
	if (w->closed)
		writer_free(w);
	else
		w->events.opened(w->events.data, w->err, l);
}

struct spool_writer *spool_writer_new(struct spool_job *j, const char *key,
				      const struct spool_writer_events *events)
{
	struct spool_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = -1;
	w->id = strdup(j->id);
	w->key = strdup(key);
	if (!w->id || !w->key) {
		free(w->id);
		free(w->key);
		free(w);
		return NULL;
	}
	w->events = *events;
	w->spool = j->spool;
	atomic_fetch_add(&w->spool->refs, 1);
	w->busy = true;
	loop_work(w->spool->loop, open_work, open_done, w);
	return w;
}

bool spool_writer_has_room(const struct spool_writer *w, size_t n)
{
	size_t mine = spool_writer_pending(w) + n;

	return mine <= PENDING_LEAST ||
	       (mine <= PENDING_ONE && w->spool->pending + n <= PENDING_ALL);
}

int spool_writer_add(struct spool_writer *w, const char *bytes, size_t n)
{
	struct spool_batch *b = &w->next;

	assert(w->usable);
	if (b->len + n > b->room) {
		size_t room = max_of(b->len + n, 2 * b->room);
		char *grown = realloc(b->bytes, room);

		if (!grown)
			return -ENOMEM;
		b->bytes = grown;
		b->room = room;
	}
	memcpy(b->bytes + b->len, bytes, n);
	b->len += n;
	w->spool->pending += n;
	if (!w->busy)
		write_next(w);
	return 0;
}

void spool_writer_keep(struct spool_writer *w, const struct spec_logline *l)
{
	size_t len;
	char *text = spec_logline_save(l, &len);

	if (!text)
		return;
	free(w->next.position);
	w->next.position = text;
	w->next.position_len = len;
	if (!w->busy)
		write_next(w);
}

size_t spool_writer_pending(const struct spool_writer *w)
{
	return w->next.len + w->work.len;
}

void spool_writer_close(struct spool_writer *w)
{
	if (!w)
		return;
	w->closed = true;
	if (!w->busy)
		writer_free(w);
}
