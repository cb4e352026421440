/* SPDX-License-Identifier: MIT */
/*
 * A stream is an open file whose reading blocks: a read is parked until the stream's class has
 * bytes. The I/O thread owns a stream from the open to the release. The FUSE thread only posts
 * requests, in order (loop_post), so a stream has no lock. kxfs answers poll() immediately. If
 * there are no bytes at that time, kxfs wakes the poller when bytes arrive.
 */
#pragma once

#include "fs/vfs/node.h"

struct stream;

/* The operations of one kind of stream. I/O thread. */
struct stream_class {
	size_t size; /* of the struct that begins with struct stream */
	/* called first; may be NULL */
	void (*start)(struct stream *s);
	/*
	 * Return how many bytes are available at OFF, at most SIZE; 0 at the end of the file. If
	 * RET is not NULL, set *RET to their address, which is valid until the next call for S. On
	 * failure return a negative errno. Return -EAGAIN if no byte is available yet. Return
	 * -EINPROGRESS if the class is still finding out whether bytes are available. Meanwhile
	 * the class holds S (stream_hold).
	 */
	ssize_t (*read)(struct stream *s, const char **ret, size_t size, uint64_t off);
	/* Free the members after struct stream, but not S itself. Must not be NULL. */
	void (*stop)(struct stream *s);
};

struct stream_read;

struct stream {
	const struct stream_class *class;
	struct fs *fs;
	unsigned held; /* stream_hold calls minus stream_unhold calls; S is freed only at 0 */
	bool closed;
	struct stream_read *reads;
	struct fuse_pollhandle *poll;
	/* the end of the last read; poll() checks for bytes from here on */
	uint64_t pos;
	struct stream *prev, *next;
};

/*
 * Allocate the struct of CLASS, which begins with a struct stream. The caller sets the other
 * members, then calls stream_open. FUSE thread.
 */
struct stream *stream_new(struct fs *fs, const struct stream_class *class);
/* Answer the open request REQ. Later reads of this open file read from S. FUSE thread. */
void stream_open(struct stream *s, fuse_req_t req, struct fuse_file_info *fi);

/* Call FN for each stream; FN must not close any. I/O thread. */
void streams_visit(struct fs *fs, void (*fn)(struct stream *s, void *data), void *data);
/* S may have more bytes: answer waiting reads, and wake the poller. I/O thread. */
void stream_wake(struct stream *s);
/* Don't free S until stream_unhold, which also calls stream_wake. I/O thread. */
void stream_hold(struct stream *s);
void stream_unhold(struct stream *s);

/* The operations `read` and `poll` of a node class whose `open` calls stream_open. */
void stream_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		 struct fuse_file_info *fi);
void stream_poll(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		 struct fuse_pollhandle *ph);
void stream_release(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);

#define STREAM_OPS .read = stream_read, .poll = stream_poll, .release = stream_release

struct streams *streams_new(void);
/* Also frees the streams in ALL. Call this after loop_stop. NULL is allowed. */
void streams_free(struct streams *all);
/* Any thread. */
size_t streams_count(struct fs *fs);
