/* SPDX-License-Identifier: MIT */
/*
 * The life of the FUSE session: it mounts, serves, notices that the mount was detached, stops, and
 * unmounts. The thread that calls session_new is the FUSE thread (rule T1).
 */
#pragma once

#include "fs/cli/options.h"
#include "fs/vfs/fs.h"

struct session;

/*
 * Make a session that serves FS and is to be mounted on MOUNTPOINT (borrowed) with the options O.
 * Return 0 or a negative errno; libfuse's own messages go to diag.
 */
int session_new(struct fs *fs, const struct options *o, const char *mountpoint,
		struct session **ret);

/*
 * Mount, unless the caller of kxfs has mounted (mountpoint_passed), and answer the kernel's first
 * request. Call this while the loop runs. Return 0; -ECANCELED if session_stop was called
 * meanwhile; or another negative errno. FUSE thread.
 */
int session_mount(struct session *s);

/*
 * Answer requests until session_stop, or until the mount was detached. Return 0 or a negative
 * errno. FUSE thread.
 */
int session_serve(struct session *s);

/*
 * End the waiting requests, and make session_serve return. I/O thread; may be called more than
 * once.
 */
void session_stop(struct session *s);

/*
 * Unmount, even if the mount is in use, if this session has made the mount and it still exists.
 * From now on users of the mount get ENOTCONN, and answers are dropped. FUSE thread, after
 * session_serve.
 */
void session_end(struct session *s);

/* Call this after loop_stop. NULL is allowed. */
void session_free(struct session *s);
