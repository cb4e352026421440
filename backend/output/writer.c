/* SPDX-License-Identifier: MIT */
/*
 * A log's writer; see writer.h. The pool writes one batch at a time. Lines that are added meanwhile
 * go into the next batch.
 *
 *	state   | what is in progress                  | what ends it                  | next
 *	WAITING | output.c creates the log's file      | it exists, or can't be made   | OPENING
 *	OPENING | the pool opens it, repairs its table | done                          | READY
 *	        |                                      | a disk error                  | FAILED
 *	READY   | nothing                              | log_writer_flush              | WRITING
 *	        |                                      | log_writer_known              | LOOKING
 *	        |                                      | log_writer_sync               | SYNCING
 *	WRITING | the pool writes a batch              | done, and no more was flushed | READY
 *	        |                                      | a disk error                  | FAILED
 *	LOOKING | the pool reads the end of the log    | done                          | READY
 *	SYNCING | the pool syncs the log and its table | done                          | READY
 *	FAILED  | nothing                              | log_writer_close              | freed
 *
 * After log_writer_close, flushed lines are still written. Then the writer is freed.
 */
#include "backend/output/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/output/feeder.h"
#include "backend/output/folder.h"
#include "spec/base/mem.h"

/*
 * Limits of the bytes that wait for the disk: of one log, and of all logs together. Each log may
 * always have PENDING_LEAST. The limits are high because disks commonly pause for some tenths of a
 * second. When a limit is reached, kxfs must fetch the next lines again later.
 */
#define PENDING_ONE   (32u << 20)
#define PENDING_ALL   (128u << 20)
#define PENDING_LEAST (256u << 10)

struct bytes {
	char *v;
	size_t len, room;
};

struct batch {
	uint64_t from; /* offset in the log */
	struct bytes bytes;
	struct bytes lines; /* for the table of lines */
	struct bytes gaps;  /* offsets of gaps in the log, 8 bytes each */
	struct chunks chunks;
};

enum writer_state { WAITING, OPENING, READY, WRITING, LOOKING, SYNCING, FAILED };

struct log_writer {
	struct feeder feeder;
	struct log_writer_events events;
	enum writer_state state;
	bool closed;
	struct batch next;
	bool flushed; /* NEXT must be written */
	struct lines_encoder lines;
	struct cutter cutter;

	/* In OPENING, WRITING, LOOKING and SYNCING, only the pool changes these members: */
	int dir_fd;
	char *id, *key;
	int fd;
	uint64_t on_disk; /* bytes on disk */
	bool timed;	  /* the table of lines is a regular file, so it can be used */
	unsigned gaps;	  /* on disk when the log was opened */
	struct batch work;
	struct spec_logline_known known; /* in LOOKING */
	int err;
};

static void bytes_add(struct bytes *b, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	if (b->len + n > b->room) {
		b->room = max_of(b->len + n, 2 * b->room);
		b->v = mem_grow(b->v, b->room, 1);
	}
	memcpy(b->v + b->len, bytes, n);
	b->len += n;
}

static size_t batch_size(const struct batch *b)
{
	return b->bytes.len + b->lines.len + b->gaps.len;
}

static void batch_clear(struct log_writer *w, struct batch *b)
{
	*w->feeder.pending -= batch_size(b);
	free(b->bytes.v);
	free(b->lines.v);
	free(b->gaps.v);
	chunks_clear(&b->chunks);
	*b = (struct batch){0};
}

/* --- on the pool --- */

/* Open the table of lines, and create it and its directory if needed. */
static int open_table(const struct log_writer *w, int flags)
{
	char dir[FOLDER_PATH_MAX];
	int fd = folder_open(w->dir_fd, w->id, "lines", w->key, flags | O_CREAT | O_NONBLOCK);

	if (fd == -ENOENT && folder_path(dir, w->id, NULL, "lines") &&
	    folder_make_one(w->dir_fd, dir) == 0)
		fd = folder_open(w->dir_fd, w->id, "lines", w->key, flags | O_CREAT | O_NONBLOCK);
	return fd;
}

/* Open the file of gaps, which exists only if the log has gaps. */
static int open_gaps(const struct log_writer *w, int flags)
{
	cleanup_free char *name = text_print("%s.gaps", w->key);

	return folder_open(w->dir_fd, w->id, "lines", name, flags | O_NONBLOCK);
}

