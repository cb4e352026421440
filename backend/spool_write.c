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
#include "backend/times.h"

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
	char *times; /* of lines that begin in BYTES */
	size_t times_len, times_room;
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
	uint64_t size;	 /* of the log, with all that was added */
	bool midline;	 /* that does not end with the end of a line */
	int64_t line_ns; /* of the last time that was added */

	int fd;			 /* pool */
	bool timed;		 /* pool; lines have times */
	struct spool_batch work; /* pool */
	struct spec_logline *l;	 /* pool: of what was found */
	int err;		 /* pool */
};

static size_t batch_size(const struct spool_batch *b)
{
	return b->len + b->times_len;
}

static void batch_clear(struct spool *spool, struct spool_batch *b)
{
	spool->pending -= batch_size(b);
	free(b->bytes);
	free(b->times);
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

/* Open PATH in the folder DIR, and make both; another log's writer may do the same. */
static int open_in(const struct spool_writer *w, const char *dir, const char *path, int flags)
{
	int at = w->spool->dir_fd;
	int fd;

	flags |= O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	fd = openat(at, path, flags, 0600);
	if (fd < 0 && errno == ENOENT && (mkdirat(at, dir, 0700) == 0 || errno == EEXIST))
		fd = openat(at, path, flags, 0600);
	return fd < 0 ? -errno : fd;
}

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
	fd = open_in(w, dir, temp, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return fd;
	err = file_write_all(fd, text, len);
	if (err == 0 && renameat(at, temp, at, path) < 0)
		err = -errno;
	return err;
}

/* The times beside the log, for appending. A descriptor, or a negative errno. */
static int times_open(const struct spool_writer *w)
{
	char dir[SPOOL_PATH_MAX], path[SPOOL_PATH_MAX];

	if (!spool_name(dir, w->id, NULL, SPOOL_TIMES) ||
	    !spool_name(path, w->id, SPOOL_TIMES, w->key))
		return -ENAMETOOLONG;
	return open_in(w, dir, path, O_RDWR | O_APPEND);
}

/* Without times the merged log has lines in a worse order; nothing is lost. */
static void times_write(struct spool_writer *w)
{
	cleanup_fd int fd = -1;

	if (!w->timed || w->work.times_len == 0)
		return;
	fd = times_open(w);
	/* After a part of a record nothing must follow. */
	w->timed = fd >= 0 && file_write_all(fd, w->work.times, w->work.times_len) == 0;
}

static void write_work(void *data)
{
	struct spool_writer *w = data;

	times_write(w);
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

/* Mend the times beside the log of SIZE bytes. False: they can't be kept. */
static bool times_begin(const struct spool_writer *w, uint64_t size)
{
	cleanup_fd int fd = times_open(w);

	return fd >= 0 && times_mend(fd, size) == 0;
}

/* Is the last byte of the log, of SIZE bytes, none that ends a line? */
static bool is_midline(const struct spool_writer *w, uint64_t size)
{
	char path[SPOOL_PATH_MAX], last = '\n';
	cleanup_fd int fd = -1;

	if (size == 0 || !spool_name(path, w->id, "logs", w->key))
		return false;
	fd = openat(w->spool->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 || pread(fd, &last, 1, (off_t)size - 1) < 1 || last != '\n';
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
	w->size = (uint64_t)st.st_size;
	w->midline = is_midline(w, w->size);
	w->timed = times_begin(w, w->size);
	w->l = position_read(w, w->size);
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

	atomic_fetch_add(&w->spool->bytes, (long long)w->work.times_len);
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
	w->line_ns = -1; /* no time is negative */
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
	size_t mine = batch_size(&w->next) + batch_size(&w->work) + n;

	return mine <= PENDING_LEAST ||
	       (mine <= PENDING_ONE && w->spool->pending + n <= PENDING_ALL);
}

/* Make room for N bytes behind LEN of them at *P, which has *ROOM. 0; -ENOMEM. */
static int make_room(char **p, size_t len, size_t n, size_t *room)
{
	size_t wanted = max_of(len + n, 2 * *room);
	char *grown;

	if (len + n <= *room)
		return 0;
	grown = realloc(*p, wanted);
	if (!grown)
		return -ENOMEM;
	*p = grown;
	*room = wanted;
	return 0;
}

int spool_writer_add(struct spool_writer *w, int64_t ns, const char *bytes, size_t n)
{
	const struct times_record r = {.at = w->size, .ns = ns};
	bool timed = !w->midline && ns != w->line_ns;
	struct spool_batch *b = &w->next;

	assert(w->usable && n > 0);
	if (make_room(&b->bytes, b->len, n, &b->room) < 0 ||
	    make_room(&b->times, b->times_len, TIMES_RECORD, &b->times_room) < 0)
		return -ENOMEM;
	if (timed) {
		times_encode(&r, (uint8_t *)b->times + b->times_len);
		b->times_len += TIMES_RECORD;
		w->line_ns = ns;
	}
	memcpy(b->bytes + b->len, bytes, n);
	b->len += n;
	w->size += n;
	w->midline = bytes[n - 1] != '\n';
	w->spool->pending += n + (timed ? TIMES_RECORD : 0);
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
