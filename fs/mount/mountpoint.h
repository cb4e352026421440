/* SPDX-License-Identifier: MIT */
/*
 * The mount point: checks before a mount, dead mounts of a kxfs that crashed, and unmounting; and
 * /proc/PID/mountinfo. Reading that accesses no mounted file system, so it waits neither for a dead
 * one nor for this process.
 */
#pragma once

#include "spec/base/base.h"

#define MOUNTPOINT_TYPE "fuse.kxfs"

/*
 * Check if this process can mount with FUSE at all. Return 0, or a negative errno with *RET_TEXT.
 */
int mountpoint_check_fuse(char **ret_text);

/*
 * A NAME like /dev/fd/N is not a path but descriptor N of /dev/fuse: the process that started kxfs
 * has mounted with it and passes it on; libfuse supports this, too. Return N, which is above 2; -1
 * if NAME is a path, or NULL. Such a mount is used as it is, and its creator unmounts it.
 */
int mountpoint_passed(const char *name);

/*
 * Find the canonical path of NAME, which must be a directory, perhaps with a dead mount. For a
 * passed descriptor return NAME.
 */
int mountpoint_resolve(const char *name, char **ret_path, char **ret_text);

/*
 * Prepare PATH (canonical) for a mount: remove dead mounts of kxfs. Refuse, with *RET_TEXT, a path
 * with a live mount, a path that another process is about to mount on, a directory that is not
 * empty, and one where this user may not mount. *RET_LOCK is a descriptor: until all copies of it
 * are closed, no other process can prepare PATH. It is -1 if PATH can't be locked.
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
 * namespace. Return 0; -ENOENT if it has none; another negative errno if that is not visible.
 */
int mountinfo_process_has(int pid, const char *path, const char *type);

/* True if M is still mounted anywhere, or if the list can't be read. */
bool mountinfo_is_there(const struct mountinfo *m);

void mountinfo_clear(struct mountinfo *m);
#define cleanup_mountinfo cleanup(mountinfo_clear)
