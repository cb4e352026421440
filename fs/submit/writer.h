/* SPDX-License-Identifier: MIT */
/*
 * Finds out which process is writing a file, and whether it is done. The kernel tells neither: it sends a FLUSH at each
 * close of each copy of a descriptor, with the number of a thread. /proc has what is missing: to which process the
 * thread belongs, and which descriptors the process still has. (backend/base/process.h reads whether a signal has ended
 * it.) Parsers are pure functions of text; the other functions read /proc, never wait, and return an error when they
 * can't know (another user, hidepid, another pid namespace). For a writer that can't be looked at there is only
 * holders.h.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* If a process has more descriptors than this, they are not looked at, and count as not known. */
#define WRITER_MAX_FDS 4096

struct writer_fd {
	uint64_t ino;
	bool writable;
};

/* The Tgid in the text of /proc/TID/status; 0: it has none. */
pid_t writer_parse_tgid(const char *status);
/*
 * True if STATUS, the text of /proc/TID/status, is of a process in exec. It closes descriptors then, while it holds a
 * lock for which readers of other files of /proc/TID wait: until that close is answered kxfs must read none of them.
 */
bool writer_parse_exec(const char *status);
/* Read the text of /proc/PID/fdinfo/N. -EINVAL: inode number or flags are missing. */
int writer_parse_fdinfo(const char *text, struct writer_fd *ret);

/* The name of the program of PID, as ps shows it; "": not known. */
void writer_command(pid_t pid, char *ret, size_t size);
/* The process of thread TID; 0: not known. RET_IN_EXEC may be NULL. */
pid_t writer_process(pid_t tid, bool *ret_in_exec);
/*
 * How many descriptors, open for writing, PID, a process that is not in exec or a thread of it, has of the file with
 * inode number INO on the filesystem that is mounted on MOUNTPOINT; a negative errno: not known.
 */
int writer_holds(pid_t pid, uint64_t ino, const char *mountpoint);
/*
 * The same of a process that may enter exec at any time, so the caller may wait for it (serve_disk_begin). -EBUSY: it
 * is in exec.
 */
int writer_holds_still(pid_t pid, uint64_t ino, const char *mountpoint);
/*
 * OPENER, a process, has opened the file INO, and WROTE, a thread, is writing it now (0: not known). 0: one of them can
 * be looked at; -EACCES: they are another user's; -ESRCH: they are not there, so their numbers are those of another pid
 * namespace, which may by chance also be those of processes here.
 */
int writer_look(pid_t opener, pid_t wrote, uint64_t ino, const char *mountpoint);
