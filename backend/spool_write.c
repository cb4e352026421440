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

#define POSITIONS   "positions"
#define READ_BUFFER (256u << 10)
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

	struct spec_logline *l; /* pool, until it is open */

	struct spool_source *s;	 /* that it waits for; NULL: it does not */
	int fd;			 /* pool */
	uint64_t on_disk;	 /* pool; bytes of the log */
	bool timed;		 /* pool; lines have times */
	struct spool_batch work; /* pool */
	char *position;		 /* pool: to be kept in SLOT before that is written; NULL: none */
	unsigned slot;		 /* pool */
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
	*b = (struct spool_batch){0};
}

static void writer_free(void *data)
{
	struct spool_writer *w = data;

	batch_clear(w->spool, &w->next);
	batch_clear(w->spool, &w->work);
	spec_logline_free(w->l);
	free(w->position);
	spool_unref(w->spool);
	free(w->id);
	free(w->key);
	free(w);
}

/* --- on the pool --- */

/* What is in FOLDER beside the log, made. A descriptor, or -1. Another log's writer may make the folder meanwhile. */
static int open_beside(const struct spool_writer *w, const char *folder, int flags)
{
	char dir[SPOOL_PATH_MAX], path[SPOOL_PATH_MAX];
	int at = w->spool->dir_fd, fd;

	if (!spool_name(dir, w->id, NULL, folder) || !spool_name(path, w->id, folder, w->key))
		return -1;
	flags |= O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	fd = openat(at, path, flags, 0600);
	if (fd < 0 && errno == ENOENT && (mkdirat(at, dir, 0700) == 0 || errno == EEXIST))
		fd = openat(at, path, flags, 0600);
	return fd;
}

/*
 * A page is written whole or not at all when kxfs is killed. Where it can't be written, more is fetched twice
 * after that; nothing is lost. It is opened each time, since a thousand more descriptors may not be had.
 */
static void position_write(struct spool_writer *w)
{
	cleanup_free char *position = take_ptr(w->position);
	cleanup_fd int fd = position ? open_beside(w, POSITIONS, O_WRONLY) : -1;
	ssize_t n = 0;

	if (fd >= 0)
		n = pwrite(fd, position, SPEC_LOGLINE_SLOT, (off_t)w->slot * SPEC_LOGLINE_SLOT);
	(void)n;
}

/* What W knows is to be written with what is written next. */
static void position_make(struct spool_writer *w)
{
	w->position = malloc(SPEC_LOGLINE_SLOT);
	if (w->position)
		w->slot = spec_logline_save(w->l, w->position);
}

/* The times beside the log, for appending. A descriptor, or -1. */
static int times_open(const struct spool_writer *w)
{
	return open_beside(w, SPOOL_TIMES, O_RDWR | O_APPEND);
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
	struct stat st;

	times_write(w);
	position_write(w);
	w->err = file_write_all(w->fd, w->work.bytes, w->work.len);
	if (w->err == 0)
		w->on_disk += w->work.len;
	else if (fstat(w->fd, &st) == 0)
		w->on_disk = (uint64_t)st.st_size;
}

/* It may wait for the disk too: what was written goes to a server by then. */
static void close_work(void *data)
{
	struct spool_writer *w = data;

	close(w->fd);
}

/* What was kept of a log of SIZE bytes, or that nothing is known. NULL: no memory. */
static struct spec_logline *position_read(const struct spool_writer *w, uint64_t size)
{
	char kept[SPEC_LOGLINE_SLOTS * SPEC_LOGLINE_SLOT];
	cleanup_fd int fd = spool_open(w->spool, w->id, POSITIONS, w->key);
	ssize_t n = fd < 0 ? 0 : read(fd, kept, sizeof(kept));

	return spec_logline_load(kept, (size_t)max_of(n, (ssize_t)0), size);
}

/* What the log has beyond what L knows. */
static int read_rest(const struct spool_writer *w, struct spec_logline *l)
{
	cleanup_free char *buf = malloc(READ_BUFFER);
	cleanup_fd int fd = spool_open(w->spool, w->id, "logs", w->key);
	ssize_t n = 0;

	if (!buf)
		return -ENOMEM;
	if (fd < 0)
		return fd;
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
	cleanup_fd int fd = size > 0 ? spool_open(w->spool, w->id, "logs", w->key) : -1;
	char last;

	return size > 0 && (fd < 0 || pread(fd, &last, 1, (off_t)size - 1) < 1 || last != '\n');
}

static void open_work(void *data)
{
	struct spool_writer *w = data;

	w->fd = w->err = spool_open_log(w->spool, w->id, w->key, &w->size);
	if (w->err < 0)
		return;
	w->on_disk = w->size;
	w->midline = is_midline(w, w->size);
	w->timed = times_begin(w, w->size);
	w->l = position_read(w, w->size);
	w->err = w->l ? read_rest(w, w->l) : -ENOMEM;
	if (w->err < 0)
		return;
	position_make(w);
	position_write(w);
}

/* --- on the I/O thread --- */

/* W, which nobody uses any more, goes. */
static void writer_end(struct spool_writer *w)
{
	if (w->fd < 0)
		writer_free(w);
	else
		loop_work(w->spool->loop, close_work, writer_free, w);
}

static void write_done(void *data);

static void write_next(struct spool_writer *w)
{
	w->work = w->next;
	w->next = (struct spool_batch){0};
	position_make(w);
	w->busy = true;
	loop_work(w->spool->loop, write_work, write_done, w);
}

/* Readers and the merged log may look. */
static void tell_grown(struct spool_writer *w)
{
	struct spool_job *j = w->spool->stopped ? NULL : spool_find_job(w->spool, w->id);
	struct spool_source *s = j ? spool_find_source(j, w->key) : NULL;

	if (s)
		spool_pump_grown(s, w->on_disk);
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
	if (w->usable && w->next.len > 0) {
		write_next(w);
		return;
	}
	if (w->closed) {
		writer_end(w);
		return;
	}
	batch_clear(w->spool, &w->next);
	if (grown || w->err < 0)
		w->events.written(w->events.data, w->err);
}

static void open_done(void *data)
{
	struct spool_writer *w = data;

	w->busy = false;
	w->usable = w->err >= 0;
	if (w->closed)
		writer_end(w);
	else
		w->events.opened(w->events.data, w->err, w->l);
}

void spool_writer_begin(struct spool_writer *w)
{
	w->s = NULL;
	w->busy = true;
	loop_work(w->spool->loop, open_work, open_done, w);
}

struct spool_writer *spool_writer_new(struct spool_job *j, const char *key,
				      const struct spool_writer_events *events)
{
	struct spool_writer *w = calloc(1, sizeof(*w));
	struct spool_source *s = spool_find_source(j, key);

	if (!w)
		return NULL;
	w->fd = -1;
	w->line_ns = -1; /* no time is negative */
	w->id = strdup(j->id);
	w->key = strdup(key);
	w->events = *events;
	w->spool = j->spool;
	atomic_fetch_add(&w->spool->refs, 1);
	if (!w->id || !w->key) {
		writer_free(w);
		return NULL;
	}
	if (s && s->opening) {
		assert(!s->writer);
		w->s = s;
		s->writer = w;
	} else {
		spool_writer_begin(w);
	}
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
	return 0;
}

void spool_writer_flush(struct spool_writer *w)
{
	if (w->next.len > 0 && !w->busy)
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
	if (w->s)
		w->s->writer = NULL;
	if (!w->busy)
		writer_end(w);
}
