/* SPDX-License-Identifier: MIT */
/*
 * The threads that serve a session. The thread that holds the session lock handles a request, and
 * owns everything that belongs to the FUSE thread. So "the FUSE thread" means the thread that holds
 * the session lock. As long as no disk hangs there is one such thread and the lock costs nothing. A
 * handler that has to wait for a disk, or to make a text of unbounded length, releases it:
 *
 *	err = serve_disk_begin(fs);
 *	if (!err) {
 *		err = ...;		// without the session lock: touch only what no other thread writes
 *		serve_disk_end(fs);
 *	}
 *
 * If the call takes long, another thread continues to serve, and the request is parked: an
 * interrupt, its deadline or the end of the mount answers it, and the later answer of its handler
 * is dropped (-ENOENT, as for any request that was already answered). Its node and its open file
 * remain until the handler has returned.
 */
#pragma once

#include "fs/vfs/fs.h"

struct serve;

struct serve *serve_new(struct fs *fs);
void serve_free(struct serve *s); /* Call this after serve_finish; NULL is allowed. */

/*
 * Serve SE until it is over; return 0 or a negative errno. Requests that wait for a disk may still
 * be in progress then; serve_finish waits for them.
 */
int serve_run(struct serve *s, struct fuse_session *se);
void serve_finish(struct serve *s);
/*
 * Make the threads check, by SIGUSR1, if the session is over. The caller repeats this until
 * serve_run returns. Any thread.
 */
void serve_wake(struct serve *s);

/*
 * Enclose a call that may wait for a disk, in a handler that has not answered yet. serve_disk_begin
 * returns -ETIMEDOUT if too many requests wait for a disk already. Both do nothing on other
 * threads.
 */
int serve_disk_begin(struct fs *fs);
void serve_disk_end(struct fs *fs);

/* Record that this thread handles REQ. */
void serve_begin_request(fuse_req_t req);
/* Return a buffer of SIZE bytes of this serving thread, valid until its next call. */
char *serve_buffer(size_t size);
