/* SPDX-License-Identifier: MIT */
/*
 * The owner of the state directory STATE, which may stand on a disk that is slow, full or hangs. All that kxfs does to
 * it is one of the calls below, or one of file.h's, which are made of these; they stand in functions that the pool
 * runs, never on the I/O thread or the FUSE thread. What must happen in order goes through a queue (work.h).
 *
 * Whatever stands behind these calls sees all of the state directory: another one may be linked in its place.
 *
 * After a crash of the machine a file has what it had when disk_sync last returned 0 for it, and a directory the names
 * that it had then; anything later may be there or not. A crash of kxfs undoes none of these calls.
 */
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "spec/base/base.h"

/*
 * For any thread that may wait for a disk. Each function returns 0 (or what its comment says) or a negative errno. AT
 * is an open directory, or AT_FDCWD for an absolute PATH. A symbolic link at the end of PATH is not followed, and a
 * signal ends no call early. Whoever opens a descriptor closes it, as any other (cleanup_fd); it is close-on-exec.
 */

/*
 * Returns a descriptor; FLAGS are those of open(2). A file or directory that is made is for its owner alone (0600,
 * 0700).
 */
int disk_open(int at, const char *path, int flags);
int disk_mkdir(int at, const char *path);
/* What stat(2) says of PATH, or with PATH "" of AT, which may be any open file. */
int disk_stat(int at, const char *path, struct stat *ret);
/* May this process do MODE (R_OK, W_OK, X_OK) with PATH? A link is followed. */
int disk_access(int at, const char *path, int mode);

/* Returns how many bytes were read: sometimes fewer than N although the file goes on. */
ssize_t disk_pread(int fd, void *buf, size_t n, uint64_t off);
ssize_t disk_pwrite(int fd, const void *buf, size_t n, uint64_t off);
/* Write at the end of a file that was opened with O_APPEND, else where FD stands. */
ssize_t disk_append(int fd, const void *buf, size_t n);
int disk_truncate(int fd, uint64_t size);
/*
 * Keep room for the first SIZE bytes; with GROW the file has that size from now on. -EOPNOTSUPP: the disk has no such
 * call.
 */
int disk_reserve(int fd, uint64_t size, bool grow);

/* When this has returned 0, the bytes and the size of the file FD, or the names in the directory FD, are on disk. */
int disk_sync(int fd);
/* Like disk_sync, but the file's times and mode may be missing. */
int disk_sync_data(int fd);

/* If TO is there, it is replaced in one step. */
int disk_rename(int from_at, const char *from, int to_at, const char *to);
/* Give the file FROM the name TO as well. -EEXIST: TO is taken. A disk that has no links answers with another error. */
int disk_link(int from_at, const char *from, int to_at, const char *to);
/* Remove a file, or an empty directory. */
int disk_unlink(int at, const char *path);
int disk_rmdir(int at, const char *path);
int disk_chown(int fd, uid_t uid, gid_t gid);
/* Set the mode of PATH, or with PATH "" that of AT. */
int disk_chmod(int at, const char *path, mode_t mode);
/* Set the mtime of PATH, or with PATH "" that of AT, to MTIME_NS since 1970; -1: to now. */
int disk_touch(int at, const char *path, int64_t mtime_ns);

/*
 * Call FN for each name in the directory but "." and ".."; FN is told the open directory as AT, and a DT_ constant of
 * readdir(3) as TYPE. FN may remove the name. If FN returns other than 0, the listing ends and returns that value.
 */
typedef int (*disk_name_fn)(void *data, int at, const char *name, unsigned char type);
int disk_list(int at, const char *path, disk_name_fn fn, void *data);
