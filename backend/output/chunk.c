/* SPDX-License-Identifier: MIT */
/* Makes chunks from a log's bytes; see chunk.h. */
#include "backend/output/chunk.h"

#include <errno.h>
#include <fcntl.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/output/folder.h"
#include "backend/output/lines.h"
#include "spec/base/mem.h"

/* If more than BEHIND_BYTES of a log wait, join chunks that are less than BEHIND_NS apart. */
#define BEHIND_BYTES (256u << 10)
#define BEHIND_NS    1000000u

bool chunk_join(struct chunk *a, const struct chunk *b)
{
	if (a->from + a->length != b->from || a->length + b->length > CHUNK_MAX)
		return false;
	a->starts += b->starts;
	if (a->flags & CHUNK_ENDS || (a->flags & CHUNK_CR && !(b->flags & CHUNK_NEWLINE)))
		a->starts++;
	a->length += b->length;
	a->lines += b->lines;
	a->flags = (a->flags & CHUNK_NEWLINE) | (b->flags & ~CHUNK_NEWLINE);
	return true;
}

bool chunk_is_near(const struct chunk *a, const struct chunk *b, uint64_t bytes)
{
	if (a->ns == b->ns)
		return true;
	return bytes > BEHIND_BYTES && b->ns > a->ns &&
	       (uint64_t)b->ns - (uint64_t)a->ns < BEHIND_NS;
}

void chunks_add(struct chunks *all, const struct chunk *p)
{
	struct chunk *last = all->n > 0 ? &all->v[all->n - 1] : NULL;

	all->bytes += p->length;
	if (last && chunk_is_near(last, p, all->bytes) && chunk_join(last, p))
		return;
	if (all->n == all->room) {
		all->room = max_of(2 * all->room, (size_t)1);
		all->v = mem_grow(all->v, all->room, sizeof(*all->v));
	}
	all->v[all->n++] = *p;
}

void chunks_clear(struct chunks *all)
{
	free(all->v);
	*all = (struct chunks){0};
}

void cutter_begin(struct cutter *c, uint64_t at, bool midline, int64_t ns)
{
	*c = (struct cutter){.at = at, .midline = midline, .ns = ns};
}

static void cutter_give(struct cutter *c, uint32_t flags, struct chunks *ret)
{
	struct chunk p = c->open;

	p.flags |= flags;
	c->open.length = c->bar.length = 0;
	chunks_add(ret, &p);
}

void cutter_pause(struct cutter *c, struct chunks *ret)
{
	struct chunk bar = c->bar;

	if (bar.length == 0)
		return;
	/*
	 * BAR becomes a chunk, and OPEN keeps the bytes that follow BAR. Subtract the prefixes
	 * within BAR from OPEN's STARTS. Also subtract the prefix before OPEN's new first byte:
	 * STARTS never counts that prefix, and chunk_join adds it.
	 */
	c->open.starts -= bar.starts + 1;
	c->open.from += bar.length;
	c->open.length -= bar.length;
	c->open.flags = 0;
	c->bar.length = 0;
	chunks_add(ret, &bar);
}

void cutter_end(struct cutter *c, struct chunks *ret)
{
	if (c->open.length > 0)
		cutter_give(c, c->cr ? CHUNK_CR : 0, ret);
}

/* Make a chunk from OPEN, which is full. Leave a last '\r' in OPEN, because '\n' may follow. */
static void cutter_give_part(struct cutter *c, struct chunks *ret)
{
	struct chunk cr = {.from = c->at - 1, .ns = c->ns, .length = 1};

	if (!c->cr) {
		cutter_give(c, 0, ret);
		return;
	}
	if (c->bar.length + 1 == c->open.length) {
		cutter_pause(c, ret);
		return;
	}
	c->open.length--;
	cutter_give(c, 0, ret);
	c->open = cr;
}

/* Set BAR to the first LENGTH bytes of OPEN. They end with a '\r' that no '\n' follows. */
static void cutter_note_bar(struct cutter *c, uint32_t length)
{
	c->bar = c->open;
	c->bar.length = length;
	c->bar.flags |= CHUNK_CR;
	c->open.starts++;
}

/* Add N bytes of one line to OPEN, which has space for them. Only the last byte may be '\n'. */
static void cutter_take(struct cutter *c, const char *bytes, size_t n)
{
	uint32_t before = c->open.length;

	if (before == 0)
		c->open = (struct chunk){.from = c->at,
					 .ns = c->ns,
					 .flags = *bytes == '\n' ? CHUNK_NEWLINE : 0};
	else if (c->cr && *bytes != '\n')
		cutter_note_bar(c, before);
	for (const char *cr = bytes; (cr = memchr(cr, '\r', (size_t)(bytes + n - cr)));) {
		cr++;
		if (cr == bytes + n)
			break;
		if (*cr != '\n')
			cutter_note_bar(c, before + (uint32_t)(cr - bytes));
	}
	c->open.length += (uint32_t)n;
	c->at += n;
	c->cr = bytes[n - 1] == '\r';
}

void cutter_add_line(struct cutter *c, int64_t ns, const char *bytes, size_t n, bool whole,
		     struct chunks *ret)
{
	if (!c->midline)
		c->ns = ns;
	c->midline = !whole;
	while (n > 0) {
		size_t take = min_of(n, (size_t)(CHUNK_MAX - c->open.length));

		cutter_take(c, bytes, take);
		bytes += take;
		n -= take;
		if (whole && n == 0) {
			c->open.lines = 1;
			cutter_give(c, CHUNK_ENDS, ret);
		} else if (c->open.length == CHUNK_MAX) {
			cutter_give_part(c, ret);
		}
	}
}

void cutter_add(struct cutter *c, int64_t ns, const char *bytes, size_t n, struct chunks *ret)
{
	while (n > 0) {
		const char *nl = memchr(bytes, '\n', n);
		size_t take = nl ? (size_t)(nl - bytes) + 1 : n;

		cutter_add_line(c, ns, bytes, take, nl, ret);
		bytes += take;
		n -= take;
	}
}

/* --- reading chunks from the disk --- */

#define FEED_BUFFER (256u << 10)
#define FEED_MAX    (4u << 20) /* bytes that one run reads at most */

struct feed_run {
	struct feed *f;
	int fd, lines_fd; /* LINES_FD is -1 if there is no table */
	struct cutter cutter;
	struct lines_reader lines;
	struct lines_record next; /* first record after the cutter's position */
	bool has_next;
	int64_t ns;
};

static int64_t time_of(const struct lines_record *r)
{
	return r->line.ns ? r->line.ns : CHUNK_UNTIMED;
}

/* Start the cutter with the time of the line that contains the feed's first byte. */
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

/* Pass the next N bytes of the log to the cutter, with the times of their lines. */
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
		size_t want = (size_t)min_of(f->size - f->seen, (uint64_t)FEED_BUFFER);
		ssize_t n = file_read_at(r->fd, buf, want, f->seen);

		if (n < 0)
			return (int)n;
		if (n == 0)
			f->size = f->seen; /* the log was truncated */
		if (n > 0)
			run_cut(r, buf, (size_t)n);
		f->seen += (size_t)n;
	}
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
		return fd == -ENOENT ? 0 : fd; /* the log was removed */
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
