/* SPDX-License-Identifier: MIT */
/* The common code of all streams; see stream.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <utlist.h>

#include "backend/base/loop.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/park.h"
#include "fs/vfs/stream.h"
#include "spec/base/mem.h"

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
	size_t count;	     /* of open streams; atomic */
};

struct streams *streams_new(void)
{
	return new0(struct streams);
}

static void stream_free(struct stream *s)
{
	struct stream_read *r, *next;

	DL_FOREACH_SAFE(s->reads, r, next)
		free(r);
	if (s->poll)
		fuse_pollhandle_destroy(s->poll);
	s->class->stop(s);
	free(s);
}

void streams_free(struct streams *all)
{
	struct stream *s, *next;

	if (!all)
		return;
	DL_FOREACH_SAFE(all->list, s, next)
		stream_free(s);
	free(all);
}

size_t streams_count(struct fs *fs)
{
	return __atomic_load_n(&fs->streams->count, __ATOMIC_RELAXED);
}

/* --- I/O thread --- */

/* True if kxfs could now answer a read that continues the last one. */
static bool stream_is_ready(struct stream *s)
{
	ssize_t n = s->class->read(s, NULL, 1, s->pos);

	return n != -EAGAIN && n != -EINPROGRESS;
}

static void stream_serve(struct stream *s)
{
	struct stream_read *r, *next;

	DL_FOREACH_SAFE(s->reads, r, next) {
		const char *bytes = NULL;
		fuse_req_t req;
		ssize_t n = s->class->read(s, NULL, r->size, r->off);

		if (n == -EINPROGRESS || (n == -EAGAIN && !r->nonblock))
			return;
		DL_DELETE(s->reads, r);
		/* Claim before taking bytes, so that an interrupted read loses none. */
		req = park_claim(s->fs->park, r->ticket);
		if (req && n > 0)
			n = s->class->read(s, &bytes, r->size, r->off);
		if (req && n < 0)
			fuse_reply_err(req, (int)-n);
		else if (req && fuse_reply_buf(req, bytes, (size_t)n) == 0)
			s->pos = r->off + (size_t)n;
		free(r);
	}
}

void stream_wake(struct stream *s)
{
	stream_serve(s);
	if (s->poll && stream_is_ready(s)) {
		fuse_lowlevel_notify_poll(s->poll);
		fuse_pollhandle_destroy(take_ptr(s->poll));
	}
}

void streams_visit(struct fs *fs, void (*fn)(struct stream *s, void *data), void *data)
{
	struct stream *s;

	DL_FOREACH(fs->streams->list, s)
		fn(s, data);
}

static void stream_on_open(void *data)
{
	struct stream *s = data;

	DL_APPEND(s->fs->streams->list, s);
	if (s->class->start)
		s->class->start(s);
}

void stream_hold(struct stream *s)
{
	s->held++;
}

static void stream_end(struct stream *s)
{
	if (!s->closed || s->held > 0)
		return;
	DL_DELETE(s->fs->streams->list, s);
	stream_free(s);
}

void stream_unhold(struct stream *s)
{
	s->held--;
	if (!s->closed)
		stream_wake(s);
	stream_end(s);
}

static void stream_on_close(void *data)
{
	struct stream *s = data;

	s->closed = true;
	__atomic_sub_fetch(&s->fs->streams->count, 1, __ATOMIC_RELAXED);
	stream_end(s);
}

static void stream_on_read(void *data)
{
	struct stream_read *r = data;
	struct stream_read *old, *next;

	/* Remove reads that were answered with EINTR, so that they can't accumulate. */
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
	bool ready = stream_is_ready(s);

	if (p->ph) {
		if (s->poll)
			fuse_pollhandle_destroy(s->poll);
		s->poll = p->ph;
	}
	fuse_reply_poll(p->req, ready ? POLLIN | POLLRDNORM : 0);
	free(p);
}

/* --- FUSE thread --- */

struct stream *stream_new(struct fs *fs, const struct stream_class *class)
{
	struct stream *s = mem_zero(class->size);

	s->class = class;
	s->fs = fs;
	return s;
}

void stream_open(struct stream *s, fuse_req_t req, struct fuse_file_info *fi)
{
	struct loop *loop = s->fs->loop;

	__atomic_add_fetch(&s->fs->streams->count, 1, __ATOMIC_RELAXED);
	loop_post(loop, stream_on_open, s);
	fi->fh = (uintptr_t)s;
	if (handle_reply_open(req, fi, false) == -ENOENT)
		loop_post(loop, stream_on_close, s);
}

void stream_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		 struct fuse_file_info *fi)
{
	struct stream_read *r = new0(struct stream_read);

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
	struct stream_poll *p = new0(struct stream_poll);

	p->s = handle_of(fi);
	p->req = req;
	p->ph = ph;
	loop_post(fs->loop, stream_on_poll, p);
}

void stream_release(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	loop_post(fs->loop, stream_on_close, handle_of(fi));
	fuse_reply_err(req, 0);
}
