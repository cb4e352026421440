/* SPDX-License-Identifier: MIT */
/*
 * The kernel, for those who use the mount: each call is a request, or some, to the handlers of fs/vfs/ops.c. All are
 * for tasks, which wait for the answer; -ENOTCONN: kxfs has gone meanwhile, or is not there; -EINTR: a signal has come.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

struct fs;

struct kernel_file {
	pid_t pid;
	unsigned life; /* of kxfs, in which it was opened */
	uint64_t node, ino, fh;
	int flags;
	bool open;
	struct kernel_file *next;
};

/* A new process. */
pid_t kernel_fork(void);
void kernel_kill(pid_t pid);
bool kernel_is_killed(pid_t pid);

/* PATH is below the root of the mount, without a slash at its beginning. FLAGS as of open(2). 0 or a negative errno. */
int kernel_open(struct kernel_file *f, pid_t pid, const char *path, int flags);
int kernel_write(struct kernel_file *f, const char *bytes, size_t n, off_t off);
/* INTERRUPT_US: after so long a signal interrupts it; 0: none does. What its FLUSH has said. */
int kernel_close(struct kernel_file *f, uint64_t interrupt_us);
/*
 * Up to SIZE bytes at OFF, malloc'ed, in *RET: the count, 0 at the end, or a negative errno. INTERRUPT_US as of
 * kernel_close.
 */
ssize_t kernel_read_at(struct kernel_file *f, size_t size, off_t off, uint64_t interrupt_us,
		       char **ret);
/* All of a file; *RET is malloc'ed. */
int kernel_read(pid_t pid, const char *path, char **ret);
int kernel_readlink(pid_t pid, const char *path, char **ret);
int kernel_unlink(pid_t pid, const char *path);
int kernel_rename(pid_t pid, const char *from, const char *to);
int kernel_rmdir(pid_t pid, const char *path);
/* Is there something at PATH? 0, -ENOENT ... */
int kernel_stat(pid_t pid, const char *path);
/* How many names a directory has, beside "." and "..". */
int kernel_count(pid_t pid, const char *path);

/*
 * FS is unmounted, and sim_fs NULL: what it has not read yet, and what is parked, is over; it waits for the rest. In a
 * task.
 */
void kernel_unmount(struct fs *fs);
/* kxfs has been killed: whoever waits gets -ENOTCONN. */
void kernel_disconnect(void);
