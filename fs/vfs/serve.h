/* SPDX-License-Identifier: MIT */
/*
 * The threads that serve a session. "The FUSE thread" is the thread that holds the session lock. It
 * handles a request, and may use everything that belongs to the FUSE thread. Usually there is only
 * one serving thread, and the lock costs nothing. But a handler releases the lock while it waits
 * for a disk, or makes a text of unbounded length:
 *
 *	err = serve_disk_begin(fs);
 *	if (!err) {
 *		err = ...;		// no session lock: use only data that no other thread writes
 *		serve_disk_end(fs);
 *	}
 *
 * serve_disk_begin also parks the request. If the disk access takes long, another thread serves the
 * next requests. Meanwhile an interrupt, the deadline or the end of the mount may answer the parked
 * request. Then the handler's own answer has no effect: it fails with -ENOENT, as for any request
 * that was already answered. The node and the open file of the request remain until the handler has
 * returned.
 */
#pragma once

#include "fs/vfs/fs.h"

struct serve;

struct serve *serve_new(struct fs *fs);
void serve_free(struct serve *s); /* Call this after serve_finish; NULL is allowed. */

/*
 * Serve the session SE until it ends. Return 0 or a negative errno. Some requests may still wait
 * for a disk then: serve_finish waits until their handlers have returned.
 */
int serve_run(struct serve *s, struct fuse_session *se);
void serve_finish(struct serve *s);
/*
 * Interrupt the serving threads with SIGUSR1, so that they check whether the session must end. The
 * caller repeats this until serve_run returns. Any thread.
 */
void serve_wake(struct serve *s);

/*
 * A handler must call serve_disk_begin before an access that may wait for a disk, and
 * serve_disk_end after it. The handler must not have answered its request yet. serve_disk_begin
 * returns 0, or -ETIMEDOUT if too many requests already wait for a disk. On threads that do not
 * serve requests, both functions do nothing.
 */
int serve_disk_begin(struct fs *fs);
void serve_disk_end(struct fs *fs);

/* Record that this thread handles REQ. */
void serve_begin_request(fuse_req_t req);
/*
 * Return a buffer of SIZE bytes. It belongs to the calling thread, which must be a serving thread,
 * and is valid until this thread calls serve_buffer again.
 */
char *serve_buffer(size_t size);
