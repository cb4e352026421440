/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes whole files. kxfs replaces small files in the state directory atomically, and
 * syncs them: after a crash, or if the disk is full, a file has either its old or its new contents,
 * never only a part of the new ones. Any thread that may wait for the disk may call these
 * functions. Unless a comment states otherwise, these functions return 0 or a negative errno.
 * Public: fs/ also uses this header.
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
 * Return the path STATE/output/KEY/NAME, or STATE/output/KEY if NAME is NULL; malloc'ed. KEY is the
 * job's spec_job_key.
 */
char *file_path(const char *state_dir, const char *key, const char *name);

/*
 * Write all N bytes: file_write_all at FD's offset, file_pwrite_all at OFF. If this fails, some of
 * the bytes may have been written.
 */
int file_write_all(int fd, const char *p, size_t n);
int file_pwrite_all(int fd, const char *p, size_t n, off_t off);
/*
 * Read up to N bytes at OFF, and return their number. It is lower than N only if the file ends, or
 * if a later byte can't be read. If the first byte can't be read, return a negative errno.
 */
ssize_t file_read_at(int fd, void *buf, size_t n, uint64_t off);
/*
 * Like file_read_at, but fail if any of the bytes can't be read. So the returned number is lower
 * than N only if the file ends.
 */
ssize_t file_read_sure(int fd, void *buf, size_t n, uint64_t off);
/*
 * Read the whole regular file FD without moving its offset. *RET is malloc'ed and ends with a NUL.
 * -EFBIG: the file has more than MAX bytes; -EINVAL: it is not a regular file.
 */
int file_read_fd(int fd, size_t max, char **ret, size_t *ret_len);

/* Like file_read_fd, but read the file PATH. If PATH is a symbolic link, fail with -ELOOP. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_len);
/* Like file_read, for a file that kxfs does not own: PATH may be a symbolic link. */
int file_read_other(const char *path, size_t max, char **ret, size_t *ret_len);
/* True if ERR, a negative errno, means that the disk or the quota is full. */
bool file_is_full(int err);
/* Set the contents of FILE, a name in DIR, to TEXT atomically, and sync them. */
int file_write(const char *dir, const char *file, const char *text, size_t len);
/*
 * Create FILE, which must not exist yet, with the contents TEXT. This is faster than file_write:
 * the file system commits its journal once instead of twice. After a crash of kxfs, FILE is
 * complete or does not exist. If the machine crashes before file_make returns, FILE may be empty or
 * incomplete.
 */
int file_make(const char *dir, const char *file, const char *text, size_t len);
/* Reserve LEN bytes, so that file_write_last can write FILE in DIR even when the disk is full. */
int file_keep_room(const char *dir, const char *file, size_t len);
/*
 * Like file_write, but if the disk is full, use the space that file_keep_room has reserved,
 * provided that it is large enough. After a success, also remove the reservation.
 */
int file_write_last(const char *dir, const char *file, const char *text, size_t len);

/* Remove the reservation for FILE in DIR, if there is one. */
void file_free_room(const char *dir, const char *file);

/*
 * True if NAME in the directory AT is a directory. False for a symbolic link to a directory. TYPE
 * is the type that disk_list has passed for NAME.
 */
bool file_is_dir(int at, const char *name, unsigned char type);
/* Sync the directory DIR, after files were created in it or removed from it. */
int file_sync_dir(const char *dir);
/*
 * Move FROM to STATE/aside/NAME or, if that name is taken, to NAME.1, NAME.2 and so on. Create
 * STATE/aside if needed. Set *RET to the new path, malloc'ed. During this call, no other thread may
 * create files in STATE/aside.
 */
int file_aside_state(const char *from, const char *state_dir, const char *name, char **ret);
/* True if PATH is DIR or a path below DIR. Both paths must be canonical. */
bool file_is_below(const char *path, const char *dir);
/*
 * Return a text for people that describes why a file can't be used. ERR is the error that kxfs got
 * when it read or parsed the file. The parser returns -EINVAL if the file is damaged, and -ENOTSUP
 * if another version of kxfs has written it. Do not free the text.
 */
const char *file_fault(int err);
/* True if reading a file failed with ERR, but a later attempt may succeed. */
bool file_fault_may_pass(int err);
