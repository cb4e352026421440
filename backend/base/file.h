/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes whole files. The small files of jobs in the state directory are replaced in one synced step, so
 * that a crash or a full disk leaves the old or the new version, never a part. Any thread may call these, and each
 * call may wait for the disk. Functions return 0 or a negative errno. Public: fs/ uses it too.
 */
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include "spec/base/base.h"

static inline void file_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}
#define cleanup_dir cleanup(file_closedir)

/* Return the path STATE/output/KEY/NAME, or STATE/output/KEY if NAME is NULL; malloc'ed. KEY is spec_job_key. */
char *file_path(const char *state_dir, const char *key, const char *name);

/* Write all N bytes at FD's offset, or at OFF. After an error some bytes may have been written. */
int file_write_all(int fd, const char *p, size_t n);
int file_pwrite_all(int fd, const char *p, size_t n, off_t off);
/*
 * Read up to N bytes at OFF. Return the number of bytes read. It is lower than N only at the end of the file, or
 * before bytes that can't be read. If the first byte can't be read, return a negative errno.
 */
ssize_t file_read_at(int fd, void *buf, size_t n, uint64_t off);
/*
 * Like file_read_at, but fail if any of the bytes can't be read: the number is lower than N only at the end of the
 * file.
 */
ssize_t file_read_sure(int fd, void *buf, size_t n, uint64_t off);
/*
 * Read the whole regular file FD without moving its offset. *RET is malloc'ed and ends with a NUL.
 * -EFBIG: it has more than MAX bytes; -EINVAL: it is not a regular file.
 */
int file_read_fd(int fd, size_t max, char **ret, size_t *ret_len);

/* Like file_read_fd, of the file PATH, which may not be a symbolic link (-ELOOP). */
int file_read(const char *path, size_t max, char **ret, size_t *ret_len);
/* Like file_read, for a file that kxfs does not own: PATH may be a symbolic link. */
int file_read_other(const char *path, size_t max, char **ret, size_t *ret_len);
/* True if ERR, a negative errno, means that the disk or the quota is full. */
bool file_is_full(int err);
/* Replace FILE (a name in DIR) by TEXT in one step, and sync it. */
int file_write(const char *dir, const char *file, const char *text, size_t len);
/*
 * Like file_write for a FILE that does not exist yet, with one commit of the disk's journal instead of two. After a
 * crash of kxfs, FILE is complete or does not exist. After a power cut before this has returned, FILE may be empty
 * or incomplete.
 */
int file_make(const char *dir, const char *file, const char *text, size_t len);
/*
 * Reserve LEN bytes on the disk, so that file_write_last can write FILE in DIR when the disk is
 * full.
 */
int file_keep_room(const char *dir, const char *file, size_t len);
/*
 * Like file_write, but use the reserved space if the disk is full and the space is enough. Success removes the
 * reservation.
 */
int file_write_last(const char *dir, const char *file, const char *text, size_t len);

/* Remove the reservation for FILE in DIR, if there is one. */
void file_free_room(const char *dir, const char *file);

/* True if NAME in the directory AT is a directory. TYPE is its type from disk_list. */
bool file_is_dir(int at, const char *name, unsigned char type);
/* Sync the directory DIR, after files were created in it or removed from it. */
int file_sync_dir(const char *dir);
/*
 * Move FROM to STATE/aside/NAME or, if that name is taken, to NAME.1, NAME.2 and so on. Create the directory if
 * needed. *RET is the new path, malloc'ed. No other thread may create files there meanwhile.
 */
int file_aside_state(const char *from, const char *state_dir, const char *name, char **ret);
/* True if PATH is DIR or a path below DIR. Both paths are canonical. */
bool file_is_below(const char *path, const char *dir);
/*
 * Return the meaning of ERR, with which reading a file failed, as text for people; static. -ENOTSUP and -EINVAL
 * come from the parser of the file's text.
 */
const char *file_fault(int err);
/* True if reading failed with ERR, but may succeed later. */
bool file_fault_may_pass(int err);
