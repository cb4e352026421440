/* SPDX-License-Identifier: MIT */
/*
 * A file of submit/ or dryrun/ as bytes: its content, its bounds, and who writes it. Its name, and what became of its
 * content, stand in names.h.
 *
 * While a file is open, and until what was written is on disk, its bytes are in memory: reading and writing never wait.
 * The disk has them in STATE/submit/NAME exactly as they were written. upload_save and upload_load run on the pool, one
 * at a time, in the order of the directory's queue (save.h), since only there the file's name on disk is known.
 *
 * A file is an object of its own that outlives its name, as on any file system. Its content has a version, a number
 * that grows with each change of the bytes; a launch is of one version, so a verdict that comes late does not count for
 * bytes that were written since.
 *
 * One process at a time writes a file. A writer is in the way of others from its first change until it is done (its
 * content is launched, or it has closed the file); whoever else changes, removes or replaces the file makes those who
 * have it open lose it: they write no more, and their close fails. So no content is ever a mixture.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "backend/base/lock.h"
#include "fs/submit/record.h"

/* The most bytes of files that are in memory at once. */
#define UPLOADS_MAX_MEMORY (256u << 20)

struct uploads; /* what the files of one directory have in common */
struct upload;

/* A handle through which a file may be written; zeroed by its owner, set by the functions below. Under the lock. */
struct upload_writer {
	pid_t opener; /* the process that opened it; 0: not known */
	/* That process can't be looked at, so its closes alone tell when it is done (holders.h). */
	bool unseen;
	bool dirty; /* it has changed the bytes since its last submission */
	/* Another process has changed, removed or replaced the file, so this writer's bytes are not there. */
	bool lost;
	bool spent;	 /* its launch was accepted, so nothing more is written through it */
	uint64_t launch; /* number of the launch that it waits for; 0: none */
	struct upload_writer *prev, *next;
};

/*
 * DIR_FD, borrowed, is the directory; LOCK, borrowed, guards its files and their names (names.h). US: files of this
 * process's user are shown as owned by US.
 */
struct uploads *uploads_new(int dir_fd, struct record_owner us, struct lock *lock);
/* To be called when nobody has a file any more; NULL is allowed. */
void uploads_free(struct uploads *all);

/* --- life; any thread, as all whose comment does not say otherwise --- */

/* Make a new empty file, to be saved as NAME; returns a reference. TAG, by which its node is known, is copied. */
struct upload *upload_new(struct uploads *all, const char *tag, const char *name, mode_t mode,
			  struct record_owner owner);
/* The file NAME that is on disk already, with the attributes ST. To be called before the mount is up. */
struct upload *upload_found(struct uploads *all, const char *name, const struct stat *st);
struct upload *upload_ref(struct upload *u);
void upload_unref(struct upload *u); /* NULL is allowed */
define_cleanup(upload_unrefp, struct upload *, upload_unref)
#define cleanup_upload cleanup(upload_unrefp)
const char *upload_tag(const struct upload *u);

/*
 * Open U: keep its bytes in memory until upload_close was called as often as this. -EAGAIN: it is open, but upload_load
 * must run before a byte is touched. It is not open after -ENFILE (too much is in memory) and -ESTALE (it has no name
 * any more). EMPTY: its bytes are not needed, since it is emptied next; then -EAGAIN does not happen.
 */
int upload_open(struct upload *u, bool empty);
void upload_close(struct upload *u);

/* --- bytes; of an open file --- */

size_t upload_read(struct upload *u, char *buf, size_t size, off_t off);
/* -EFBIG, -ENOSPC: the file is at its bounds, and its content has a flaw then. */
int upload_write(struct upload *u, const char *buf, size_t size, off_t off);
int upload_truncate(struct upload *u, off_t size);
uint64_t upload_size(struct upload *u);
/* Copy all bytes of U, malloc'ed and NUL-terminated, with the version. */
void upload_copy(struct upload *u, char **ret, size_t *ret_len, uint64_t *ret_version);
bool upload_is_version(struct upload *u, uint64_t version);
/*
 * Make TEXT the content of U if that is still of VERSION; the disk has TEXT already. Returns the new version; 0: the
 * content is another.
 */
uint64_t upload_replace(struct upload *u, uint64_t version, const char *text);
/*
 * Why the content of U is not what its writer meant: an errno, which is ECANCELED if the writer was killed, and EINVAL
 * if it may have been killed and the content breaks off; 0: it is what was meant. A failed write sets this until the
 * file is emptied, a killed writer until the next write.
 */