/* Append B to FD, and close FD. If FD is a negative errno, return FD. */
static int append(int fd, const struct bytes *b)
{
	cleanup_fd int file = fd;

	return file < 0 ? file : file_write_all(file, b->v, b->len);
}

/*
 * Write the table before the log. Even if kxfs is killed, the table then has the times of all lines
 * in the log. The times identify lines that kxfs receives a second time.
 */
static void write_work(void *data)
{
	struct log_writer *w = data;
	struct stat st;

	w->err = 0;
	if (w->timed && w->work.lines.len > 0)
		w->err = append(open_table(w, O_WRONLY | O_APPEND), &w->work.lines);
	if (w->err == 0 && w->work.gaps.len > 0)
		w->err = append(open_gaps(w, O_WRONLY | O_APPEND | O_CREAT), &w->work.gaps);
	if (w->err == 0)
		w->err = file_write_all(w->fd, w->work.bytes.v, w->work.bytes.len);
	if (w->err == 0)
		w->on_disk += w->work.bytes.len;
	else if (disk_stat(w->fd, "", &st) == 0)
		w->on_disk = (uint64_t)st.st_size;
}

/*
 * Count the gaps that are followed by bytes of the log. Remove a gap at the log's end: kxfs was
 * killed before it wrote the next bytes, and will detect the gap again.
 */
static int gaps_begin(struct log_writer *w)
{
	cleanup_fd int fd = open_gaps(w, O_RDWR);
	uint8_t at[8];
	ssize_t n;

	w->gaps = 0;
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	while ((n = file_read_at(fd, at, sizeof(at), w->gaps * sizeof(at))) == sizeof(at) &&
	       bytes_get64(at) < w->on_disk)
		w->gaps++;
	return n <= 0 ? (int)n : disk_truncate(fd, w->gaps * sizeof(at));
}

/* Make the table match the log, which can be read from FD. */
static int lines_begin(struct log_writer *w, int fd)
{
	cleanup_fd int table = open_table(w, O_RDWR);
	struct stat st;
	char last = '\n';
	int err = table < 0 ? table : disk_stat(table, "", &st);

	w->timed = err == 0 && S_ISREG(st.st_mode);
	if (w->timed)
		return lines_mend(table, fd, w->on_disk, &w->lines);
	if (err < 0 && err != -EISDIR && err != -ELOOP && err != -ENXIO)
		return err;
	err = w->on_disk > 0 ? (int)disk_pread(fd, &last, 1, w->on_disk - 1) : 0;
	w->lines = (struct lines_encoder){.size = w->on_disk, .midline = last != '\n'};
	return min_of(err, 0);
}

static void open_work(void *data)
{
	struct log_writer *w = data;
	cleanup_fd int fd = -1;

	w->fd = w->err = folder_open_log(w->dir_fd, w->id, w->key, &w->on_disk);
	if (w->err < 0)
		return;
	fd = w->err = folder_open(w->dir_fd, w->id, "logs", w->key, O_RDONLY);
	if (w->err >= 0)
		w->err = lines_begin(w, fd);
	if (w->err >= 0)
		w->err = gaps_begin(w);
}

/*
 * Find the record of the line that contains byte AT. If the records directly before it have the
 * same time, find the first of them.
 */
static int find_first(struct lines_reader *r, uint64_t at, struct lines_record *ret)
{
	struct lines_record before;
	int err = lines_find(r, 0, at, ret);

	if (err < 0)
		return err;
	while (ret->line.at > 0 && (err = lines_find(r, 0, ret->line.at - 1, &before)) == 0 &&
	       before.line.ns == ret->line.ns)
		*ret = before;
	return err < 0 && err != -ENOENT ? err : lines_find(r, 0, ret->line.at, ret);
}

/* Read the lines at the end of the log from the table FD. */
static int read_lines(int fd, struct spec_logline_known *k)
{
	struct lines_reader r;
	struct lines_record record;
	size_t room = 0;
	int err;

	lines_open(&r, fd);
	for (err = find_first(&r, k->from, &record); err == 0; err = lines_next(&r, &record)) {
		if (k->n_lines == room) {
			room = max_of(2 * room, (size_t)64);
			k->lines = mem_grow(k->lines, room, sizeof(k->lines[0]));
		}
		k->lines[k->n_lines++] = record.line;
	}
	return err == -ENOENT ? 0 : err;
}

