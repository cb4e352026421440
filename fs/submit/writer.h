/* SPDX-License-Identifier: MIT */
/*
 * Find which process writes a file, and whether it has finished. The kernel sends neither: it sends
 * a FLUSH at each close of each copy of a descriptor, with the number of a thread. /proc has the
 * rest: the process of the thread, and the descriptors that the process still has.
 * (backend/base/process.h reads whether a signal has ended it.) The parsers are pure functions of
 * text. The other functions read /proc, never wait, and return an error if /proc does not show the
 * process (another user's, hidepid, another pid namespace). For such a writer there is only
 * holders.h.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* If a process has more descriptors than this, they count as unknown. */
#define WRITER_MAX_FDS 4096

struct writer_fd {
	uint64_t ino;
	bool writable;
};

/* Return the Tgid in the text of /proc/TID/status, or 0. */
pid_t writer_parse_tgid(const char *status);
/*
 * True if STATUS, the text of /proc/TID/status, is of a process in exec. Such a process closes
 * descriptors while it holds a lock that the other files of /proc/TID need. So kxfs must not read
 * these before it has answered the close.
 */
bool writer_parse_exec(const char *status);
/* Read the text of /proc/PID/fdinfo/N. -EINVAL: inode number or flags are missing. */
int writer_parse_fdinfo(const char *text, struct writer_fd *ret);

/* Set RET to the name of the program of PID, as ps shows it, or to "" if it is unknown. */
void writer_command(pid_t pid, char *ret, size_t size);
/* Return the process of thread TID, or 0 if it is unknown. RET_IN_EXEC may be NULL. */
pid_t writer_process(pid_t tid, bool *ret_in_exec);
/*
 * Return how many descriptors, open for writing, PID has of the file with inode number INO on the filesystem that is
 * mounted on MOUNTPOINT, or a negative errno if that is unknown. PID is a process that is not in exec, or a thread.
 */
int writer_holds(pid_t pid, uint64_t ino, const char *mountpoint);
/*
 * Like writer_holds, for a process that may enter exec at any time: this may wait, so enclose it in
 * serve_disk_begin. -EBUSY: it is in exec.
 */
int writer_holds_still(pid_t pid, uint64_t ino, const char *mountpoint);
/*
 * Check if /proc shows a process that has the file INO open: OPENER, which has opened it, or the thread WROTE, which is
 * writing it now (0: unknown). 0; -EACCES: they are another user's; -ESRCH: /proc has neither, so their numbers are
 * those of another pid namespace, and a process here may have the same number.
 */
int writer_look(pid_t opener, pid_t wrote, uint64_t ino, const char *mountpoint);
