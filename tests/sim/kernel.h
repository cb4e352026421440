/* SPDX-License-Identifier: MIT */
/*
 * The kernel, for those who use the mount: each call is a request, or some, to the handlers of fs/vfs/ops.c. All are
 * for tasks, which wait for the answer; -ENOTCONN: kxfs has gone meanwhile, or is not there; -EINTR: a signal has come.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

struct fs;

struct kernel_open;

/* A descriptor of a process. */
struct kernel_file {
	pid_t pid;
	unsigned life; /* of kxfs, in which it was opened */
	struct kernel_open *of;
	struct kernel_file *next;
};

/* What kxfs can know of a process by its number. */
enum kernel_sight {
	KERNEL_SEEN,
	KERNEL_HIDDEN,	  /* not which descriptors it has: it is another user's */
	KERNEL_ELSEWHERE, /* nothing: it is in another pid namespace, its number is 0 */
};

/* A new process. */
pid_t kernel_fork(enum kernel_sight sight);
/* From now on a signal may interrupt what it waits for, and it may wait for it no more than a while. */
void kernel_disturb(pid_t pid);
/* It asks for nothing any more but what comes with closing what it has open, which is left to who calls. */
void kernel_kill(pid_t pid);
bool kernel_is_killed(pid_t pid); /* as far as /proc says */
bool kernel_is_elsewhere(pid_t pid);

/* PATH is below the root of the mount, without a slash at its beginning. FLAGS as of open(2). 0 or a negative errno. */
int kernel_open(struct kernel_file *f, pid_t pid, const char *path, int flags);
/* RET is one more descriptor of the same open file, of PID. */
void kernel_dup(const struct kernel_file *from, pid_t pid, struct kernel_file *ret);
int kernel_write(struct kernel_file *f, const char *bytes, size_t n, off_t off);
int kernel_fsync(struct kernel_file *f);
int kernel_truncate(struct kernel_file *f, off_t size);
/* INTERRUPT_US: after so long a signal interrupts it; 0: none does. What its FLUSH has said. */
int kernel_close(struct kernel_file *f, uint64_t interrupt_us);
/* F, which was on its way to another process, is nobody's any more: that is no close, and not told (docs/facts.md). */
void kernel_drop(struct kernel_file *f);
/*
 * Up to SIZE bytes at OFF, malloc'ed, in *RET: the count, 0 at the end, or a negative errno. INTERRUPT_US as of
 * kernel_close.
 */
ssize_t kernel_read_at(struct kernel_file *f, size_t size, off_t off, uint64_t interrupt_us,
		       char **ret);
/* All of a file; *RET is malloc'ed. */
int kernel_read(pid_t pid, const char *path, char **ret);
int kernel_readlink(pid_t pid, const char *path, char **ret);
int kernel_symlink(pid_t pid, const char *target, const char *path);
int kernel_unlink(pid_t pid, const char *path);
int kernel_rename(pid_t pid, const char *from, const char *to);
int kernel_rmdir(pid_t pid, const char *path);
/* Is there something at PATH? 0, -ENOENT ... */
int kernel_stat(pid_t pid, const char *path);
/* What stat(2) says of it, or a negative errno. */
off_t kernel_size(pid_t pid, const char *path);

/* The names of a directory, beside "." and "..". */
struct kernel_names {
	struct {
		char *name;
		bool dir;
	} * v;
	size_t n;
};

int kernel_list(pid_t pid, const char *path, struct kernel_names *ret);
void kernel_names_clear(struct kernel_names *names);

/*
 * FS is unmounted, and sim_fs NULL: what it has not read yet, and what is parked, is over; it waits for the rest. In a
 * task.
 */
void kernel_unmount(struct fs *fs);
/* kxfs has been killed: whoever waits gets -ENOTCONN. */
void kernel_disconnect(void);
