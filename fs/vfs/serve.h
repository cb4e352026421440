/* SPDX-License-Identifier: MIT */
/*
 * The threads that serve a session. One of them at a time has the turn: it handles a request, and meanwhile all that
 * belongs to the FUSE thread is its own. So "the FUSE thread" is the thread that has the turn. As long as no disk hangs
 * there is one such thread and the turn costs nothing. Whoever has to wait for a disk, or makes a text of which nobody
 * knows how long it is, says so:
 *
 *	err = serve_disk_begin(fs);
 *	if (!err) {
 *		err = ...;		// the turn is not ours: only what other threads do not write is touched
 *		serve_disk_end(fs);
 *	}
 *
 * If that takes long, another thread goes on serving, and the request is parked: an interrupt, its deadline or the end
 * of the mount answers it, and the answer that its handler gives later goes nowhere (-ENOENT, as whenever nobody wants
 * an answer any more). Its node and its open file stay until the handler has returned.
 */
#pragma once

#include "fs/vfs/fs.h"

struct serve;

struct serve *serve_new(struct fs *fs);
void serve_free(struct serve *s); /* to be called after serve_finish; NULL is allowed */

/*
 * Serve SE until it is over; 0 or a negative errno. Requests that wait for a disk may still be under way then;
 * serve_finish waits until they are not.
 */
int serve_run(struct serve *s, struct fuse_session *se);
void serve_finish(struct serve *s);
/*
 * Have the threads check, by SIGUSR1, whether the session is over; to be repeated until serve_run returns. Any thread.
 */
void serve_wake(struct serve *s);

/*
 * These two stand around a call that may wait for a disk, in a handler that has not answered yet. -ETIMEDOUT: so many
 * requests wait for a disk already that this one must not. In other threads they do nothing.
 */
int serve_disk_begin(struct fs *fs);
void serve_disk_end(struct fs *fs);

/* Note that this thread handles REQ. */
void serve_begin_request(fuse_req_t req);
/* SIZE bytes of this thread, which is one of those that serve; they stay until it calls this again. */
char *serve_buffer(size_t size);