static void known_work(void *data)
{
	struct log_writer *w = data;
	struct spec_logline_known *k = &w->known;
	size_t n = (size_t)(k->size - k->from);
	cleanup_fd int fd = folder_open(w->dir_fd, w->id, "logs", w->key, O_RDONLY);
	cleanup_fd int table = -1;
	ssize_t got;

	k->bytes = mem_grow(NULL, n + 1, 1);
	got = fd < 0 ? fd : file_read_at(fd, k->bytes, n, k->from);
	/* If the log is shorter than expected, another process has truncated it. */
	w->err = got < 0 ? (int)got : (size_t)got < n ? -EIO : 0;
	if (w->err < 0 || !w->timed)
		return;
	table = folder_open(w->dir_fd, w->id, "lines", w->key, O_RDONLY);
	w->err = table < 0 ? table : read_lines(table, k);
}

/* Sync the file KEY in the directory SUB, or SUB itself if KEY is NULL. */
static int sync_one(const struct log_writer *w, const char *sub, const char *key)
{
	cleanup_fd int fd = folder_open(w->dir_fd, w->id, key ? sub : NULL, key ? key : sub,
					O_RDONLY | O_NONBLOCK);

	return fd < 0 ? fd : disk_sync_data(fd);
}

static void sync_work(void *data)
{
	struct log_writer *w = data;
	cleanup_fd int gaps = open_gaps(w, O_RDONLY);

	w->err = gaps >= 0 ? disk_sync_data(gaps) : gaps == -ENOENT ? 0 : gaps;
	if (!w->err)
		w->err = disk_sync_data(w->fd);
	if (!w->err && w->timed)
		w->err = sync_one(w, "lines", w->key);
	if (!w->err)
		w->err = sync_one(w, "logs", NULL);
	if (!w->err)
		w->err = sync_one(w, "lines", NULL);
	/* The folder may be new, so sync it, and the directory that contains it. */
	if (!w->err)
		w->err = sync_one(w, ".", NULL);
	if (!w->err)
		w->err = disk_sync_data(w->dir_fd);
}

/* A network file system may send written bytes when a file is closed, so the pool closes it. */
static void close_work(void *data)
{
	struct log_writer *w = data;

	close(w->fd);
}

/* --- on the I/O thread --- */

static void writer_free(void *data)
{
	struct log_writer *w = data;

	batch_clear(w, &w->next);
	batch_clear(w, &w->work);
	free(w->known.bytes);
	free(w->known.lines);
	free(w->id);
	free(w->key);
	output_log_leave(w->feeder.log);
	free(w);
}

static void writer_end(struct log_writer *w)
{
	output_log_enter(w->feeder.log);
	if (w->fd < 0)
		writer_free(w);
	else
		loop_work_of_many(w->feeder.loop, close_work, writer_free, w);
}

static void write_done(void *data);

static void write_next(struct log_writer *w)
{
	w->work = w->next;
	w->next = (struct batch){0};
	w->flushed = false;
	w->state = WRITING;
	output_log_enter(w->feeder.log);
	loop_work_of_many(w->feeder.loop, write_work, write_done, w);
}

static void write_done(void *data)
{
	struct log_writer *w = data;
	struct batch *b = &w->work;
	bool failed = w->err < 0;

	w->state = failed ? FAILED : READY;
	if (failed) {
		output_log_found(w->feeder.log, w->on_disk);
	} else {
		room_add(w->feeder.room, (int64_t)(b->lines.len + b->gaps.len));
		output_log_written(w->feeder.log, b->from, w->on_disk, &b->chunks);
	}
	batch_clear(w, b);
	output_log_leave(w->feeder.log);
	if (w->flushed && !failed)
		return write_next(w);
	if (w->closed)
		return writer_end(w);
	if (failed)
		batch_clear(w, &w->next);
	return w->events.written(w->events.data, w->err);
}

static void open_done(void *data)
{
	struct log_writer *w = data;

	w->state = w->err < 0 ? FAILED : READY;
	cutter_begin(&w->cutter, w->lines.size, w->lines.midline,
		     w->lines.last.line.ns ? w->lines.last.line.ns : CHUNK_UNTIMED);
	output_log_leave(w->feeder.log);
	if (w->closed)
		return writer_end(w);
	return w->events.opened(w->events.data, min_of(w->err, 0));
}

