/* SPDX-License-Identifier: MIT */
/*
 * All accesses to the state directory go through these functions and file.h, so that tests can
 * replace them. The disk may be slow or full, or may hang. So call these functions on the pool, or
 * on a FUSE thread between serve_disk_begin and serve_disk_end, never on the I/O thread. Calls that
 * must run in order go through a queue (work.h).
 *
 * After a crash of the machine, a file or directory has all changes before its last successful
 * disk_sync, and perhaps later ones. A crash of kxfs undoes no completed call.
 */
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "spec/base/base.h"

/*
 * Unless a comment states otherwise, functions return 0 or a negative errno, and don't follow PATH
 * if it is a symbolic link. AT is an open directory, or AT_FDCWD if PATH is absolute. Returned
 * descriptors are close-on-exec; the caller closes them (cleanup_fd). Calls don't fail with EINTR.
 */

/* FLAGS are those of open(2). New files have mode 0600, new directories 0700. */
int disk_open(int at, const char *path, int flags);
int disk_mkdir(int at, const char *path);
/* Stat PATH. If PATH is "", stat AT instead, which may then be any open file. */
int disk_stat(int at, const char *path, struct stat *ret);
/* Return 0 if kxfs may access PATH with MODE (R_OK, W_OK, X_OK). Follow symbolic links. */
int disk_access(int at, const char *path, int mode);

/* Read or write up to N bytes at OFF. Return the number of bytes. */
ssize_t disk_pread(int fd, void *buf, size_t n, uint64_t off);
ssize_t disk_pwrite(int fd, const void *buf, size_t n, uint64_t off);
/* Write up to N bytes at FD's offset, or at the end of a file opened with O_APPEND. */
ssize_t disk_append(int fd, const void *buf, size_t n);
int disk_truncate(int fd, uint64_t size);
/*
 * Reserve disk space for the first SIZE bytes. If GROW, also extend the file to SIZE bytes.
 * -EOPNOTSUPP: the file system can't reserve space.
 */
int disk_reserve(int fd, uint64_t size, bool grow);

/* Sync the bytes and size of a file, or the names in a directory. */
int disk_sync(int fd);
/* Like disk_sync, but don't sync the file's times and mode. */
int disk_sync_data(int fd);

/* If TO exists, replace it atomically. */
int disk_rename(int from_at, const char *from, int to_at, const char *to);
int disk_unlink(int at, const char *path);
int disk_rmdir(int at, const char *path);
int disk_chown(int fd, uid_t uid, gid_t gid);
/* Set the mode of PATH, or of AT if PATH is "". Follow symbolic links. */
int disk_chmod(int at, const char *path, mode_t mode);
/*
 * Set the mtime of PATH, or of AT if PATH is "", in ns since 1970. If MTIME_NS is negative, set
 * mtime and atime to the current time.
 */
int disk_touch(int at, const char *path, int64_t mtime_ns);

/*
 * Call FN for each name in PATH except "." and "..". If FN returns nonzero, stop and return this
 * value. FN receives PATH's descriptor as AT, and a DT_ constant of readdir(3) as TYPE. FN may
 * remove NAME.
 */
typedef int (*disk_name_fn)(void *data, int at, const char *name, unsigned char type);
int disk_list(int at, const char *path, disk_name_fn fn, void *data);
