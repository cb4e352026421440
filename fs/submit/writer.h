/* SPDX-License-Identifier: MIT */
/*
 * Finds out which process writes a file, and whether it has finished. For each close of a
 * descriptor, the kernel sends a FLUSH with the id of the thread that closed it. /proc shows the
 * process of this thread, and which descriptors the process still has. base/process.h finds out
 * whether a signal has ended the process.
 *
 * The parsers are pure functions of a text. The other functions read /proc. They don't wait, except
 * where noted. They fail if /proc does not show the process: the process may belong to another
 * user, be hidden by hidepid, or be in another pid namespace. For such writers, kxfs uses struct
 * holders.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

/* If a process has more descriptors than this, kxfs does not check them. */
#define WRITER_MAX_FDS 4096

struct writer_fd {
	uint64_t ino;
	bool writable;
};

/* Return the Tgid in STATUS, the text of /proc/TID/status; 0 if STATUS has no Tgid. */
pid_t writer_parse_tgid(const char *status);
/*
 * True if STATUS, the text of /proc/TID/status, shows a process in exec. Such a process closes
 * descriptors while it holds a lock. A reader of other files of /proc/TID waits for the same lock.
 * So kxfs must answer the FLUSH before it reads those files.
 */
bool writer_parse_exec(const char *status);
/*
 * Parse TEXT, which is the text of /proc/PID/fdinfo/N. Return 0, or -EINVAL if the inode number or
 * the flags are missing.
 */
int writer_parse_fdinfo(const char *text, struct writer_fd *ret);

/* Set RET to the name of the program of PID, as ps shows it, or to "" if it is unknown. */
void writer_command(pid_t pid, char *ret, size_t size);
/*
 * Return the process of thread TID, or 0 if it is unknown. *RET_IN_EXEC becomes true if the process
 * is in exec. RET_IN_EXEC may be NULL.
 */
pid_t writer_process(pid_t tid, bool *ret_in_exec);
/*
 * Return how many descriptors of one file PID has open for writing, or a negative errno if that is
 * unknown. The file has the inode number INO on the filesystem that is mounted on MOUNTPOINT. PID
 * is a thread or a process, and must not be in exec.
 */
int writer_holds(pid_t pid, uint64_t ino, const char *mountpoint);
/*
 * Like writer_holds, but PID may enter exec at any time. If it is in exec, return -EBUSY. If it
 * enters exec during this call, the call may wait. So enclose the call in serve_disk_begin and
 * serve_disk_end.
 */
int writer_holds_still(pid_t pid, uint64_t ino, const char *mountpoint);
/*
 * Check if /proc shows who writes the file INO. OPENER is the process that has opened the file, and
 * WROTE is the thread that is writing it now. Each is 0 if unknown. Return 0 if /proc shows that
 * one of them has the file open. Return -EACCES if one of them belongs to another user, so that
 * kxfs has no permission to read its descriptors. In any other case, kxfs assumes that both numbers
 * come from another pid namespace, where they belong to other processes, and returns -ESRCH.
 */
int writer_look(pid_t opener, pid_t wrote, uint64_t ino, const char *mountpoint);

/*
 * For a writer that /proc does not show, struct holders finds out from the kernel's requests which
 * processes have a file open. Each write, and each close of a descriptor, has a number that
 * identifies the process (precisely: its table of descriptors).
 *
 * kxfs makes two assumptions. A process that writes has a descriptor. A process that closes a
 * descriptor before the first write has another one: a shell duplicates the file to its standard
 * output, and closes the original. Other processes may have descriptors, too, but no request shows
 * them. So a close ends the writing if no known process has a descriptor any more.
 *
 * tests/unit/fs/submit/test-writer.c shows how real writers behave. Only one thread at a time may
 * use a struct holders.
 */

/*
 * If more processes than this have a file open, kxfs ignores closes: only the release ends the
 * writing.
 */
#define HOLDERS_MAX 16

struct holders {
	uint64_t who[HOLDERS_MAX];
	size_t n;
	bool written; /* true if a process has written the file */
	bool crowded; /* true if there are more processes than fit into WHO */
};

static inline size_t holders_find(const struct holders *h, uint64_t who)
{
	size_t i = 0;

	while (i < h->n && h->who[i] != who)
		i++;
	return i;
}

static inline void holders_add(struct holders *h, uint64_t who)
{
	if (holders_find(h, who) < h->n)
		return;
	if (h->n == HOLDERS_MAX)
		h->crowded = true;
	else
		h->who[h->n++] = who;
}

/* Record that the process WHO writes. WHO is 0 if the process is unknown. */
static inline void holders_wrote(struct holders *h, uint64_t who)
{
	h->written = true;
	if (who)
		holders_add(h, who);
}

/*
 * Record that the process WHO closes a descriptor. Return true if no known process has a descriptor
 * any more.
 */
static inline bool holders_closed(struct holders *h, uint64_t who)
{
	size_t i = holders_find(h, who);

	if (i < h->n)
		h->who[i] = h->who[--h->n];
	else if (!h->written)
		holders_add(h, who);
	return h->n == 0 && !h->crowded;
}
