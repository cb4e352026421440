/* SPDX-License-Identifier: MIT */
/*
 * The simulated kernel, for tasks that use the mount: each call sends one or more requests to the
 * handlers of fs/vfs/ops.c and waits for the answer. A call fails with -ENOTCONN if kxfs does not
 * run or ends before it answers, and with -EINTR after a signal.
 */
#pragma once

#include <sys/types.h>

#include "spec/base/base.h"

struct fs;

struct kernel_open;

/* A descriptor of a process. */
struct kernel_file {
	pid_t pid;
	unsigned life; /* the life of kxfs in which it was opened */
	struct kernel_open *of;
	struct kernel_file *next;
};

/* What kxfs can find out about a process by its pid. */
enum kernel_sight {
	KERNEL_SEEN,
	KERNEL_HIDDEN,	  /* another user's process: its descriptors are not visible */
	KERNEL_ELSEWHERE, /* in another pid namespace: kxfs sees only the pid 0 */
};

/* Start a process. */
pid_t kernel_fork(enum kernel_sight sight);
/* From now on, signals interrupt some requests of PID. */
void kernel_disturb(pid_t pid);
/*
 * Kill PID. From now on it makes only the requests that close its descriptors. The caller must
 * close the descriptors.
 */
void kernel_kill(pid_t pid);
bool kernel_is_killed(pid_t pid); /* true once /proc would show it as killed */
bool kernel_is_elsewhere(pid_t pid);

/* Open PATH below the root of the mount. FLAGS as of open(2). Return 0 or a negative errno. */
int kernel_open(struct kernel_file *f, pid_t pid, const char *path, int flags);
/* Duplicate FROM: make RET a descriptor of process PID for the same open file. */
void kernel_dup(const struct kernel_file *from, pid_t pid, struct kernel_file *ret);
int kernel_write(struct kernel_file *f, const char *bytes, size_t n, off_t off);
int kernel_fsync(struct kernel_file *f);
int kernel_truncate(struct kernel_file *f, off_t size);
/*
 * Close F and return the result of its FLUSH. A signal interrupts the close after INTERRUPT_US,
 * unless that is 0.
 */
int kernel_close(struct kernel_file *f, uint64_t interrupt_us);
/*
 * Drop F, which was sent to another process that never received it: the kernel sends no FLUSH
 * (docs/facts.md).
 */
void kernel_drop(struct kernel_file *f);
/*
 * Read up to SIZE bytes at OFF into *RET, malloc'ed. Return the count, 0 at the end, or a negative
 * errno. INTERRUPT_US as in kernel_close.
 */
ssize_t kernel_read_at(struct kernel_file *f, size_t size, off_t off, uint64_t interrupt_us,
		       char **ret);
/* Read the whole file; *RET is malloc'ed. */
int kernel_read(pid_t pid, const char *path, char **ret);
int kernel_readlink(pid_t pid, const char *path, char **ret);
int kernel_symlink(pid_t pid, const char *target, const char *path);
int kernel_unlink(pid_t pid, const char *path);
int kernel_rename(pid_t pid, const char *from, const char *to);
int kernel_rmdir(pid_t pid, const char *path);
/* Return 0 if PATH exists, or a negative errno. */
int kernel_stat(pid_t pid, const char *path);
/* Return the st_size of PATH, or a negative errno. */
off_t kernel_size(pid_t pid, const char *path);

/* The names in a directory, except "." and "..". */
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
 * Unmount FS. The caller has set sim_fs to NULL. Answer requests that kxfs has not read or has
 * parked with -ENOTCONN, and wait until all others are answered. Call this in a task.
 */
void kernel_unmount(struct fs *fs);
/* After a kill of kxfs, answer all waiting requests with -ENOTCONN. */
void kernel_disconnect(void);
