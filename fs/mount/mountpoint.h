/* SPDX-License-Identifier: MIT */
/*
 * Checks a mount point, removes mounts of a kxfs that crashed, and unmounts. It finds mounts in
 * /proc/PID/mountinfo. Reading this file accesses no mounted file system, so a dead mount, or our
 * own, can't block it.
 */
#pragma once

#include "spec/base/base.h"

#define MOUNTPOINT_TYPE "fuse.kxfs"

/* Check if this process can use FUSE. Return 0, or a negative errno with a message. */
int mountpoint_check_fuse(char **ret_text);

/*
 * Return N if NAME is /dev/fd/N and N is above 2; otherwise -1, also for NULL. As in libfuse,
 * /dev/fd/N means that the caller of kxfs has mounted, passes the descriptor N of /dev/fuse, and
 * unmounts later.
 */
int mountpoint_passed(const char *name);

/*
 * Set *RET_PATH to the canonical path of NAME, malloc'ed. NAME is a directory, possibly with a dead
 * mount. If NAME is a passed descriptor (mountpoint_passed), *RET_PATH becomes a copy of NAME.
 * Return 0, or a negative errno with a message.
 */
int mountpoint_resolve(const char *name, char **ret_path, char **ret_text);

/*
 * Prepare PATH, a canonical path, for a mount: remove dead mounts of kxfs there. Refuse PATH if it
 * has a live mount, if another process is about to mount there, if it is not empty, or if this user
 * may not mount there. Return 0, or a negative errno with a message. While any copy of the
 * descriptor *RET_LOCK is open, no other process can prepare PATH. *RET_LOCK is -1 if the file
 * system does not support locks.
 */
int mountpoint_prepare(const char *path, int *ret_lock, char **ret_text);

/* True if no process serves the file system at PATH. */
bool mountpoint_is_dead(const char *path);

/* Unmount PATH, even if it is in use. This waits at most 10 s. */
int mountpoint_detach(const char *path);

/* --- mountinfo --- */

struct mountinfo {
	/*
	 * ID is the kernel's number of the mount. MAJOR and MINOR are the device of the file
	 * system. After an unmount, the kernel may reuse all three for the next mount.
	 */
	int id;
	unsigned major, minor;
	char *path;
	char *type;
};

/*
 * Set *RET to the mount that contains PATH. Return 0 or a negative errno. The caller clears *RET in
 * both cases.
 */
int mountinfo_of(const char *path, struct mountinfo *ret);

/* True if no kxfs is mounted at PATH in the mount namespace of PID. False if unknown. */
bool mountinfo_process_lacks(int pid, const char *path);

/*
 * Set *RET to the current data of the mount M. Its path may have changed, because a parent
 * directory was renamed. If M was unmounted, *RET may be a new mount. Return 0, -ENOENT if M is not
 * mounted, or another negative errno if kxfs can't read the list of mounts. The caller clears *RET.
 */
int mountinfo_now(const struct mountinfo *m, struct mountinfo *ret);

void mountinfo_clear(struct mountinfo *m);
#define cleanup_mountinfo cleanup(mountinfo_clear)