int upload_flaw(struct upload *u);
/* Does the content end as a text does, with a newline, or as JSON does, with the bracket that closes it? */
bool upload_is_whole(struct upload *u);
void upload_set_flaw(struct upload *u, int flaw);

/* --- attributes --- */

/* Set ST to the type and permissions (before umask), owner, size and times of U. */
void upload_stat(struct upload *u, struct stat *st);
/*
 * Set the mode, owner and times in ATTR that TO_SET names by FUSE_SET_ATTR_*. 0, or -EPERM: only root gives files away.
 */
int upload_set_attr(struct upload *u, const struct stat *attr, int to_set);

/* --- writers --- */

/*
 * Enter W into the list of U. OPENER: the process that has opened it; 0: not known. If U has no name any more, W has
 * lost it.
 */
void upload_add_writer(struct upload *u, struct upload_writer *w, pid_t opener);
void upload_remove_writer(struct upload *u, struct upload_writer *w);
/*
 * The process that has opened W can't be looked at. STRANGE: its number does not mean a process of this pid namespace
 * either.
 */
void upload_set_unseen(struct upload *u, struct upload_writer *w, bool strange);
/*
 * PROCESS wants to change the bytes, through W (NULL: it has no handle, or is just being opened); FRESH: it empties the
 * file in order to begin a content of its own. 0: it may, and W is dirty; all others that have the file open lose it.
 * -EBUSY: *OTHER is the process that is in the way (0: not known); W has lost the file.
 */
int upload_claim(struct upload *u, struct upload_writer *w, pid_t process, bool fresh,
		 pid_t *other);
/*
 * PROCESS removes or replaces the file: other writers lose it. Returns the process of a writer that has changed the
 * file since its last submission, -1 if that process is not known; 0: there is no such writer.
 */
pid_t upload_displace(struct upload *u, pid_t process);
/*
 * W is closed for good: another writer of its process, if there is one, continues what W has written. True: there is
 * none, and W has written something.
 */
bool upload_is_last(struct upload *u, const struct upload_writer *w);
/* Has W, or another writer of its process, changed the bytes since its last submission? */
bool upload_is_dirty(struct upload *u, const struct upload_writer *w);
/*
 * Was the content that was written through W launched, or may it be, by now? Never true if the writer can't be looked
 * at: nobody knows whether its writing has ended, and what it writes next is a new content.
 */
bool upload_is_spent(struct upload *u, const struct upload_writer *w);
/* Has W lost the file, and did it have bytes for it? */
bool upload_is_lost(struct upload *u, const struct upload_writer *w);
/* All that the process of W has written belongs to launch LAUNCH; 0: it need not be launched any more. */
void upload_launching(struct upload *u, struct upload_writer *w, uint64_t launch);
void upload_concluded(struct upload *u, uint64_t launch, bool accepted);

/* --- the disk; on the pool, in order --- */

/* Bring the changes of U to disk. 0, or a negative errno: the next save tries again. */
int upload_save(struct upload *u);
/* Read the bytes of U into memory, if it is open; set DIGEST in any case. */
int upload_load(struct upload *u, char digest[RECORD_DIGEST]);
/* Sync U: its bytes, as they are on disk, outlive a crash of the machine. */
int upload_sync(struct upload *u);
/* Make TEXT the content of U on disk. If the disk is full, the old content stays. */
int upload_save_text(struct upload *u, const char *text);
/* Give U another name on disk, or none (NULL). */
int upload_save_name(struct upload *u, const char *name);
/* The inode number of U; 0: it is not on disk. May be called before the mount is up, too. */
uint64_t upload_ino(const struct upload *u);
/* Does U need a save that nobody has asked for yet? If so it counts as asked for until it begins. */
bool upload_want_save(struct upload *u);
/* Is all of U on disk, as far as is known? */
bool upload_is_saved(struct upload *u);

/* --- for names.c; under the lock --- */

void upload_hold(struct upload *u); /* take one reference more */
uint64_t upload_version(const struct upload *u);
struct record_owner upload_owner(const struct upload *u);
/* Set the owner that an earlier mount knew. */
void upload_set_owner(struct upload *u, struct record_owner owner);
/* May the name of U be removed because it is old? Yes if nobody has U open and it is on disk. */
bool upload_is_idle(const struct upload *u);
int64_t upload_ctime(const struct upload *u);
bool upload_is_empty(const struct upload *u);
bool upload_has_dirty(const struct upload *u);
/* From now on U has the name NAME, or none. A file whose name submits counts in no bound. */
void upload_set_name(struct upload *u, const char *name);
