/* SPDX-License-Identifier: MIT */
/*
 * All accesses to the state directory (STATE). Its disk may be slow or full, or may hang. kxfs
 * accesses the disk only through the functions below, and through those of file.h, which call them.
 * All of them run on threads that may wait: on the pool, or on a FUSE thread between
 * serve_disk_begin and serve_disk_end, never on the I/O thread. Calls that must run in order go
 * through a queue (work.h).
 *
 * Since every access goes through these functions, tests can link another implementation of them.
 *
 * After a crash of the machine, a file or directory has all changes that were made before its last
 * successful disk_sync. Later changes may be lost. A crash of kxfs undoes no completed call.
 */
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "spec/base/base.h"

/*
 * Only threads that may wait for a disk may call these functions. Each function returns 0 or a
 * negative errno, unless its comment states otherwise. AT is an open directory, or AT_FDCWD if PATH
 * is absolute. If PATH ends in a symbolic link, the link is not followed, unless the comment states
 * otherwise. Signals do not interrupt a call. Returned descriptors are close-on-exec, and the
 * caller closes them (cleanup_fd).
 */

/*
 * disk_open opens PATH with the FLAGS of open(2), and returns a descriptor. A new file gets mode
 * 0600, a new directory 0700.
 */
int disk_open(int at, const char *path, int flags);
int disk_mkdir(int at, const char *path);
/* Set *RET to the stat(2) of PATH or, if PATH is "", of AT, which may be any open file. */
int disk_stat(int at, const char *path, struct stat *ret);
/* Return 0 if this process may access PATH with MODE (R_OK, W_OK, X_OK). Follow symbolic links. */
int disk_access(int at, const char *path, int mode);

/* Read or write up to N bytes at the offset OFF. Return the number of bytes. */
ssize_t disk_pread(int fd, void *buf, size_t n, uint64_t off);
ssize_t disk_pwrite(int fd, const void *buf, size_t n, uint64_t off);
/*
 * Write up to N bytes at FD's offset, or at the end of the file if FD was opened with O_APPEND.
 * Return the number of bytes written.
 */
ssize_t disk_append(int fd, const void *buf, size_t n);
int disk_truncate(int fd, uint64_t size);
/*
 * Reserve disk space for the first SIZE bytes of FD. If GROW, also extend the file to SIZE bytes.
 * -EOPNOTSUPP: the file system can't reserve space.
 */
int disk_reserve(int fd, uint64_t size, bool grow);

/* Sync the bytes and the size of the file FD, or the names in the directory FD. */
int disk_sync(int fd);
/* Like disk_sync, but do not sync the file's times and mode. */
int disk_sync_data(int fd);

/* Rename FROM to TO. If TO exists, replace it atomically. */
int disk_rename(int from_at, const char *from, int to_at, const char *to);
/* disk_unlink removes a file, disk_rmdir an empty directory. */
int disk_unlink(int at, const char *path);
int disk_rmdir(int at, const char *path);
int disk_chown(int fd, uid_t uid, gid_t gid);
/* Set the mode of PATH, or of AT if PATH is "". If PATH is a symbolic link, follow it. */
int disk_chmod(int at, const char *path, mode_t mode);
/*
 * Set the mtime of PATH, or of AT if PATH is "", to MTIME_NS (ns since 1970). If MTIME_NS is
 * negative, set the mtime to the current time.
 */
int disk_touch(int at, const char *path, int64_t mtime_ns);

/*
 * Call FN for each name in the directory PATH except "." and "..". FN gets this directory as AT,
 * and a DT_ constant of readdir(3) as TYPE. FN may remove the name. If FN returns a nonzero value,
 * stop and return that value.
 */
typedef int (*disk_name_fn)(void *data, int at, const char *name, unsigned char type);
int disk_list(int at, const char *path, disk_name_fn fn, void *data);
