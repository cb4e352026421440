/* SPDX-License-Identifier: MIT */
/*
 * The directory that is mounted on: what must be right before, dead mounts of a kxfs that
 * crashed, and taking a mount away.
 */
#pragma once

#include "spec/base/base.h"

#define MOUNTPOINT_TYPE "fuse.kxfs"

/* Can this process mount with FUSE at all? 0, or a negative errno with *RET_TEXT. */
int mountpoint_check_fuse(char **ret_text);

/*
 * A NAME like /dev/fd/N is no path but descriptor N of /dev/fuse, which who has started kxfs has mounted with and hands
 * over, as libfuse knows it too: N, above 2; -1: it is a path, or NULL. Such a mount is used as it is, and who has made
 * it takes it away.
 */
int mountpoint_passed(const char *name);

/* The canonical path of NAME, which must be a directory; its mount may be dead. One that is passed: NAME. */
int mountpoint_resolve(const char *name, char **ret_path, char **ret_text);

/*
 * Make PATH (canonical) ready to be mounted on: dead mounts of kxfs are taken away; a live one, one that another
 * process is about to make, a directory that is not empty or not ours to mount on is refused with *RET_TEXT.
 * *RET_LOCK is a descriptor: until it is closed everywhere, nobody else gets as far as this. -1: it can't be locked.
 */
int mountpoint_prepare(const char *path, int *ret_lock, char **ret_text);

/* Take away what is mounted on PATH, also when it is in use. 0 or a negative errno. Bounded. */
int mountpoint_detach(const char *path);
