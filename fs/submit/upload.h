/* SPDX-License-Identifier: MIT */
/*
 * A file of submit/ or dryrun/: its bytes, their limits, and its writers. Its name is in names.h.
 *
 * While a file is open, and until its changes are on disk, its bytes are in memory: reading and writing never wait. The
 * disk has them in STATE/submit/NAME. The functions for the disk run on the pool, one at a time, in the order of the
 * directory's queue (save.h), since only the queue knows the file's present name on disk.
 *
 * Each open file of a name that submits gets contents of its own at its first change: a copy of the
 * contents that the file shows. When the handle is closed (or synced), the file shows its contents.
 * So contents never mix the writes of two processes, and a process that opens the file reads the
 * contents that were closed last. If the file's name does not submit, all open files change the
 * same contents, as on any file system: a second vim must read the first one's swap file.
 *
 * A file outlives its name, as on any file system. Each change of contents gives them a new version. A launch has one
 * version, so a late result does not apply to bytes that were written since. A process that removes or replaces the
 * file, or renames it to a name that does not submit, takes it from the processes that are writing it: their close
 * fails, and nothing that they wrote is launched.
 *
 * The contents that a file shows have a state. A rename to a name that submits launches NEW contents:
 *
 *	state     | the contents                             | next
 *	NEW       | were not launched, or were refused       | launch: LAUNCHING
 *	FOUND     | were on disk at the start of the mount   | loaded: LAUNCHED if a record has their digest, else NEW
 *	LAUNCHING | are being launched                       | accepted: LAUNCHED; refused: NEW
 *	LAUNCHED  | were launched; dryrun/: are a manifest   |
 *
 * Any change makes them NEW.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "backend/base/lock.h"
#include "spec/base/base.h"

/* The most bytes of files in memory at a time. */
#define UPLOADS_MAX_MEMORY (256u << 20)

#define UPLOAD_DIGEST 65 /* bytes of a SHA-256 in hexadecimal, with its NUL */

enum content_state { CONTENT_NEW, CONTENT_FOUND, CONTENT_LAUNCHING, CONTENT_LAUNCHED };

struct file_owner {
	uid_t uid;
	gid_t gid;
};

struct uploads; /* the common data of the files of one directory */
struct upload;

struct content;

/* A handle through which a file may be written; zeroed by its owner, set by the functions below. Under the lock. */
struct upload_writer {
	pid_t opener; /* the process that opened it; 0 if unknown */
	/*
	 * kxfs can't see the opener in /proc, so it finds by closes whether the opener has finished
	 * (struct holders).
	 */
	bool unseen;
	bool dirty;	 /* the bytes were changed through this handle since its last submission */
	bool lost;	 /* another process has taken the file: removed, replaced or renamed it */
	bool spent;	 /* a launch was accepted, so this handle can't write any more */
	uint64_t launch; /* number of the launch whose result is pending, or 0 */
	struct content *content; /* contents of the handle, or NULL while it uses the file's */
	struct upload_writer *prev, *next;
};

/*
 * DIR_FD, borrowed, is the directory; LOCK, borrowed, guards its files and their names (names.h).
 * The files of this process's user appear as owned by US.
 */
struct uploads *uploads_new(int dir_fd, struct file_owner us, struct lock *lock);
/* Call this when all files are freed; NULL is allowed. */
void uploads_free(struct uploads *all);

/* --- life; this and all functions below are for any thread, unless a comment restricts them --- */

/*
 * Make a new empty file, to be saved as NAME, and return a reference. TAG, which identifies its
 * node, is copied.
 */
struct upload *upload_new(struct uploads *all, const char *tag, const char *name, mode_t mode,
			  struct file_owner owner);
/*
 * Make the object of the file NAME, which is on disk already, with the attributes ST and contents
 * in STATE. Call this before the mount is up.
 */
struct upload *upload_found(struct uploads *all, const char *name, const struct stat *st,
			    enum content_state state);
struct upload *upload_ref(struct upload *u);
void upload_unref(struct upload *u); /* NULL is allowed */
define_cleanup(upload_unrefp, struct upload *, upload_unref)
#define cleanup_upload cleanup(upload_unrefp)
const char *upload_tag(const struct upload *u);

/*
 * Open U: keep its bytes in memory until upload_close was called once for each open. Return 0;
 * -EAGAIN if U is open, but upload_load must run before its bytes are used. U is not open after
 * -ENFILE (too many bytes are in memory) and -ESTALE (U was removed). EMPTY: the caller empties U
 * next, so its bytes are not needed and -EAGAIN is not returned.
 */
int upload_open(struct upload *u, bool empty);
void upload_close(struct upload *u);

/* --- bytes of an open file: W's contents, or, if W is NULL, those that the file shows --- */

size_t upload_read(struct upload *u, const struct upload_writer *w, char *buf, size_t size,
		   off_t off);
/* W is not NULL. -EFBIG or -ENOSPC if the file is at a limit; the contents then have a flaw. */
int upload_write(struct upload *u, struct upload_writer *w, const char *buf, size_t size,
		 off_t off);
int upload_truncate(struct upload *u, struct upload_writer *w, off_t size);
uint64_t upload_size(struct upload *u, const struct upload_writer *w);
/* Copy all bytes, malloc'ed and NUL-terminated, with the version. */
void upload_copy(struct upload *u, const struct upload_writer *w, char **ret, size_t *ret_len,
		 uint64_t *ret_version);
/*
 * Return why the contents are incomplete, as an errno: ECANCELED if the writer was killed, EINVAL
 * if it may have been killed and the contents end in the middle, or the error of a write. 0 if they
 * are complete. The error of a write remains until the file is emptied; ECANCELED and EINVAL remain
 * until the next write.
 */
