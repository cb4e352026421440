/* SPDX-License-Identifier: MIT */
/*
 * Checks a mount point before a mount, removes mounts of a kxfs that crashed, and unmounts. kxfs
 * finds mounts in /proc/PID/mountinfo. Reading this file does not access any mounted file system,
 * so a dead mount, or the mount of this process itself, can't block it.
 */
#pragma once

#include "spec/base/base.h"

#define MOUNTPOINT_TYPE "fuse.kxfs"

/*
 * Check if this process can mount with FUSE. Return 0, or a negative errno with a message in
 * *RET_TEXT.
 */
int mountpoint_check_fuse(char **ret_text);

/*
 * Return N if NAME is /dev/fd/N and N is above 2. Return -1 if NAME is another path or NULL. As in
 * libfuse, /dev/fd/N means that the caller of kxfs has already mounted, and passes the descriptor N
 * of /dev/fuse to kxfs. kxfs serves that mount, and the caller unmounts it.
 */
int mountpoint_passed(const char *name);

/*
 * Set *RET_PATH to the canonical path of NAME, malloc'ed. NAME must be a directory, possibly with a
 * dead mount. If NAME is a passed descriptor (mountpoint_passed), copy NAME. Return 0, or a
 * negative errno with a message in *RET_TEXT.
 */
int mountpoint_resolve(const char *name, char **ret_path, char **ret_text);

/*
 * Prepare PATH, a canonical path, for a mount. Remove dead mounts of kxfs there. Refuse PATH if it
 * has a live mount, if another process is about to mount there, if the directory is not empty, or
 * if this user may not mount there. Return 0, or a negative errno with a message in *RET_TEXT.
 *
 * Set *RET_LOCK to a descriptor. Until all copies of this descriptor are closed, no other process
 * can prepare PATH. If the file system does not support locks, set *RET_LOCK to -1.
 */
int mountpoint_prepare(const char *path, int *ret_lock, char **ret_text);

/* Unmount PATH, even if it is in use. Return 0 or a negative errno. This waits at most 10 s. */
int mountpoint_detach(const char *path);

/* --- mountinfo --- */

struct mountinfo {
	/*
	 * The kernel's number of the mount. The kernel may reuse the number after an unmount.
	 * Number and device together are unique.
	 */
	int id;
	unsigned major, minor;
	char *path; /* the path on which it is mounted */
	char *type; /* "fuse.kxfs" */
};

/* Set *RET to the mount that contains PATH; the caller clears it. Return 0 or a negative errno. */
int mountinfo_of(const char *path, struct mountinfo *ret);

/*
 * True if process PID sees no mount of kxfs at PATH, a path in the mount namespace of PID. False if
 * kxfs can't read the mounts of PID.
 */
bool mountinfo_process_lacks(int pid, const char *path);

/* True if M is still mounted anywhere, or if kxfs can't read the list of mounts. */
bool mountinfo_is_there(const struct mountinfo *m);

/*
 * Return the path on which M is mounted now, malloc'ed. It changes if a parent directory is
 * renamed. Return NULL if M is not mounted any more, or if kxfs can't read the list of mounts.
 */
char *mountinfo_path(const struct mountinfo *m);

void mountinfo_clear(struct mountinfo *m);
#define cleanup_mountinfo cleanup(mountinfo_clear)
