/* SPDX-License-Identifier: MIT */
/*
 * The mount point: checks it before a mount, removes dead mounts of a kxfs that crashed, and
 * unmounts. Finds mounts in /proc/PID/mountinfo: reading this file accesses no mounted file system,
 * so it never waits for a dead mount or for this process.
 */
#pragma once

#include "spec/base/base.h"

#define MOUNTPOINT_TYPE "fuse.kxfs"

/*
 * Check if this process can mount with FUSE at all. Return 0, or a negative errno with *RET_TEXT.
 */
int mountpoint_check_fuse(char **ret_text);

/*
 * Return N if NAME is /dev/fd/N and N is above 2; -1 if NAME is a path or NULL. As in libfuse,
 * /dev/fd/N means that the process that started kxfs has mounted already, and passes the descriptor
 * N of /dev/fuse. kxfs uses that mount as it is, and its creator unmounts it.
 */
int mountpoint_passed(const char *name);

/*
 * Set *RET_PATH (malloc'ed) to the canonical path of NAME, which must be a directory, perhaps with
 * a dead mount. If NAME is a passed descriptor, copy NAME. Return 0, or a negative errno with
 * *RET_TEXT.
 */
int mountpoint_resolve(const char *name, char **ret_path, char **ret_text);

/*
 * Prepare PATH (canonical) for a mount: remove dead mounts of kxfs. Return 0 or a negative errno.
 * Refuse, with *RET_TEXT, a path with a live mount, a path that another process is about to mount
 * on, a directory that is not empty, and one where this user may not mount. *RET_LOCK is a
 * descriptor: until all copies of it are closed, no other process can prepare PATH. It is -1 if
 * PATH can't be locked.
 */
int mountpoint_prepare(const char *path, int *ret_lock, char **ret_text);

/* Unmount PATH, even if it is in use. Return 0 or a negative errno. Takes a limited time. */
int mountpoint_detach(const char *path);

/* --- mountinfo --- */

struct mountinfo {
	/* Number of the mount; reused after an unmount, but unique together with the device. */
	int id;
	unsigned major, minor;
	char *path; /* where it is mounted */
	char *type; /* "fuse.kxfs" */
	char *source;
};

/* Find the mount that PATH is in. Return 0 or a negative errno. Clear *RET afterwards. */
int mountinfo_of(const char *path, struct mountinfo *ret);

/*
 * Check if the mount namespace of process PID has a mount of TYPE at PATH, which is a path of that
 * namespace. Return 0; -ENOENT if it has none; another negative errno if kxfs can't read that
 * process's mounts.
 */
int mountinfo_process_has(int pid, const char *path, const char *type);

/* True if M is still mounted anywhere, or if the list can't be read. */
bool mountinfo_is_there(const struct mountinfo *m);

void mountinfo_clear(struct mountinfo *m);
#define cleanup_mountinfo cleanup(mountinfo_clear)