int upload_flaw(struct upload *u, const struct upload_writer *w);
void upload_set_flaw(struct upload *u, struct upload_writer *w, int flaw);
/*
 * True if the contents end as a complete document: a text with a newline, JSON with the closing
 * bracket.
 */
bool upload_is_whole(struct upload *u, const struct upload_writer *w);
/*
 * W has made U: if U's name submits, give W contents of its own, so that they never mix with writes
 * of others. Call this right after upload_add_writer.
 */
void upload_begin(struct upload *u, struct upload_writer *w);
/*
 * Make the file show what W has written, and return true. Return false if the file shows that
 * already, or W has written nothing.
 */
bool upload_show(struct upload *u, struct upload_writer *w);
/* True if the file shows the contents VERSION. */
bool upload_is_version(struct upload *u, uint64_t version);
/* Return the version of the contents that the file shows. */
uint64_t upload_shown(struct upload *u);
enum content_state upload_state(struct upload *u);
/* Set the state of the contents VERSION, if U shows them. */
void upload_set_state(struct upload *u, uint64_t version, enum content_state state);
/* True if U is being written, or its contents are being launched. */
bool upload_is_busy(struct upload *u);
/*
 * Make U show TEXT, which the disk has already, if it still shows VERSION. Return the new version,
 * or 0 if it shows other contents.
 */
uint64_t upload_replace(struct upload *u, uint64_t version, const char *text);

/* --- attributes --- */

/*
 * Set ST to the type and permissions (before umask), owner, size and times of U. The size is that
 * of W's contents. If W is NULL, it is the size of the contents that changed last, because a
 * program expects this of a file that it is writing.
 */
void upload_stat(struct upload *u, const struct upload_writer *w, struct stat *st);
/*
 * Set the mode, owner and times in ATTR that TO_SET selects by FUSE_SET_ATTR_*. Return 0, or
 * -EPERM: only root may change owners.
 */
int upload_set_attr(struct upload *u, const struct stat *attr, int to_set);
/* Set the owner that an earlier mount has recorded. */
void upload_set_owner(struct upload *u, struct file_owner owner);

/* --- writers --- */

/*
 * Return how often U was taken from its writers (upload_displace). An open that arrives later may mean the name that U
 * had before, so a writer would expect its close to launch the file.
 */
unsigned upload_taken(struct upload *u);
/*
 * Add W to U's writers. OPENER is the process that has opened it, or 0 if unknown. TAKEN is upload_taken when the
 * kernel looked up the name. If U was taken since, or has no name any more, W has lost it.
 */
void upload_add_writer(struct upload *u, struct upload_writer *w, pid_t opener, unsigned taken);
void upload_remove_writer(struct upload *u, struct upload_writer *w);
bool upload_has_writers(struct upload *u);
/* Return the number of U's writers, except W, that process PROCESS has opened. */
size_t upload_others(struct upload *u, const struct upload_writer *w, pid_t process);
/*
 * Record that /proc does not show the process that has opened W. STRANGE: that process is not in
 * our pid namespace, so its number is meaningless here.
 */
void upload_set_unseen(struct upload *u, struct upload_writer *w, bool strange);
/* True if W has changed the bytes since its last submission and has not lost the file. */
bool upload_is_dirty(struct upload *u, const struct upload_writer *w);
/*
 * False if W has lost the file, or if its contents were launched or are being launched. A writer
 * that /proc does not show may continue after its launch: kxfs can't know whether it has finished,
 * and its next write makes new contents.
 */
bool upload_may_write(struct upload *u, const struct upload_writer *w);
/* True if W has lost the file and had unsubmitted bytes for it. */
bool upload_is_lost(struct upload *u, const struct upload_writer *w);
/*
 * Record that W's contents are submitted as launch LAUNCH; if LAUNCH is 0, that nothing is
 * submitted.
 */
void upload_submitted(struct upload *u, struct upload_writer *w, uint64_t launch);
/* Record that launch LAUNCH has ended. If it was ACCEPTED, its writer can't write any more. */
void upload_concluded(struct upload *u, uint64_t launch, bool accepted);

/* --- the disk; on the pool, in order --- */

/* Write the changes of U to disk. Return 0, or a negative errno; the next save then retries. */
int upload_save(struct upload *u);
/*
 * Read the bytes of U into memory, if it is open. Set *RET_VERSION (may be NULL) to the version of
 * the contents, and DIGEST to their SHA-256.
 */
int upload_load(struct upload *u, uint64_t *ret_version, char digest[UPLOAD_DIGEST]);
/* Sync U, so that its bytes on disk survive a crash of the machine. */
int upload_sync(struct upload *u);
/* Replace U's contents on disk by TEXT. If the disk is full, the old contents remain. */
int upload_save_text(struct upload *u, const char *text);
/* Rename U on disk to NAME, or remove it if NAME is NULL. */
int upload_save_name(struct upload *u, const char *name);
/* True if U needs a save that is not queued yet. This call then marks it as queued. */
bool upload_want_save(struct upload *u);
/* True if all of U is on disk. */
bool upload_is_saved(struct upload *u);

/* --- for names.c; under the lock --- */

void upload_hold(struct upload *u); /* take another reference */
uint64_t upload_version(const struct upload *u);
/* True if U is on disk and not open. */
bool upload_is_idle(const struct upload *u);
/*
 * PROCESS removes or replaces the file: take it from all other writers. Return the process of a
 * writer with unsubmitted changes, -1 if that process is unknown, or 0 if there is no such writer.
 */
pid_t upload_displace(struct upload *u, pid_t process);
/*
 * Set U's name; NULL removes it. The limits of scratch files do not count files whose name submits.
 */
void upload_set_name(struct upload *u, const char *name);
