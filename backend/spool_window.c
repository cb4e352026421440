/* SPDX-License-Identifier: MIT */
/*
 * Bytes and times of logs for the merged index. Logs whose lines wait for their turn take turns line by
 * line, so their files stay open for a while: at most WINDOWS of them, the one used longest ago goes first.
 * What can't be opened or read has no time: order is lost then, never a line.
 */
#include <errno.h>
#include <fcntl.h>

#include "backend/spool_impl.h"
#include "backend/times.h"

#define WINDOWS	     64
#define WINDOW_TIMES 64

struct spool_window {
	struct spool_source *s; /* NULL: free */
	int fd;
	int times_fd; /* -1: no times */
	uint64_t used;
	uint64_t first; /* the number of times[0] */
	size_t n;
	struct times_record times[WINDOW_TIMES];
};

struct spool_window *spool_windows_new(void)
{
	return calloc(WINDOWS, sizeof(struct spool_window));
}

static void window_close(struct spool_window *w)
{
	if (!w->s)
		return;
	close(w->fd);
	if (w->times_fd >= 0)
		close(w->times_fd);
	take_ptr(w->s)->window = NULL;
}

void spool_window_drop(struct spool_source *s)
{
	if (s->window)
		window_close(s->window);
}

static int window_file(struct spool_source *s, const char *folder)
{
	return spool_open(s->job->spool, s->job->id, folder, s->key);
}

/* 0 or a negative errno. */
static int window_open(struct spool_source *s)
{
	struct spool *spool = s->job->spool;
	struct spool_window *w = s->window ? s->window : spool->windows;
	int fd;

	for (size_t i = 1; !s->window && w->s && i < WINDOWS; i++)
		if (!spool->windows[i].s || spool->windows[i].used < w->used)
			w = &spool->windows[i];
	w->used = ++spool->turns;
	if (s->window)
		return 0;
	fd = window_file(s, "logs");
	if (fd < 0)
		return fd;
	window_close(w);
	w->s = s;
	w->fd = fd;
	w->times_fd = window_file(s, SPOOL_TIMES);
	w->n = 0;
	s->window = w;
	return 0;
}

/* Record number I of the window of S; NULL: there is none. */
static const struct times_record *window_record(struct spool_source *s, uint64_t i)
{
	struct spool_window *w = s->window;
	ssize_t n;

	if (i < w->first || i >= w->first + w->n) {
		n = times_read(w->times_fd, i, w->times, WINDOW_TIMES);
		w->first = i;
		w->n = n > 0 ? (size_t)n : 0;
	}
	return w->n > 0 ? &w->times[i - w->first] : NULL;
}

int64_t spool_window_time(struct spool_source *s)
{
	uint64_t at = s->job->keys.v[s->number].indexed;
	const struct times_record *r;

	if (window_open(s) < 0 || s->window->times_fd < 0)
		return SPOOL_UNTIMED;
	/* A few records on, as lines go; or anywhere, when much was taken at once. */
	for (unsigned i = 0; s->record_known && i < WINDOW_TIMES; i++) {
		r = window_record(s, s->record + 1);
		if (!r || r->at > at)
			break;
		s->record++;
		s->record_known = i + 1 < WINDOW_TIMES;
	}
	if (!s->record_known) {
		if (times_find(s->window->times_fd, at, &s->record) < 0)
			return SPOOL_UNTIMED;
		s->record_known = true;
	}
	r = window_record(s, s->record);
	return r ? r->ns : SPOOL_UNTIMED;
}

uint64_t spool_window_until(struct spool_source *s, int64_t until)
{
	uint64_t at = s->job->keys.v[s->number].indexed;
	const struct times_record *r;

	if (until == INT64_MAX || window_open(s) < 0 || s->window->times_fd < 0)
		return s->seen;
	for (uint64_t i = s->record_known ? s->record + 1 : 0; (r = window_record(s, i)); i++) {
		if (r->at >= s->seen)
			break;
		if (r->at > at && (r->ns > until || r->at - at >= SPOOL_BUFFER))
			return r->at;
	}
	return s->seen;
}

ssize_t spool_window_read(struct spool_source *s, size_t n)
{
	int err = window_open(s);
	ssize_t got;

	if (err < 0)
		return err == -ENOENT ? 0 : err;
	got = pread(s->window->fd, s->job->spool->buf, min_of(n, (size_t)SPOOL_BUFFER),
		    (off_t)s->job->keys.v[s->number].indexed);
	return got < 0 ? -errno : got;
}
