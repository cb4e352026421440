/* SPDX-License-Identifier: MIT */
/*
 * The threads that serve a session, usually only one. "The FUSE thread" is the thread that holds
 * the session lock. Only this thread may handle a request and use what belongs to the FUSE thread.
 * A handler releases the lock while it waits for a disk, or makes a text of unbounded length:
 *
 *	err = serve_disk_begin(fs);
 *	if (!err) {
 *		err = ...;	// no session lock: use only data that no other thread writes
 *		(void)serve_disk_end(fs);
 *	}
 *
 * serve_disk_begin also parks the request. If the disk takes long, another thread serves the next
 * requests. Meanwhile an interrupt, the deadline or the end of the mount may answer the parked
 * request. The handler's own answer then fails with -ENOENT. The node and the open file of the
 * request remain until the handler has returned.
 */
#pragma once

#include "fs/vfs/fs.h"

struct serve;

struct serve *serve_new(struct fs *fs);
void serve_free(struct serve *s); /* after serve_finish; NULL is allowed */

/* Serve SE until it ends. Some handlers may then still wait for a disk (serve_finish). */
int serve_run(struct serve *s, struct fuse_session *se);
/* Wait until all handlers have returned. */
void serve_finish(struct serve *s);
/*
 * Make the serving threads check if the session must end. Call this repeatedly until serve_run has
 * returned. This sends SIGUSR1, which must have a handler without SA_RESTART. Any thread.
 */
void serve_wake(struct serve *s);

/*
 * Call these before and after an access that may wait for a disk. The handler must not have
 * answered its request yet. serve_disk_begin returns 0, or -ETIMEDOUT if too many requests already
 * wait for a disk. serve_disk_end returns 0, or -EINTR if the request was answered meanwhile. After
 * -EINTR, the handler of a write must change no bytes, but the handler of a close continues. On
 * threads that do not serve requests, both functions do nothing.
 */
int serve_disk_begin(struct fs *fs);
int serve_disk_end(struct fs *fs);

void serve_begin_request(fuse_req_t req);
/* Return a buffer of this serving thread, valid until the thread's next call. */
char *serve_buffer(size_t size);
