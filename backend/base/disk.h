/* SPDX-License-Identifier: MIT */
/*
 * All accesses to the state directory STATE, whose disk may be slow, full or hang. kxfs uses only the calls below,
 * or those of file.h, which use these. They run on the pool, never on the I/O thread or a FUSE thread. Calls that
 * must run in order go through a queue (work.h).
 *
 * Since every access goes through these calls, tests can link another implementation of them.
 *
 * After a crash of the machine a file has at least the contents, and a directory the names, of its last successful
 * disk_sync; later changes may be lost. A crash of kxfs does not undo any completed call.
 */
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "spec/base/base.h"

/*
 * For any thread that may wait for a disk. Unless its comment states otherwise, each function returns 0 or a
 * negative errno. AT is an open directory, or AT_FDCWD for an absolute PATH. A symbolic link at the end of PATH is
 * not followed. A signal does not interrupt a call. The caller closes returned descriptors (cleanup_fd), which are
 * close-on-exec.
 */

/*
 * Return a descriptor; FLAGS are those of open(2). New files and directories have the mode 0600 or
 * 0700.
 */
int disk_open(int at, const char *path, int flags);
int disk_mkdir(int at, const char *path);
/* Get the stat(2) of PATH; if PATH is "", of AT, which may be any open file. */
int disk_stat(int at, const char *path, struct stat *ret);
/* Return 0 if this process may access PATH with MODE (R_OK, W_OK, X_OK). A symbolic link is followed. */
int disk_access(int at, const char *path, int mode);

/* Read or write at the offset OFF. Return the number of bytes, which may be lower than N. */
ssize_t disk_pread(int fd, void *buf, size_t n, uint64_t off);
ssize_t disk_pwrite(int fd, const void *buf, size_t n, uint64_t off);
/*
 * Write at the end of a file that was opened with O_APPEND, else at FD's offset. Return the number of bytes
 * written.
 */
ssize_t disk_append(int fd, const void *buf, size_t n);
int disk_truncate(int fd, uint64_t size);
/*
 * Reserve space for the first SIZE bytes of FD. GROW: also set the file's size to SIZE. -EOPNOTSUPP: the file
 * system can't reserve space.
 */
int disk_reserve(int fd, uint64_t size, bool grow);

/* Sync the bytes and the size of the file FD, or the names in the directory FD. */
int disk_sync(int fd);
/* Like disk_sync, but do not sync the file's times and mode. */
int disk_sync_data(int fd);

/* Rename FROM to TO. If TO exists, it is replaced in one step. */
int disk_rename(int from_at, const char *from, int to_at, const char *to);
/* Remove a file; remove an empty directory. */
int disk_unlink(int at, const char *path);
int disk_rmdir(int at, const char *path);
int disk_chown(int fd, uid_t uid, gid_t gid);
/* Set the mode of PATH; if PATH is "", of AT. */
int disk_chmod(int at, const char *path, mode_t mode);
/* Set the mtime of PATH (if PATH is "", of AT) to MTIME_NS since 1970; -1: to the present time. */
int disk_touch(int at, const char *path, int64_t mtime_ns);

/*
 * Call FN for each name in the directory PATH except "." and "..". The AT of FN is this directory, and TYPE is a
 * DT_ constant of readdir(3). FN may remove the name. If FN returns a value other than 0, disk_list ends and
 * returns it.
 */
typedef int (*disk_name_fn)(void *data, int at, const char *name, unsigned char type);
int disk_list(int at, const char *path, disk_name_fn fn, void *data);
