/* SPDX-License-Identifier: MIT */
/*
 * The files of submit/ or dryrun/ as bytes: their table by name, their bounds, who has them open for writing, and
 * which of their contents was launched. The bytes lie in STATE/submit/NAME exactly as they were written. What a
 * content becomes is not known here (verdict.h), nor how it is launched (launch.h).
 *
 * An upload is an object of its own that outlives its name, as a file does on any file system. Its content has a
 * number that grows with each change of the bytes. A launch is of such a number, so a verdict that comes late does not
 * count for bytes that were written since. On disk a content is named by the inode number of the file and a digest of
 * the bytes (record.h); after a start the digest is compared with the bytes when it is first needed.
 *
 * The FUSE thread changes bytes, names and attributes. The I/O thread says what was launched, replaces a document of
 * dryrun/ by its manifest, and removes what expires. All that both touch is under the lock of the table, a leaf.
 */
#ifndef KXFS_FS_SUBMIT_UPLOAD_H
#define KXFS_FS_SUBMIT_UPLOAD_H

#include <limits.h>
#include <sys/stat.h>

#include "fs/submit/record.h"

/* Files of one table. */
#define UPLOADS_MAX 10000

struct uploads;
struct upload;

/* A handle through which a file may be written; zeroed by its owner, set by the functions below. FUSE thread. */
struct upload_writer {
	pid_t opener;	 /* the process; 0: not known */
	bool dirty;	 /* it has changed the bytes since its last submission */
	uint64_t launch; /* number of the launch that it waits for; 0: none; under the lock */
	bool spent; /* its launch was accepted: nothing more is written through it; under the lock */
	struct upload_writer *prev, *next;
};

/*
 * The files in DIR (DIR_FD, borrowed, is open on it). US: whose files those of this process's user are shown as. 0 or a
 * negative errno. Before the mount is up.
 */
int uploads_new(const char *dir, int dir_fd, struct record_owner us, struct uploads **ret);
void uploads_free(struct uploads *all); /* nobody has a reference any more; NULL is allowed */

/* When the list of names changed last, ns. Any thread, as all whose comment does not say otherwise. */
int64_t uploads_changed(struct uploads *all);
/* Call FN for each name, under the lock. */
void uploads_visit(struct uploads *all, void (*fn)(void *data, const char *name), void *data);
/*
 * The names of files that nobody has touched since BEFORE, ns, and whose content was launched; *RET and its items are
 * malloc'ed.
 */
size_t uploads_list_old(struct uploads *all, int64_t before, char ***ret);

/* The file called NAME as a reference; NULL: none. */
struct upload *upload_find(struct uploads *all, const char *name);
/* Make the file NAME: *RET is a reference, and open (upload_close). -ENOSPC: there are too many. FUSE thread. */
int upload_make(struct uploads *all, const char *name, mode_t mode, struct record_owner owner,
		struct upload **ret);
struct upload *upload_ref(struct upload *u);
void upload_unref(struct upload *u); /* NULL is allowed */
static inline void upload_unrefp(struct upload **u)
{
	upload_unref(*u);
}
#define cleanup_upload cleanup(upload_unrefp)

/* Its name now; false: it has none any more. */
bool upload_name(struct upload *u, char ret[NAME_MAX + 1]);
/* Give it another name; a file that has that one loses it. FUSE thread; the I/O thread when it was asked to. */
int upload_rename(struct upload *u, const char *name);
int upload_remove(struct upload *u);
/* Remove it if nobody has it open and what is in it was launched; else -EBUSY. I/O thread. */
int upload_expire(struct upload *u);

/*
 * Open its file, until upload_close was called as often as this. -ESTALE: the name means another file by now. FUSE
 * thread.
 */
int upload_open(struct upload *u);
void upload_close(struct upload *u);

/* --- bytes; of an open one; FUSE thread --- */

