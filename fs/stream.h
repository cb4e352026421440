/* SPDX-License-Identifier: MIT */
/*
 * Files whose reading blocks: wait, follow and changes. A stream belongs to the I/O thread from its
 * open to its release; the FUSE thread only hands requests over (loop_post keeps their order), so
 * there is no lock. A read is parked until there is something to say; poll() is answered, and
 * pollers are woken when something comes.
 */
#ifndef KXFS_FS_STREAM_H
#define KXFS_FS_STREAM_H

#include "fs/node.h"

struct stream;

/* What a kind of stream does; I/O thread. */
struct stream_class {
	/* Begin: take what is needed. 0 or a negative errno, which every read then gives. */
	int (*start)(struct stream *s);
	/*
	 * Up to SIZE bytes at OFF into BUF (NULL: only say whether there would be any). The count;
	 * 0: the end; -EAGAIN: nothing yet; another negative errno.
	 */
	ssize_t (*read)(struct stream *s, char *buf, size_t size, uint64_t off);
	/* A job has changed, as backend_events.job. Pending reads are served afterwards. */
	void (*job)(struct stream *s, const struct spec_job *old, const struct spec_job *job);
	void (*stop)(struct stream *s);
};

struct stream_read; /* a parked read */

struct stream {
	const struct stream_class *class;
	struct fs *fs;
	char *uid;     /* of the job; "" for changes */
	char *replica; /* its directory; "" for a job's */
	int err;       /* of start */
	struct stream_read *reads;
	struct fuse_pollhandle *poll; /* who wants to be woken; NULL: nobody */
	struct log *log;	      /* follow: the log that is being read */
	char *key;		      /* follow: its key */
	uint64_t base;		      /* follow: where that log began in the stream */
	struct changes *changes;      /* changes: what is still to be read */
	uint64_t pos;		      /* where the next read will be, for poll() */
	struct stream *prev, *next;
};

/* The operations of a node class that is a stream of CLASS. */
void stream_open(struct fs *fs, fuse_req_t req, const struct stream_class *class, const char *uid,
		 const char *replica, struct fuse_file_info *fi);
void stream_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		 struct fuse_file_info *fi);
void stream_poll(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		 struct fuse_pollhandle *ph);
void stream_release(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);

#define STREAM_OPS .read = stream_read, .poll = stream_poll, .release = stream_release

int streams_new(struct fs *fs);
/* After loop_stop, before backend_free. */
void streams_free(struct fs *fs);
/* backend_events, DATA is the struct fs. */
void streams_job_event(void *data, const struct spec_job *old, const struct spec_job *job);
void streams_log_event(void *data, struct log *log);
size_t streams_count(struct fs *fs);

/* The kinds. */
extern const struct stream_class wait_stream; /* stream_job.c */
extern const struct stream_class
	follow_stream; /* stream_job.c; without a replica: the merged log */
extern const struct stream_class changes_stream; /* stream_changes.c */

#endif
