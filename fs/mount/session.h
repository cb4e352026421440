/* SPDX-License-Identifier: MIT */
/*
 * The FUSE session. It mounts, serves, detects an unmount, stops, and unmounts. The thread that
 * calls session_new also calls the functions marked "main thread".
 */
#pragma once

#include "fs/cli/options.h"
#include "fs/vfs/fs.h"

struct session;

/*
 * Make a session for FS on MOUNTPOINT, which is borrowed, with the options O. Messages of libfuse
 * go to diag. Return 0 or a negative errno. Main thread.
 */
int session_new(struct fs *fs, const struct options *o, const char *mountpoint,
		struct session **ret);

/*
 * Mount, unless the caller of kxfs has already mounted (mountpoint_passed), and answer the kernel's
 * first request. Call this while the loop runs. Return 0 or a negative errno: -ECANCELED if
 * session_stop was called meanwhile. Main thread.
 */
int session_mount(struct session *s);

/* Serve until session_stop or an unmount. Return 0 or a negative errno. Main thread. */
int session_serve(struct session *s);

/*
 * Answer the parked requests with an error, and make session_serve return. A second call does
 * nothing. I/O thread.
 */
void session_stop(struct session *s);

/*
 * Unmount, even if the mount is in use. Exception: if the process that started kxfs has mounted
 * (mountpoint_passed), that process unmounts later. After this call, processes that use the mount
 * get ENOTCONN, and late answers have no effect. Main thread, after session_serve.
 */
void session_end(struct session *s);

/* Call this after loop_stop. NULL is allowed. */
void session_free(struct session *s);
