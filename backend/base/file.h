/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes whole files. Call these functions only on threads that may wait for a disk.
 * They continue partial reads and writes. Unless a comment states otherwise, they return 0 or a
 * negative errno. Public: fs/ also uses this header.
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

/*
 * Return STATE/output/KEY/NAME, or STATE/output/KEY if NAME is NULL; malloc'ed. KEY is the job's
 * spec_job_key.
 */
char *file_path(const char *state_dir, const char *key, const char *name);

/* Write all N bytes, at FD's offset or at OFF. If this fails, some bytes may have been written. */
int file_write_all(int fd, const char *p, size_t n);
int file_pwrite_all(int fd, const char *p, size_t n, off_t off);
/*
 * Read up to N bytes at OFF, and return their number. If the first byte can be read but a later one
 * can't, return the number of bytes before it.
 */
ssize_t file_read_at(int fd, void *buf, size_t n, uint64_t off);
/* Like file_read_at, but fail if any byte before the end of the file can't be read. */
ssize_t file_read_sure(int fd, void *buf, size_t n, uint64_t off);
/*
 * Read the whole regular file FD without moving its offset. *RET is malloc'ed and ends with a NUL.
 * -EFBIG: the file has more than MAX bytes. -EINVAL: it is not a regular file.
 */
int file_read_fd(int fd, size_t max, char **ret, size_t *ret_len);

/* Like file_read_fd, for the file PATH. -ELOOP: PATH is a symbolic link. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_len);
/* Like file_read, for a file that kxfs does not own. Follow symbolic links. */
int file_read_other(const char *path, size_t max, char **ret, size_t *ret_len);
/* True if ERR, a negative errno, means that the disk or the quota is full. */
bool file_is_full(int err);
/* Atomically replace the contents of FILE, a name in DIR, and sync them. */
int file_write(const char *dir, const char *file, const char *text, size_t len);
/*
 * Create FILE, which must not exist. This is faster than file_write: the file system commits its
 * journal once instead of twice. After a crash of kxfs, FILE is complete or does not exist. After a
 * crash of the machine during this call, FILE may be incomplete.
 */
int file_make(const char *dir, const char *file, const char *text, size_t len);
/* Reserve disk space for LEN bytes, so that file_write_last can write FILE to a full disk. */
int file_keep_room(const char *dir, const char *file, size_t len);
/*
 * Like file_write, but use the reservation if the disk is full. After a success, FILE has no
 * reservation any more.
 */
int file_write_last(const char *dir, const char *file, const char *text, size_t len);

/* Remove the reservation for FILE, if there is one. */
void file_free_room(const char *dir, const char *file);

/* Return false for a symbolic link. TYPE is from disk_list. */
bool file_is_dir(int at, const char *name, unsigned char type);
/* Call this after files were created in DIR or removed from it. */
int file_sync_dir(const char *dir);
/*
 * Move FROM to STATE/aside/NAME or, if that name is taken, to NAME.1, NAME.2 and so on. Set *RET to
 * the new path, malloc'ed. During this call, no other thread may create files in STATE/aside.
 */
int file_aside_state(const char *from, const char *state_dir, const char *name, char **ret);
/* True if PATH is DIR or a path below DIR. Both paths must be canonical. */
bool file_is_below(const char *path, const char *dir);
/*
 * Return a static text for people about why a file can't be used. ERR is the error of reading or
 * parsing the file. Parsers return -EINVAL if the file is damaged, and -ENOTSUP if another version
 * of kxfs has written it.
 */
const char *file_fault(int err);
/* True if reading the file may succeed later. */
bool file_fault_may_pass(int err);