ssize_t upload_read(struct upload *u, char *buf, size_t size, off_t off);
/* 0 or a negative errno: -EFBIG, -ENOSPC (its bounds), -EBUSY (it is being replaced); some may have been written. */
int upload_write(struct upload *u, const char *buf, size_t size, off_t off);
int upload_truncate(struct upload *u, off_t size);
uint64_t upload_size(struct upload *u);
/* All of it, malloc'ed and NUL-terminated. 0 or a negative errno. */
int upload_bytes(struct upload *u, char **ret, size_t *ret_len);
/* Sync its bytes. May wait: on the pool. 0 or a negative errno. */
int upload_sync(struct upload *u);
/*
 * Why its content is not what its writer meant: an errno, ECANCELED for a writer that was killed; 0: it is. A failed
 * write sets this until the file is emptied, a killed writer until the next write.
 */
int upload_flaw(struct upload *u);
void upload_set_flaw(struct upload *u, int flaw);

/* --- attributes; of an open one; FUSE thread --- */

uint64_t upload_ino(const struct upload *u);
/* Type and permissions (before umask), owner, size, times. */
void upload_stat(struct upload *u, struct stat *st);
/* TO_SET has FUSE_SET_ATTR_* of mode, owner and times. */
int upload_set_attr(struct upload *u, const struct stat *attr, int to_set);

/* --- writers; FUSE thread --- */

/* OPENER: the process that has opened W; 0: not known. */
void upload_add_writer(struct upload *u, struct upload_writer *w, pid_t opener);
/*
 * Somebody has written: its record is to say so until it is launched, or until upload_end_writing, since a mount that
 * ends before that leaves only a part of what was meant. True: the record does not say it yet.
 */
bool upload_begin_writing(struct upload *u);
/* True: the record says that somebody writes, but nobody has it open for writing any more. */
bool upload_end_writing(struct upload *u);
/* May the record of its name say that a content of it was launched, be it this one or an earlier one? */
bool upload_has_digest(struct upload *u);
/* W has changed the bytes. */
void upload_set_dirty(struct upload_writer *w);
void upload_remove_writer(struct upload *u, struct upload_writer *w);
/* Another writer of the process that opened W; NULL: none. */
struct upload_writer *upload_sibling(struct upload *u, struct upload_writer *w);
/* Has W, or another writer of its process, changed the bytes since its last submission? */
bool upload_is_dirty(struct upload *u, struct upload_writer *w);
/* Has the content that was written through W become a job, or may it become one now? */
bool upload_is_spent(struct upload *u, struct upload_writer *w);
/* Does somebody still write it, or is its content being launched? */
bool upload_is_busy(struct upload *u);

/* --- what became of the content --- */

/*
 * All that the process of W has written is part of launch LAUNCH; 0: it need not be launched any more. W may be NULL.
 * Returns the number of the content, whose launch is under way now unless LAUNCH is 0. FUSE thread.
 */
uint64_t upload_launching(struct upload *u, struct upload_writer *w, uint64_t launch);
/* Launch LAUNCH of CONTENT has ended. DIGEST is that of the bytes if they were accepted; NULL: they were refused. */
void upload_concluded(struct upload *u, uint64_t launch, uint64_t content, const char *digest);
/* At the start: its content counts as launched if it is TEXT; NULL: it does whatever it is. */
void upload_recover(struct upload *u, const char *text, size_t len);
/* Was its content launched, or (dryrun/) is it a manifest that was made or is being made? May read the file. */
bool upload_is_launched(struct upload *u);
/* Is CONTENT still its content? */
bool upload_is_current(struct upload *u, uint64_t content);
/*
 * Replace CONTENT by TEXT, its manifest, which counts as launched. If there is other content by now, that
 * stays. 0 or a negative errno. It is open; I/O thread.
 */
int upload_replace(struct upload *u, uint64_t content, const char *text);

/* Fill the part of R, the record of NAME, that is about the file of that name. */
void uploads_fill_record(struct uploads *all, const char *name, struct record *r);
/* At the start: take from R, the record of NAME, which content of which file was launched. */
void uploads_take_record(struct uploads *all, const char *name, const struct record *r);

#endif
