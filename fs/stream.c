/* SPDX-License-Identifier: MIT */
/*
 * What all blocking files share: handing requests from the FUSE thread to the I/O thread, keeping
 * the reads that wait, serving them when something happened, and poll().
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <utlist.h>

#include "fs/handle.h"
#include "fs/park.h"
#include "fs/stream.h"

/* A read that asks for more gets no more than this at once. */
#define STREAM_MAX_READ (1u << 20)

struct stream_read {
	struct stream *s;
	uint64_t ticket;
	size_t size;
	uint64_t off;
	bool nonblock;
	struct stream_read *prev, *next;
};

struct streams {
	struct stream *list; /* I/O thread */
	size_t count;	     /* atomic */
	char *buf;	     /* STREAM_MAX_READ bytes; I/O thread */
};

int streams_new(struct fs *fs)
{
	struct streams *all = calloc(1, sizeof(*all));

	if (all)
		all->buf = malloc(STREAM_MAX_READ);
	if (!all || !all->buf) {
		free(all);
		return -ENOMEM;
	}
	fs->streams = all;
	return 0;
}

static void stream_free(struct stream *s)
{
	struct stream_read *r, *next;

	DL_FOREACH_SAFE(s->reads, r, next)
		free(r);
	if (s->poll)
		fuse_pollhandle_destroy(s->poll);
	s->class->stop(s);
	free(s->uid);
	free(s->replica);
	free(s);
}

void streams_free(struct fs *fs)
{
	struct stream *s, *next;

	if (!fs->streams)
		return;
	DL_FOREACH_SAFE(fs->streams->list, s, next)
		stream_free(s);
	free(fs->streams->buf);
	free(take_ptr(fs->streams));
}

size_t streams_count(struct fs *fs)
{
	return __atomic_load_n(&fs->streams->count, __ATOMIC_RELAXED);
}

/* --- I/O thread --- */

static ssize_t stream_fill(struct stream *s, char *buf, size_t size, uint64_t off)
{
	return s->err ? s->err : s->class->read(s, buf, size, off);
}

/* Answer the reads that wait, in their order, as far as there is something to say. */
static void stream_serve(struct stream *s)
{
	struct streams *all = s->fs->streams;
	struct stream_read *r, *next;

	DL_FOREACH_SAFE(s->reads, r, next) {
		fuse_req_t req;
		ssize_t n = stream_fill(s, NULL, r->size, r->off);

		if (n == -EAGAIN && !r->nonblock)
			return;
		DL_DELETE(s->reads, r);
		/* Claimed before the bytes are taken: an interrupted read must not swallow any. */
		req = park_claim(s->fs->park, r->ticket);
		if (req && n > 0)
			n = stream_fill(s, all->buf, min_of(r->size, (size_t)STREAM_MAX_READ),
					r->off);
		if (req && n < 0)
			fuse_reply_err(req, (int)-n);
		else if (req && fuse_reply_buf(req, all->buf, (size_t)n) == 0)
			s->pos = r->off + (size_t)n;
		free(r);
	}
}

static void stream_wake(struct stream *s)
{
	stream_serve(s);
	if (s->poll && stream_fill(s, NULL, 1, s->pos) != -EAGAIN) {
		fuse_lowlevel_notify_poll(s->poll);
		fuse_pollhandle_destroy(take_ptr(s->poll));
	}
}

void streams_job_event(void *data, const struct spec_job *old, const struct spec_job *job)
{
	struct fs *fs = data;
	const char *uid = job ? job->uid : old->uid;
	struct stream *s, *next;

	DL_FOREACH_SAFE(fs->streams->list, s, next) {
		if (*s->uid && !streq(s->uid, uid))
			continue;
		if (s->class->job)
			s->class->job(s, old, job);
		stream_wake(s);
	}
}

void streams_log_event(void *data, struct log *log)
{
	struct fs *fs = data;
	struct stream *s, *next;

	DL_FOREACH_SAFE(fs->streams->list, s, next) {
		if (s->log == log)
			stream_wake(s);
	}
}

static void stream_on_open(void *data)
{
	struct stream *s = data;

	DL_APPEND(s->fs->streams->list, s);
	s->err = s->class->start(s);
}

static void stream_on_close(void *data)
{
	struct stream *s = data;

	DL_DELETE(s->fs->streams->list, s);
	__atomic_sub_fetch(&s->fs->streams->count, 1, __ATOMIC_RELAXED);
	stream_free(s);
}

static void stream_on_read(void *data)
{
	struct stream_read *r = data;
	struct stream_read *old, *next;

	/* Reads that were interrupted are forgotten here, so they can't pile up. */
	DL_FOREACH_SAFE(r->s->reads, old, next) {
		if (park_waits(r->s->fs->park, old->ticket))
			continue;
		DL_DELETE(r->s->reads, old);
		free(old);
	}
	DL_APPEND(r->s->reads, r);
	stream_serve(r->s);
}

struct stream_poll {
	struct stream *s;
	fuse_req_t req;
	struct fuse_pollhandle *ph;
};

static void stream_on_poll(void *data)
{
	struct stream_poll *p = data;
	struct stream *s = p->s;
	bool ready = stream_fill(s, NULL, 1, s->pos) != -EAGAIN;

	if (p->ph) {
		if (s->poll)
			fuse_pollhandle_destroy(s->poll);
		s->poll = p->ph;
	}
	fuse_reply_poll(p->req, ready ? POLLIN | POLLRDNORM : 0);
	free(p);
}

/* --- FUSE thread --- */

void stream_open(struct fs *fs, fuse_req_t req, const struct stream_class *class, const char *uid,
		 const char *replica, struct fuse_file_info *fi)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s) {
		s->class = class;
		s->fs = fs;
		s->uid = strdup(uid);
		s->replica = strdup(replica);
	}
	if (!s || !s->uid || !s->replica) {
		if (s) {
			free(s->uid);
			free(s->replica);
		}
		free(s);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	__atomic_add_fetch(&fs->streams->count, 1, __ATOMIC_RELAXED);
	loop_post(fs->loop, stream_on_open, s);
	fi->fh = (uintptr_t)s;
	fi->direct_io = 1;
	fi->nonseekable = 1;
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) == -ENOENT)
		loop_post(fs->loop, stream_on_close, s);
}

void stream_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		 struct fuse_file_info *fi)
{
	struct stream_read *r = calloc(1, sizeof(*r));

	(void)node;
	if (!r) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	r->s = handle_of(fi);
	r->size = size;
	r->off = (uint64_t)off;
	r->nonblock = fi->flags & O_NONBLOCK;
	r->ticket = park_add(fs->park, req, PARK_READ, 0);
	if (r->ticket)
		loop_post(fs->loop, stream_on_read, r);
	else
		free(r);
}

void stream_poll(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		 struct fuse_pollhandle *ph)
{
	struct stream_poll *p = calloc(1, sizeof(*p));

	(void)node;
	if (!p) {
		if (ph)
			fuse_pollhandle_destroy(ph);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	p->s = handle_of(fi);
	p->req = req;
	p->ph = ph;
	loop_post(fs->loop, stream_on_poll, p);
}

void stream_release(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	(void)node;
	loop_post(fs->loop, stream_on_close, handle_of(fi));
	fuse_reply_err(req, 0);
}