/* The log's file exists now, or could not be created. In the second case, open_work fails, too. */
static void writer_open(void *data)
{
	struct log_writer *w = data;

	w->state = OPENING;
	output_log_enter(w->feeder.log);
	loop_work_of_many(w->feeder.loop, open_work, open_done, w);
}

struct log_writer *log_writer_new(struct output_job *j, const char *key,
				  const struct log_writer_events *events)
{
	struct log_writer *w = new0(struct log_writer);

	w->feeder = output_log_feeder(j, key);
	w->events = *events;
	w->fd = -1;
	w->dir_fd = w->feeder.dir_fd;
	w->id = text_copy(w->feeder.id);
	w->key = text_copy(key);
	w->state = WAITING;
	output_log_when_open(w->feeder.log, writer_open, w);
	return w;
}

bool log_writer_has_room(const struct log_writer *w, size_t n)
{
	size_t mine = batch_size(&w->next) + batch_size(&w->work) + n;

	return mine <= PENDING_LEAST ||
	       (mine <= PENDING_ONE && *w->feeder.pending + n <= PENDING_ALL);
}

void log_writer_add(struct log_writer *w, int64_t ns, const char *bytes, size_t n)
{
	struct batch *b = &w->next;
	uint8_t lines[LINES_ADDED_MAX];
	size_t before = batch_size(b);
	bool whole = bytes[n - 1] == '\n';

	assert((w->state == READY || w->state == WRITING) && n > 0);
	if (b->bytes.len == 0)
		b->from = w->lines.size;
	ns = max_of(ns, (int64_t)0);
	bytes_add(&b->lines, lines, lines_add_line(&w->lines, ns, n, whole, lines));
	if (ns == 0)
		ns = w->lines.last.line.ns;
	cutter_add_line(&w->cutter, ns ? ns : CHUNK_UNTIMED, bytes, n, whole, &b->chunks);
	bytes_add(&b->bytes, bytes, n);
	*w->feeder.pending += batch_size(b) - before;
}

void log_writer_flush(struct log_writer *w)
{
	if (w->next.bytes.len == 0)
		return;
	cutter_pause(&w->cutter, &w->next.chunks);
	w->flushed = true;
	if (w->state == READY)
		write_next(w);
}

void log_writer_lost(struct log_writer *w)
{
	uint8_t at[8];

	bytes_put64(at, w->lines.size);
	bytes_add(&w->next.gaps, at, sizeof(at));
	*w->feeder.pending += sizeof(at);
}

unsigned log_writer_gaps(const struct log_writer *w)
{
	return w->gaps;
}

size_t log_writer_pending(const struct log_writer *w)
{
	return w->next.bytes.len + w->work.bytes.len;
}

uint64_t log_writer_size(const struct log_writer *w)
{
	return w->state == WAITING || w->state == OPENING ? 0 : w->lines.size;
}

static void known_done(void *data)
{
	struct log_writer *w = data;
	struct spec_logline_known known = w->known;

	w->state = READY;
	w->known = (struct spec_logline_known){0};
	output_log_leave(w->feeder.log);
	if (w->closed)
		writer_end(w);
	else
		w->events.known(w->events.data, w->err, &known);
	free(known.bytes);
	free(known.lines);
}

void log_writer_known(struct log_writer *w, size_t least)
{
	const uint64_t size = w->lines.size;

	assert(w->state == READY && log_writer_pending(w) == 0);
	w->known = (struct spec_logline_known){.size = size, .from = size - min_of(size, least)};
	w->state = LOOKING;
	output_log_enter(w->feeder.log);
	loop_work_of_many(w->feeder.loop, known_work, known_done, w);
}

static void synced_done(void *data)
{
	struct log_writer *w = data;

	w->state = READY;
	output_log_leave(w->feeder.log);
	if (w->closed)
		writer_end(w);
	else
		w->events.synced(w->events.data, w->err);
}

void log_writer_sync(struct log_writer *w)
{
	assert(w->state == READY && log_writer_pending(w) == 0);
	w->state = SYNCING;
	output_log_enter(w->feeder.log);
	loop_work_of_many(w->feeder.loop, sync_work, synced_done, w);
}

void log_writer_close(struct log_writer *w)
{
	if (!w)
		return;
	w->closed = true;
	if (w->state == WAITING)
		output_log_when_open(w->feeder.log, NULL, NULL);
	if (w->state == WAITING || w->state == READY || w->state == FAILED)
		writer_end(w);
}
