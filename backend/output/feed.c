/* SPDX-License-Identifier: MIT */
/* Chunks of a log, read from disk: see feed.h. */
#include "backend/output/feed.h"

#include <errno.h>
#include <fcntl.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/output/folder.h"
#include "spec/base/mem.h"

#define FEED_BUFFER (256u << 10)
#define FEED_MAX    (4u << 20) /* bytes read in one run */

/* The state of one run of a feed. */
struct feed_run {
	struct feed *f;
	int fd, lines_fd; /* LINES_FD: -1 without a table */
	struct cutter cutter;
	struct lines_reader lines;
	struct lines_record next; /* the first record after the cutter's position, if HAS_NEXT */
	bool has_next;
	int64_t ns;
};

static int64_t time_of(const struct lines_record *r)
{
	return r->line.ns ? r->line.ns : CHUNK_UNTIMED;
}

/* Set the start of the chunks, and the time of the line there. */
static void run_begin(struct feed_run *r)
{
	struct feed *f = r->f;
	struct lines_record now;
	char last = '\n';

	r->ns = CHUNK_UNTIMED;
	lines_open(&r->lines, r->lines_fd);
	if (r->lines_fd >= 0 && lines_find(&r->lines, 0, f->from, &now) == 0) {
		r->ns = time_of(&now);
		r->has_next = lines_next(&r->lines, &r->next) == 0;
	}
	if (f->from > 0 && disk_pread(r->fd, &last, 1, f->from - 1) < 1)
		last = '\n';
	cutter_begin(&r->cutter, f->from, last != '\n', r->ns);
}

/* Cut the next N bytes, at BUF, which may have lines of several times. */
static void run_cut(struct feed_run *r, const char *buf, size_t n)
{
	while (n > 0) {
		uint64_t at = r->cutter.at;
		size_t part = n;

		if (r->has_next && r->next.line.at <= at) {
			r->ns = time_of(&r->next);
			r->has_next = lines_next(&r->lines, &r->next) == 0;
			continue;
		}
		if (r->has_next && r->next.line.at - at < n)
			part = (size_t)(r->next.line.at - at);
		cutter_add(&r->cutter, r->ns, buf, part, &r->f->chunks);
		buf += part;
		n -= part;
	}
}

static int run_read(struct feed_run *r)
{
	struct feed *f = r->f;
	size_t most = (size_t)min_of(f->size - f->from, (uint64_t)FEED_BUFFER);
	cleanup_free char *buf = mem_grow(NULL, most + 1, 1);

	while (f->seen < f->size && f->seen - f->from < FEED_MAX) {
		size_t at = (f->seen - f->from) % FEED_BUFFER;
		size_t want = (size_t)min_of(f->size - f->seen, (uint64_t)(FEED_BUFFER - at));
		ssize_t n = file_read_at(r->fd, buf + at, want, f->seen);

		if (n < 0)
			return (int)n;
		if (n == 0)
			f->size = f->seen; /* the log was truncated */
		if (n > 0)
			run_cut(r, buf + at, (size_t)n);
		f->seen += (size_t)n;
	}
	if (f->seen - f->from <= FEED_BUFFER)
		f->bytes = take_ptr(buf);
	return 0;
}

int feed_run(struct feed *f)
{
	cleanup_fd int fd = folder_open(f->dir_fd, f->id, "logs", f->key, O_RDONLY);
	cleanup_fd int lines_fd = -1;
	struct feed_run r = {.f = f, .fd = fd, .lines_fd = -1};
	struct stat st;
	int err;

	f->seen = f->size = f->from;
	if (fd < 0)
		/* The log was removed: there is no more of it. */
		return fd == -ENOENT ? 0 : fd;
	err = disk_stat(fd, "", &st);
	if (err < 0)
		return err;
	if (f->timed)
		lines_fd = folder_open(f->dir_fd, f->id, "lines", f->key, O_RDONLY);
	r.lines_fd = lines_fd;
	f->size = max_of(min_of((uint64_t)st.st_size, f->limit), f->from);
	run_begin(&r);
	err = run_read(&r);
	if (err == 0 && f->seen == f->size) {
		cutter_pause(&r.cutter, &f->chunks);
		if (f->final)
			cutter_end(&r.cutter, &f->chunks);
	}
	return err;
}
