/* SPDX-License-Identifier: MIT */
/*
 * Small files of a job in the state directory, each replaced in one synced step, so that a crash or
 * a full disk leaves the old or the new one, never a part. Any thread; all may wait for the disk.
 */
#ifndef KXFS_BACKEND_FILE_H
#define KXFS_BACKEND_FILE_H

#include "spec/base.h"

/* STATE/jobs/ID/NAME (NAME may be NULL: the directory). malloc'ed; NULL: no memory. */
char *file_path(const char *state_dir, const char *id, const char *name);
/* Write all N bytes where FD stands. 0 or a negative errno: some may have been written. */
int file_write_all(int fd, const char *p, size_t n);
/* Replace FILE (a short name) in DIR by TEXT in one step, synced. 0 or a negative errno. */
int file_write(const char *dir, const char *file, const char *text, size_t len);
/* At most MAX bytes, else -EFBIG. *RET is malloc'ed and NUL-terminated. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_len);
/* The same of a file that is somebody else's: PATH may be a symbolic link. -EINVAL: no regular file. */
int file_read_other(const char *path, size_t max, char **ret, size_t *ret_len);
/*
 * Move FROM out of the way, to TO or, if that is there, TO.1, TO.2 and so on. 0 and the place (malloc'ed), or a
 * negative errno. Nobody else may make files there meanwhile.
 */
int file_aside(const char *from, const char *to, char **ret);
/* What to say of a file that could not be read, for the errno of reading (-ENOTSUP, -EINVAL) what it says. */
const char *file_fault(int err);
/* What was made and removed in DIR is on disk. */
int file_sync_dir(const char *dir);

#endif
