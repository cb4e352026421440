/* SPDX-License-Identifier: MIT */
/*
 * The owner of the state directory STATE, which may stand on a disk that is slow, full or hangs. All that kxfs does to
 * it is one of the calls below, or one of file.h's, which are made of these; they stand in functions that the pool
 * runs, never on the I/O thread or the FUSE thread. What must happen in order goes through a queue (work.h).
 *
 * Whatever stands behind these calls sees all of the state directory: another one may be linked in its place.
 *
 * What is on disk after a crash of the machine: of a file what disk_sync was called for, of a directory's names those
 * of the moment of its last disk_sync, if it has returned 0. After a crash of kxfs all is as it was called for.
 */
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "spec/base/base.h"

/*
 * Any thread that may wait for a disk. Each returns 0 (or what it says) or a negative errno. AT is an open directory,
 * or AT_FDCWD for an absolute PATH. A symbolic link at the end of PATH is not followed, and a signal ends none of them
 * early. A descriptor is closed by whoever has it, as any other (cleanup_fd); it is close-on-exec.
 */

/* A descriptor; FLAGS as of open(2). What is made is for its owner alone (0600, 0700). */
int disk_open(int at, const char *path, int flags);
int disk_mkdir(int at, const char *path);
/* Of PATH, or with PATH "" of AT, which may be any open file. */
int disk_stat(int at, const char *path, struct stat *ret);
/* May we do MODE (R_OK, W_OK, X_OK) with it, being who we are? A link is followed. */
int disk_access(int at, const char *path, int mode);

/* How many bytes: fewer than N also before the end. */
ssize_t disk_pread(int fd, void *buf, size_t n, uint64_t off);
ssize_t disk_pwrite(int fd, const void *buf, size_t n, uint64_t off);
/* At the end of what was opened with O_APPEND, else where FD stands. */
ssize_t disk_append(int fd, const void *buf, size_t n);
int disk_truncate(int fd, uint64_t size);
/* Keep room for the first SIZE bytes, which (GROW) the file has from now on. -EOPNOTSUPP: the disk has no such call. */
int disk_reserve(int fd, uint64_t size, bool grow);

/* FD's bytes and size, or the names in the directory FD, are on disk when this has returned 0. */
int disk_sync(int fd);
/* The same but for its times and its mode. */
int disk_sync_data(int fd);

/* TO, if it is there, is replaced in one step, or (ONLY_NEW) it is -EEXIST; -EINVAL: the disk can't tell. */
int disk_rename(int from_at, const char *from, int to_at, const char *to, bool only_new);
/* The file FROM has the name TO, too. -EEXIST: something has it already. Some disks can't: then it is another error. */
int disk_link(int from_at, const char *from, int to_at, const char *to);
/* A file, or an empty directory. */
int disk_unlink(int at, const char *path);
int disk_rmdir(int at, const char *path);
int disk_chown(int fd, uid_t uid, gid_t gid);
/* Of PATH, or with PATH "" of AT. */
int disk_chmod(int at, const char *path, mode_t mode);
/* Of PATH, or with PATH "" of AT. MTIME_NS since 1970; -1: now. */
int disk_touch(int at, const char *path, int64_t mtime_ns);

/*
 * Call FN for each name in the directory, but "." and ".."; AT, open, is that directory, and TYPE a DT_ constant of
 * readdir(3). FN may remove the name. When FN returns other than 0 that is the end, and returned.
 */
typedef int (*disk_name_fn)(void *data, int at, const char *name, unsigned char type);
int disk_list(int at, const char *path, disk_name_fn fn, void *data);
