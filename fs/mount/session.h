/* SPDX-License-Identifier: MIT */
/*
 * The FUSE session. It mounts, serves, detects an unmount, stops, and unmounts. The thread that
 * calls session_new is the first FUSE thread (rule T1).
 */
#pragma once

#include "fs/cli/options.h"
#include "fs/vfs/fs.h"

struct session;

/*
 * Make a session that will serve FS on MOUNTPOINT with the options O. session_mount then mounts it.
 * MOUNTPOINT is borrowed. Return 0 or a negative errno. Messages of libfuse go to diag.
 */
int session_new(struct fs *fs, const struct options *o, const char *mountpoint,
		struct session **ret);

/*
 * Mount, and answer the kernel's first request. If the caller of kxfs has already mounted
 * (mountpoint_passed), only answer the request. Call this while the loop runs. Return 0 or a
 * negative errno. -ECANCELED means that session_stop was called meanwhile. FUSE thread.
 */
int session_mount(struct session *s);

/*
 * Answer requests until session_stop is called, or the file system is unmounted. Return 0 or a
 * negative errno. FUSE thread.
 */
int session_serve(struct session *s);

/*
 * Answer the parked requests with an error, and make session_serve return. Repeated calls are
 * allowed. I/O thread.
 */
void session_stop(struct session *s);

/*
 * Unmount, even if the mount is in use. Don't unmount if the caller of kxfs made the mount, or if
 * the mount is already gone. After this call, processes that use the mount get ENOTCONN, and late
 * answers to requests have no effect. FUSE thread, after session_serve.
 */
void session_end(struct session *s);

/* Call this after loop_stop. NULL is allowed. */
void session_free(struct session *s);
