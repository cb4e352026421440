/* SPDX-License-Identifier: MIT */
/*
 * Whole files and whole writes, for everybody; and the small files of a job in the state directory, each replaced in
 * one synced step, so that a crash or a full disk leaves the old one or the new one, never a part. Any thread may call
 * these, and each call may wait for the disk. Functions return 0 or a negative errno. Public: fs/ uses it too.
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

/* STATE/jobs/ID/NAME (NAME may be NULL: the directory). malloc'ed. */
char *file_path(const char *state_dir, const char *id, const char *name);

/* Write all N bytes where FD stands, or at OFF. After an error some may have been written. */
int file_write_all(int fd, const char *p, size_t n);
int file_pwrite_all(int fd, const char *p, size_t n, off_t off);
/*
 * Read up to N bytes at OFF. Returns how many there are, fewer only where the file ends or where the next bytes can't
 * be read; a negative errno if not even the first can.
 */
ssize_t file_read_at(int fd, void *buf, size_t n, uint64_t off);
/*
 * Like file_read_at, but fewer bytes only where the file ends: bytes that can't be read are an error although some
 * before them could.
 */
ssize_t file_read_sure(int fd, void *buf, size_t n, uint64_t off);
/*
 * Read all that the regular file FD holds, from its first byte; FD's offset is not moved. *RET is malloc'ed and ends
 * with a NUL. -EFBIG: it has more than MAX bytes; -EINVAL: it is no regular file.
 */
int file_read_fd(int fd, size_t max, char **ret, size_t *ret_len);

/* Like file_read_fd, of the file PATH, which may not be a symbolic link (-ELOOP). */
int file_read(const char *path, size_t max, char **ret, size_t *ret_len);
/* Like file_read, of somebody else's file: PATH may be a symbolic link. */
int file_read_other(const char *path, size_t max, char **ret, size_t *ret_len);
/*
 * Make a new file NAME, to be written and renamed. A file of that name is unlinked, not emptied: after a crash of the
 * machine it may also stand under the name that it was renamed to. Returns a descriptor or a negative errno.
 */
int file_open_new(int at, const char *name);
/* Does ERR say that there is no room? */
bool file_is_full(int err);
/* Replace FILE (a name in DIR) by TEXT in one step, and sync it. */
int file_write(const char *dir, const char *file, const char *text, size_t len);
/*
 * Like file_write for a FILE that is not there yet, with one commit of the disk's journal instead of two. A crash of
 * kxfs leaves all of it or nothing, but a power cut before this has returned may leave a FILE that is empty or lacks a
 * part.
 */
int file_make(const char *dir, const char *file, const char *text, size_t len);
/* Keep room on the disk for LEN bytes, so that file_write_last can write FILE in DIR when the disk is full. */
int file_keep_room(const char *dir, const char *file, size_t len);
/*
 * Like file_write; on a full disk it uses the room that was kept, if that is enough. Afterwards no room is kept any
 * more.
 */
int file_write_last(const char *dir, const char *file, const char *text, size_t len);

/*
 * Remove DIR with those of the N files NAMES that are in it. -EEXIST: something else is in it, and nothing was removed.
 */
int file_remove_dir(const char *dir, const char *const names[], size_t n);

/* When this has returned 0, the files that were made and removed in DIR are so on disk, too. */
int file_sync_dir(const char *dir);
/*
 * Move FROM out of the way, to TO or, if TO is taken, to TO.1, TO.2 and so on; *RET (malloc'ed) is the name that it
 * got. Nobody else may make files there meanwhile.
 */
int file_aside(const char *from, const char *to, char **ret);
/* Move FROM to STATE/aside/NAME, or NAME.1 and so on, as file_aside does. The directory is made if it is not there. */
int file_aside_state(const char *from, const char *state_dir, const char *name, char **ret);
/*
 * Like file_aside, for a file that is about to be replaced: FROM keeps its name as well, so that there is such a file
 * at any moment. Where the disk has no links, FROM is moved.
 */
int file_keep_aside(const char *from, const char *to, char **ret);
/* Is PATH the directory DIR or below it? Both canonical. */
bool file_is_below(const char *path, const char *dir);
/* Why a file could not be read, as text for people: -ENOTSUP and -EINVAL come from the reader of its text. */
const char *file_fault(int err);
/* Could a file that could not be read, with ERR, be read at another time? */
bool file_fault_may_pass(int err);
