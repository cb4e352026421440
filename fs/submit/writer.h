/* SPDX-License-Identifier: MIT */
/*
 * Find which process writes a file, and whether it has finished. The kernel reports only each close
 * of each copy of a descriptor: a FLUSH with the number of a thread. /proc shows the thread's
 * process, and the descriptors that this process still has. (backend/base/process.h reads whether a
 * signal has ended it.) The parsers are pure functions of text. The other functions read /proc,
 * never wait, and return an error if /proc does not show the process (another user's, hidepid,
 * another pid namespace). For such a writer kxfs uses struct holders instead.
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
 * descriptors while it holds a lock that reading the other files of /proc/TID needs. So kxfs must
 * answer the close before it reads them.
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
 * Check if /proc shows that the process OPENER, which has opened the file INO, or the thread WROTE,
 * which is writing it now, has the file open. Each may be 0 if unknown. Return 0 if so; -EACCES if
 * they belong to another user; -ESRCH if /proc shows neither: their numbers are those of another
 * pid namespace, and unrelated processes here may have the same numbers.
 */
int writer_look(pid_t opener, pid_t wrote, uint64_t ino, const char *mountpoint);

/*
 * Find out from the kernel's requests which processes have a file open: for writers that /proc does
 * not show. Each write and each close of a descriptor has a number that identifies the process
 * (precisely: its table of descriptors). A process that writes has a descriptor. A process that
 * closes one before the first write is assumed to have another: a shell duplicates a redirected
 * file as its standard output and closes the original. Other processes may have descriptors, too,
 * but no request shows them. So a close ends the writing when no known process has a descriptor any
 * more. The behaviour of real writers is in tests/unit/fs/submit/test-writer.c. Only one thread may
 * use a struct holders at a time.
 */

/* If more processes than this write a file at the same time, only the release ends the writing. */
#define HOLDERS_MAX 16

struct holders {
	uint64_t who[HOLDERS_MAX];
	size_t n;
	bool written; /* a process has written */
	bool crowded; /* there were more processes than fit into WHO */
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

/* WHO (0: an unknown process) writes. */
static inline void holders_wrote(struct holders *h, uint64_t who)
{
	h->written = true;
	if (who)
		holders_add(h, who);
}

/* WHO closes a descriptor. Return true if no known process has one any more. */
static inline bool holders_closed(struct holders *h, uint64_t who)
{
	size_t i = holders_find(h, who);

	if (i < h->n)
		h->who[i] = h->who[--h->n];
	else if (!h->written)
		holders_add(h, who);
	return h->n == 0 && !h->crowded;
}
