/* SPDX-License-Identifier: MIT */
/* The directory that is mounted on: checks before a mount, dead mounts of a kxfs that crashed, and unmounting. */
#pragma once

#include "spec/base/base.h"

#define MOUNTPOINT_TYPE "fuse.kxfs"

/* Can this process mount with FUSE at all? 0, or a negative errno with *RET_TEXT. */
int mountpoint_check_fuse(char **ret_text);

/*
 * A NAME like /dev/fd/N is not a path but descriptor N of /dev/fuse: whoever started kxfs has mounted with it and
 * passes it on, which libfuse knows, too. Returns N, which is above 2; -1: NAME is a path, or NULL. Such a mount is
 * used as it is, and taken away by the one who made it.
 */
int mountpoint_passed(const char *name);

/*
 * Find the canonical path of NAME, which must be a directory; its mount may be dead. For a descriptor that is passed:
 * NAME.
 */
int mountpoint_resolve(const char *name, char **ret_path, char **ret_text);

/*
 * Make PATH (canonical) ready to be mounted on: dead mounts of kxfs are taken away. Refused with *RET_TEXT are a mount
 * that is alive or that another process is about to make, a directory that is not empty, and one on which this user may
 * not mount. *RET_LOCK is a descriptor: until all copies of it are closed, nobody else gets as far as this. -1: it
 * can't be locked.
 */
int mountpoint_prepare(const char *path, int *ret_lock, char **ret_text);

/* Unmount what is on PATH, also if it is in use. 0 or a negative errno. Takes a limited time. */
int mountpoint_detach(const char *path);
