/* SPDX-License-Identifier: MIT */
/*
 * Files whose reading blocks. A stream belongs to the I/O thread from its open to its release; the FUSE thread only
 * hands requests over (loop_post keeps their order), so there is no lock. A read is parked until the stream's class
 * has something to say; poll() is answered, and pollers are woken when something comes.
 */
#pragma once

#include "fs/vfs/node.h"

struct stream;

/* What a kind of stream does; I/O thread. */
struct stream_class {
	size_t size; /* of the structure that begins with struct stream */
	/* Begin. 0 or a negative errno, which every read then gives. Absent: nothing is to be done. */
	int (*start)(struct stream *s);
	/*
	 * Up to SIZE bytes at OFF: the count, and in *RET where they are, until the next call of a function of S
	 * (RET is NULL: only say whether there would be any). 0: the end; -EAGAIN: nothing yet; -EINPROGRESS: it is
	 * being found out, and S is held meanwhile; another negative errno.
	 */
	ssize_t (*read)(struct stream *s, const char **ret, size_t size, uint64_t off);
	/* Release what the structure holds beyond struct stream. */
	void (*stop)(struct stream *s);
};

struct stream_read; /* a parked read */

struct stream {
	const struct stream_class *class;
	struct fs *fs;
	int err;       /* of start */
	unsigned held; /* it stays until this is 0, also when it is closed */
	bool closed;
	struct stream_read *reads;
	struct fuse_pollhandle *poll; /* who wants to be woken; NULL: nobody */
	uint64_t pos;		      /* where the next read will be, for poll() */
	struct stream *prev, *next;
};

/* A stream of CLASS, which the caller fills and gives to stream_open. FUSE thread. */
struct stream *stream_new(struct fs *fs, const struct stream_class *class);
/* Answer the open REQ with S. FUSE thread. */
void stream_open(struct stream *s, fuse_req_t req, struct fuse_file_info *fi);

/* Call FN for each that is open; FN may not close any. I/O thread. */
void streams_visit(struct fs *fs, void (*fn)(struct stream *s, void *data), void *data);
/* There may be more to read: serve who waits. I/O thread. */
void stream_wake(struct stream *s);
/* Something is done for S, which stays until then; afterwards who waits is served. I/O thread. */
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
/* And every stream that is left; after loop_stop. NULL is allowed. */
void streams_free(struct streams *all);
/* How many are open. Any thread. */
size_t streams_count(struct fs *fs);
