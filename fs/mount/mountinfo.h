/* SPDX-License-Identifier: MIT */
/*
 * What /proc/PID/mountinfo says of a mount. Nothing here asks the file system that is mounted, so it waits neither for
 * a dead one nor for this process.
 */
#pragma once

#include "spec/base/base.h"

struct mountinfo {
	/*
	 * Number of the mount; used again when the mount has gone, but together with the device it tells mounts apart.
	 */
	int id;
	unsigned major, minor;
	char *path; /* where it is mounted */
	char *type; /* "fuse.kxfs" */
	char *source;
};

/* Find the mount that PATH is in. 0 or a negative errno. *RET is to be cleared. */
int mountinfo_of(const char *path, struct mountinfo *ret);

/*
 * Has the mount namespace of process PID a mount of TYPE at PATH, which is a path of that namespace? 0; -ENOENT: it has
 * none; another negative errno: that can't be seen.
 */
int mountinfo_process_has(int pid, const char *path, const char *type);

/* Is M still mounted anywhere? If the list can't be read: yes. */
bool mountinfo_is_there(const struct mountinfo *m);

void mountinfo_clear(struct mountinfo *m);
#define cleanup_mountinfo cleanup(mountinfo_clear)
