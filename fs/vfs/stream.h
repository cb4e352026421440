/* SPDX-License-Identifier: MIT */
/*
 * A stream is an open file whose reading blocks. The I/O thread owns a stream from the open to the
 * release. The FUSE thread only posts requests to the I/O thread, in order (loop_post), so a stream
 * has no lock. A read is parked until the stream's class has bytes for it. kxfs answers poll()
 * immediately. If the stream has no bytes at that time, kxfs wakes the poller when bytes arrive.
 */
#pragma once

#include "fs/vfs/node.h"

struct stream;

/* The operations of one kind of stream. I/O thread. */
struct stream_class {
	size_t size; /* size of the structure that begins with struct stream */
	/* Called before all other functions. May be NULL. */
	void (*start)(struct stream *s);
	/*
	 * Return how many bytes are available at OFF, at most SIZE. If RET is not NULL, set *RET to
	 * their address, which is valid until the next call of a function of S. At the end of the
	 * file, return 0. Otherwise return a negative errno: -EAGAIN if no byte is available yet;
	 * -EINPROGRESS if the class does not know yet whether bytes are available. The class then
	 * holds S (stream_hold) until it knows.
	 */
	ssize_t (*read)(struct stream *s, const char **ret, size_t size, uint64_t off);
	/* Free the members after struct stream. */
	void (*stop)(struct stream *s);
};

struct stream_read; /* a parked read */

struct stream {
	const struct stream_class *class;
	struct fs *fs;
	unsigned held; /* calls of stream_hold minus calls of stream_unhold; S is freed only at 0 */
	bool closed;
	struct stream_read *reads;
	struct fuse_pollhandle *poll; /* the poller to wake, or NULL */
	/* the end of the last read; poll() checks for bytes from this offset on */
	uint64_t pos;
	struct stream *prev, *next;
};

/*
 * Make a stream of CLASS. The caller sets the members after struct stream, and calls stream_open.
 * FUSE thread.
 */
struct stream *stream_new(struct fs *fs, const struct stream_class *class);
/* Answer the open request REQ. Its file then reads from S. FUSE thread. */
void stream_open(struct stream *s, fuse_req_t req, struct fuse_file_info *fi);

/* Call FN for each open stream; FN must not close any. I/O thread. */
void streams_visit(struct fs *fs, void (*fn)(struct stream *s, void *data), void *data);
/* Answer the waiting reads of S, and wake its poller: S may have more bytes now. I/O thread. */
void stream_wake(struct stream *s);
/*
 * Prevent S from being freed until stream_unhold, even if S is closed. stream_unhold also calls
 * stream_wake. I/O thread.
 */
void stream_hold(struct stream *s);
void stream_unhold(struct stream *s);

/* Operations for a node class whose `open` calls stream_open. */
void stream_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		 struct fuse_file_info *fi);
void stream_poll(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		 struct fuse_pollhandle *ph);
void stream_release(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);

#define STREAM_OPS .read = stream_read, .poll = stream_poll, .release = stream_release

struct streams *streams_new(void);
/* Free ALL and every stream in it. Call this after loop_stop. NULL is allowed. */
void streams_free(struct streams *all);
/* Return the number of open streams. Any thread. */
size_t streams_count(struct fs *fs);
