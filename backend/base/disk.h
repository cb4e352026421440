/* SPDX-License-Identifier: MIT */
/*
 * The owner of the state directory STATE, whose disk may be slow, full or hang. kxfs accesses it
 * only by the calls below, or by those of file.h, which use them. They run on the pool, never on
 * the I/O thread or a FUSE thread. Calls that must run in order go through a queue (work.h).
 *
 * These calls see every access to the state directory, so that another implementation may be linked
 * in their place.
 *
 * After a crash of the machine a file has the contents of the last successful disk_sync, and a
 * directory has the names of its last one; later changes may be there or not. A crash of kxfs
 * undoes none of these calls.
 */
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "spec/base/base.h"

/*
 * For any thread that may wait for a disk. Each function returns 0 (or what its comment states) or
 * a negative errno. AT is an open directory, or AT_FDCWD for an absolute PATH. A symbolic link at
 * the end of PATH is not followed, and a signal does not interrupt a call. The caller closes
 * returned descriptors (cleanup_fd), which are close-on-exec.
 */

/*
 * Return a descriptor; FLAGS are those of open(2). New files and directories have the mode 0600 or
 * 0700.
 */
int disk_open(int at, const char *path, int flags);
int disk_mkdir(int at, const char *path);
/* Call stat(2) on PATH, or with PATH "" on AT, which may be any open file. */
int disk_stat(int at, const char *path, struct stat *ret);
/* Check if this process may access PATH with MODE (R_OK, W_OK, X_OK). A link is followed. */
int disk_access(int at, const char *path, int mode);

/* Return the number of bytes read: sometimes fewer than N before the end of the file. */
ssize_t disk_pread(int fd, void *buf, size_t n, uint64_t off);
ssize_t disk_pwrite(int fd, const void *buf, size_t n, uint64_t off);
/* Write at the end of a file that was opened with O_APPEND, else at FD's offset. */
ssize_t disk_append(int fd, const void *buf, size_t n);
int disk_truncate(int fd, uint64_t size);
/*
 * Reserve space for the first SIZE bytes; GROW also sets the file's size. -EOPNOTSUPP: the disk has
 * no such call.
 */
int disk_reserve(int fd, uint64_t size, bool grow);

/* Sync the bytes and the size of the file FD, or the names in the directory FD. */
int disk_sync(int fd);
/* Like disk_sync, but without the file's times and mode. */
int disk_sync_data(int fd);

/* Replace TO, if it exists, in one step. */
int disk_rename(int from_at, const char *from, int to_at, const char *to);
/* Remove a file, or an empty directory. */
int disk_unlink(int at, const char *path);
int disk_rmdir(int at, const char *path);
int disk_chown(int fd, uid_t uid, gid_t gid);
/* Set the mode of PATH, or with PATH "" that of AT. */
int disk_chmod(int at, const char *path, mode_t mode);
/* Set the mtime of PATH, or with PATH "" that of AT, to MTIME_NS since 1970; -1: to now. */
int disk_touch(int at, const char *path, int64_t mtime_ns);

/*
 * Call FN for each name in the directory except "." and "..". AT is the open directory and TYPE a
 * DT_ constant of readdir(3). FN may remove the name. If FN returns a value other than 0, end the
 * listing and return that value.
 */
typedef int (*disk_name_fn)(void *data, int at, const char *name, unsigned char type);
int disk_list(int at, const char *path, disk_name_fn fn, void *data);
