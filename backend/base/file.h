/* SPDX-License-Identifier: MIT */
/*
 * Whole files and whole writes. Also a job's small files in the state directory: each is replaced
 * in one synced step, so that a crash or a full disk leaves the old or the new version, never a
 * part. Any thread may call these, and each call may wait for the disk. Functions return 0 or a
 * negative errno. Public: fs/ uses it too.
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

/* Return the path STATE/output/KEY/NAME, or the directory's if NAME is NULL. KEY is spec_job_key. malloc'ed. */
char *file_path(const char *state_dir, const char *key, const char *name);

/* Write all N bytes at FD's offset, or at OFF. After an error some bytes may have been written. */
int file_write_all(int fd, const char *p, size_t n);
int file_pwrite_all(int fd, const char *p, size_t n, off_t off);
/*
 * Read up to N bytes at OFF. Return the number of bytes read, which is lower only at the end of the
 * file or before bytes that can't be read. Return a negative errno if not even the first byte can
 * be read.
 */
ssize_t file_read_at(int fd, void *buf, size_t n, uint64_t off);
/*
 * Like file_read_at, but return fewer bytes only at the end of the file: any read error is an
 * error.
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
/* True if ERR means that the disk or the quota is full. */
bool file_is_full(int err);
/* Replace FILE (a name in DIR) by TEXT in one step, and sync it. */
int file_write(const char *dir, const char *file, const char *text, size_t len);
/*
 * Like file_write for a FILE that does not exist yet, with one commit of the disk's journal instead
 * of two. A crash of kxfs leaves all of it or nothing. A power cut before this has returned may
 * leave a FILE that is empty or incomplete.
 */
int file_make(const char *dir, const char *file, const char *text, size_t len);
/*
 * Reserve LEN bytes on the disk, so that file_write_last can write FILE in DIR when the disk is
 * full.
 */
int file_keep_room(const char *dir, const char *file, size_t len);
/*
 * Like file_write, but on a full disk use the reserved space, if that is enough. Afterwards no
 * space is reserved any more.
 */
int file_write_last(const char *dir, const char *file, const char *text, size_t len);

/* Give back the space that is reserved for FILE in DIR, if there is any. */
void file_free_room(const char *dir, const char *file);

/* True if NAME in the directory AT, of TYPE (as disk_list reports it), is a directory. */
bool file_is_dir(int at, const char *name, unsigned char type);
/* Sync the names of the files that were made in and removed from DIR. */
int file_sync_dir(const char *dir);
/*
 * Move FROM to STATE/aside/NAME or, if that name is taken, to NAME.1, NAME.2 and so on. *RET
 * (malloc'ed) is the new path. Create the directory if needed. No other thread may make files there
 * meanwhile.
 */
int file_aside_state(const char *from, const char *state_dir, const char *name, char **ret);
/* True if PATH is the directory DIR or below it. Both are canonical. */
bool file_is_below(const char *path, const char *dir);
/*
 * Return why a file could not be read, as text for people. -ENOTSUP and -EINVAL come from the
 * parser of its text.
 */
const char *file_fault(int err);
/* True if reading may succeed later after it failed with ERR. */
bool file_fault_may_pass(int err);
