/* SPDX-License-Identifier: MIT */
/*
 * Reads /proc/PID/mountinfo. Nothing here accesses the mounted file system, so it waits neither for
 * a dead one nor for this process.
 */
#pragma once

#include "spec/base/base.h"

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
