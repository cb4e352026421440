/* SPDX-License-Identifier: MIT */
/*
 * The threads that serve a session. One of them at a time has the turn: it handles a request, and all that belongs to
 * the FUSE thread is its own meanwhile, so "the FUSE thread" is whichever has the turn. As long as no disk hangs there
 * is one such thread and the turn costs nothing. Whoever has to wait for a disk says so:
 *
 *	err = serve_disk_begin(fs);
 *	if (!err) {
 *		err = ...;		// the turn is not ours: only what other threads do not write is touched
 *		serve_disk_end(fs);
 *	}
 *
 * If that takes long another thread goes on serving. The request itself is parked meanwhile: an interrupt, its deadline
 * or the end of the mount answer it, and the answer that its handler gives later goes nowhere (-ENOENT, as always when
 * nobody wants an answer any more). Its node and its open file stay until the handler has returned.
 */
#pragma once

#include "fs/vfs/fs.h"

struct serve;

struct serve *serve_new(struct fs *fs);
void serve_free(struct serve *s); /* after serve_finish; NULL is allowed */

/*
 * Serve SE until it is over; 0 or a negative errno. Requests that a disk holds may still be under way then: after
 * serve_finish, which waits for the disk, none is.
 */
int serve_run(struct serve *s, struct fuse_session *se);
void serve_finish(struct serve *s);
/* Have the threads look whether the session is over, by SIGUSR1; repeated until serve_run returns. Any thread. */
void serve_wake(struct serve *s);

/*
 * Around what may wait for a disk, in a handler that has not answered yet. -ETIMEDOUT: so many wait for one already
 * that this must not. In other threads nothing happens.
 */
int serve_disk_begin(struct fs *fs);
void serve_disk_end(struct fs *fs);

/* REQ is what this thread handles. */
void serve_begin_request(fuse_req_t req);
/* SIZE bytes of this thread, which is one of these, that stay until it calls this again. */
char *serve_buffer(size_t size);
