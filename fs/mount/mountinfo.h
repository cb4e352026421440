/* SPDX-License-Identifier: MIT */
/*
 * What /proc/PID/mountinfo says of a mount. Nothing here asks the file system that is mounted,
 * so it never waits for one that is dead, or for ourselves.
 */
#pragma once

#include "spec/base/base.h"

struct mountinfo {
	int id; /* reused after the mount has gone; together with the device it tells mounts apart */
	unsigned major, minor;
	char *path; /* where it is mounted */
	char *type; /* "fuse.kxfs" */
	char *source;
};

/* The mount that PATH is in. 0 or a negative errno. *RET is to be cleared. */
int mountinfo_of(const char *path, struct mountinfo *ret);

/*
 * Does the mount namespace of process PID have a mount of TYPE at PATH, which is a path of that namespace? 0; -ENOENT:
 * it has none; another negative errno: that can't be seen.
 */
int mountinfo_process_has(int pid, const char *path, const char *type);

/* Is this mount still mounted anywhere? When the list can't be read: yes. */
bool mountinfo_is_there(const struct mountinfo *m);

void mountinfo_clear(struct mountinfo *m);
#define cleanup_mountinfo cleanup(mountinfo_clear)
