/* SPDX-License-Identifier: MIT */
/*
 * Files whose reading blocks. A stream belongs to the I/O thread from its open to its release; the
 * FUSE thread only passes requests on (loop_post keeps their order), so there is no lock. A read is
 * parked until the stream's class has bytes for it. poll() is answered immediately, and kxfs wakes
 * the poller when bytes arrive.
 */
#pragma once

#include "fs/vfs/node.h"

struct stream;

/* The operations of a kind of stream; I/O thread. */
struct stream_class {
	size_t size; /* size of the structure that begins with struct stream */
	/* Start. Return 0 or a negative errno, which every read then returns. May be absent. */
	int (*start)(struct stream *s);
	/*
	 * Return the number of available bytes at OFF, up to SIZE, and their address in *RET (which
	 * may be NULL), valid until the next call of a function of S. Return 0 at the end; -EAGAIN
	 * if no byte is available yet; -EINPROGRESS if the class is still finding out, and holds S
	 * meanwhile (stream_hold); or another negative errno.
	 */
	ssize_t (*read)(struct stream *s, const char **ret, size_t size, uint64_t off);
	/* Free the members beyond struct stream. */
	void (*stop)(struct stream *s);
};

struct stream_read; /* a parked read */

struct stream {
	const struct stream_class *class;
	struct fs *fs;
	int err;       /* the result of start */
	unsigned held; /* S is kept until this is 0, also after it was closed */
	bool closed;
	struct stream_read *reads;
	struct fuse_pollhandle *poll; /* the poller to wake, or NULL */
	uint64_t pos;		      /* where the next read is expected, for poll() */
	struct stream *prev, *next;
};

/* Make a stream of CLASS, which the caller fills and passes to stream_open. FUSE thread. */
struct stream *stream_new(struct fs *fs, const struct stream_class *class);
/* Answer the open REQ with S. FUSE thread. */
void stream_open(struct stream *s, fuse_req_t req, struct fuse_file_info *fi);

/* Call FN for each open stream; FN must not close any. I/O thread. */
void streams_visit(struct fs *fs, void (*fn)(struct stream *s, void *data), void *data);
/* Serve the waiting reads, since there may be more to read. I/O thread. */
void stream_wake(struct stream *s);
/* Keep S until stream_unhold, which also serves the waiting reads. I/O thread. */
void stream_hold(struct stream *s);
void stream_unhold(struct stream *s);

/* The operations of a node class whose open calls stream_open. */
void stream_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		 struct fuse_file_info *fi);
void stream_poll(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		 struct fuse_pollhandle *ph);
void stream_release(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);

#define STREAM_OPS .read = stream_read, .poll = stream_poll, .release = stream_release

struct streams *streams_new(void);
/* Also free every remaining stream. Call this after loop_stop. NULL is allowed. */
void streams_free(struct streams *all);
/* Return the number of open streams. Any thread. */
size_t streams_count(struct fs *fs);
