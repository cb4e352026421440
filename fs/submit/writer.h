/* SPDX-License-Identifier: MIT */
/*
 * Finds out from /proc which process writes a file, and whether it has finished. For each close of
 * a descriptor, the kernel sends a FLUSH with the id of the thread that closed it. /proc shows the
 * process of this thread, and which descriptors it still has. base/process.h shows whether a signal
 * ended the process.
 *
 * These functions don't wait, except where noted. They fail if /proc does not show the process,
 * which may belong to another user, be hidden by hidepid, or be in another pid namespace. For such
 * writers, kxfs uses struct holders.
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

/* Return the Tgid in STATUS, the text of /proc/TID/status; 0 if there is none. */
pid_t writer_parse_tgid(const char *status);
/*
 * True if STATUS shows a process in exec, which closes descriptors while it holds a lock. Readers
 * of other files of /proc/TID wait for this lock. So kxfs must answer the FLUSH before it reads
 * those files.
 */
bool writer_parse_exec(const char *status);
/* Parse /proc/PID/fdinfo/N. Return -EINVAL if the inode number or the flags are missing. */
int writer_parse_fdinfo(const char *text, struct writer_fd *ret);

/* Set RET to the name of PID's program, as ps shows it, or to "". */
void writer_command(pid_t pid, char *ret, size_t size);
/* Return thread TID's process, or 0. *RET_IN_EXEC (may be NULL) shows if it is in exec. */
pid_t writer_process(pid_t tid, bool *ret_in_exec);
/*
 * Return how many descriptors PID, a thread or a process, has open for writing to the file INO
 * below MOUNTPOINT. Return a negative errno if that is unknown. PID must not be in exec.
 */
int writer_holds(pid_t pid, uint64_t ino, const char *mountpoint);
/*
 * Like writer_holds, but PID may be in exec: then return -EBUSY. If PID enters exec during this
 * call, the call may wait, so enclose it in serve_disk_begin and serve_disk_end.
 */
int writer_holds_still(pid_t pid, uint64_t ino, const char *mountpoint);
/*
 * Check if /proc shows who writes the file INO: the process OPENER, which has opened it, or the
 * thread WROTE, which writes now (0 if unknown). Return 0 if one of them has the file open. Return
 * -EACCES if one belongs to another user, whose descriptors kxfs may not read. In any other case,
 * kxfs assumes that both numbers come from another pid namespace, where they mean other processes,
 * and returns -ESRCH.
 */
int writer_look(pid_t opener, pid_t wrote, uint64_t ino, const char *mountpoint);

/*
 * For a writer that /proc does not show, struct holders finds out from requests which processes
 * have a file open. Each write, and each close of a descriptor, has a number that identifies the
 * process (fi->lock_owner; precisely, it identifies the table of descriptors).
 *
 * kxfs makes two assumptions. A process that writes has a descriptor. A process that closes a
 * descriptor before the first write has another one: a shell duplicates the file to its standard
 * output, and closes the original. So a close ends the writing if no known process has a descriptor
 * any more.
 *
 * tests/unit/fs/submit/test-writer.c shows how real writers behave. Only one thread at a time may
 * use a struct holders.
 */

/* If more processes than this have a file open, only the release ends the writing. */
#define HOLDERS_MAX 16

struct holders {
	uint64_t who[HOLDERS_MAX];
	size_t n;
	bool written;
	bool crowded; /* true if WHO had no space for another process */
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

/* Record that WHO closes a descriptor. True if no known process has a descriptor any more. */
static inline bool holders_closed(struct holders *h, uint64_t who)
{
	size_t i = holders_find(h, who);

	if (i < h->n)
		h->who[i] = h->who[--h->n];
	else if (!h->written)
		holders_add(h, who);
	return h->n == 0 && !h->crowded;
}
