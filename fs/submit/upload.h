/* SPDX-License-Identifier: MIT */
/*
 * An upload is a file of submit/ or dryrun/, with its bytes and its writers. names.h has the names
 * of files.
 *
 * While a file is open, and until its changes are on disk, its bytes are in memory. So reading and
 * writing never wait. On disk, the file is STATE/submit/NAME. The functions for the disk run on the
 * pool, one at a time, in the order of the directory's queue (save.h). Only this queue knows the
 * file's name on disk, because a queued rename may still change the name.
 *
 * kxfs launches only files with a submitting name, which is a name that ends in .yaml, .yml or
 * .json (spec_name_submits). If a file has a submitting name, each handle gets contents of its own
 * at its first change: a copy of the contents that the file shows. When the handle is closed (or
 * synced), the file shows the handle's contents. So contents never mix the writes of two processes,
 * and a process that opens the file reads the contents that were closed last. If a file has any
 * other name, all handles change the same contents, as on any file system: for example, a second
 * vim must be able to read the swap file of the first.
 *
 * A file outlives its name, as on any file system. Each change of the contents gives them a new
 * version. A launch belongs to one version, so a late result does not apply to bytes that were
 * written after the launch began.
 *
 * A process takes a file from its writers if it removes the file, replaces it, or renames it to a
 * name that is not a submitting name. Then the close of each writer fails, and kxfs launches
 * nothing that they wrote.
 *
 * The contents that a file shows have a state. A rename to a submitting name launches contents only
 * if they are NEW:
 *
 *	state     | the contents                             | next
 *	NEW       | were not launched, or were refused       | launch: LAUNCHING
 *	FOUND     | were on disk at the start of the mount   | loaded: LAUNCHED if a record has their digest, else NEW
 *	LAUNCHING | are being launched                       | accepted: LAUNCHED; refused: NEW
 *	LAUNCHED  | were launched; dryrun/: are a manifest   |
 *
 * Any change makes the contents NEW.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "backend/base/lock.h"
#include "spec/base/base.h"

/* The largest number of bytes that all files of a directory together may have in memory. */
#define UPLOADS_MAX_MEMORY (256u << 20)

#define UPLOAD_DIGEST 65 /* size of a SHA-256 in hexadecimal, with the NUL */

enum content_state { CONTENT_NEW, CONTENT_FOUND, CONTENT_LAUNCHING, CONTENT_LAUNCHED };

struct file_owner {
	uid_t uid;
	gid_t gid;
};

struct uploads; /* data that all files of a directory share */
struct upload;

struct content;

/*
 * The part of a writable handle that this module uses. The code that owns the handle zeroes this
 * struct, and the functions below set its members. Under the lock.
 */
struct upload_writer {
	pid_t opener; /* the process that opened the handle; 0 if unknown */
	/*
	 * True if /proc does not show the opener. Then struct holders decides when the opener has
	 * finished.
	 */
	bool unseen;
	bool dirty; /* true if this handle has unsubmitted changes */
	bool lost;  /* true if another process has taken the file (see above) */
	/* true if a launch of this handle was accepted; then the handle can't write any more */
	bool spent;
	uint64_t launch; /* number of the launch whose result is pending, or 0 */
	/* the handle's own contents; NULL if it uses the contents that the file shows */
	struct content *content;
	struct upload_writer *prev, *next;
};

/*
 * Make the data that all files of a directory share. DIR_FD is the directory on disk. LOCK guards
 * the files and their names (names.h). Both are borrowed. If a file on disk belongs to the user of
 * this process, its owner in the mount is US.
 */
struct uploads *uploads_new(int dir_fd, struct file_owner us, struct lock *lock);
/* Call this when all files are freed; NULL is allowed. */
void uploads_free(struct uploads *all);

/* --- making and freeing; from here on, any thread, except where a comment restricts it --- */

/*
 * Make a new empty file, and return a reference to it. NAME is its name on disk. TAG identifies its
 * node (node_get), and is copied. Call this under the lock.
 */
struct upload *upload_new(struct uploads *all, const char *tag, const char *name, mode_t mode,
			  struct file_owner owner);
/*
 * Make the object of a file that is on disk already, with the name NAME. ST has the attributes of
 * the file, and STATE is the state of its contents. Call this before the mount is up.
 */
struct upload *upload_found(struct uploads *all, const char *name, const struct stat *st,
			    enum content_state state);
struct upload *upload_ref(struct upload *u);
void upload_unref(struct upload *u); /* NULL is allowed */
define_cleanup(upload_unrefp, struct upload *, upload_unref)
#define cleanup_upload cleanup(upload_unrefp)
const char *upload_tag(const struct upload *u);

/*
 * Open U. Its bytes then remain in memory until the matching upload_close.
 *
 * Return 0 if U is open. Return -EAGAIN if U is open, but the caller must run upload_load before it
 * uses the bytes. Return -ENFILE if too many bytes are in memory already, or -ESTALE if U was
 * removed. In these two cases U is not open.
 *
 * If EMPTY is true, the caller does not need U's bytes: it empties U next, or changes only what a
 * handle has written. So this function does not return -EAGAIN.
 */
int upload_open(struct upload *u, bool empty);
void upload_close(struct upload *u);

/* --- bytes of an open file --- */

/*
 * The functions of this section use the contents of the writer W. If W has no contents of its own,
 * or W is NULL, they use the contents that the file shows.
 */

size_t upload_read(struct upload *u, const struct upload_writer *w, char *buf, size_t size,
		   off_t off);
/*
 * Write SIZE bytes at the offset OFF. W must not be NULL. Return 0, or -EFBIG or -ENOSPC if a limit
 * does not allow the write. Such an error becomes the flaw of the contents.
 */
int upload_write(struct upload *u, struct upload_writer *w, const char *buf, size_t size,
		 off_t off);
int upload_truncate(struct upload *u, struct upload_writer *w, off_t size);
uint64_t upload_size(struct upload *u, const struct upload_writer *w);
/* Copy the contents to *RET, malloc'ed and NUL-terminated. *RET_VERSION is their version. */
void upload_copy(struct upload *u, const struct upload_writer *w, char **ret, size_t *ret_len,
		 uint64_t *ret_version);
/*
 * Return the reason why the contents are incomplete, as a positive errno. Return 0 if they are
 * complete. ECANCELED means that a signal ended the writer. EINVAL means that a signal may have
 * ended the writer, and the contents do not end like a complete document. Both remain until the
 * next write. Any other errno means that a write failed, and remains until the file is emptied.
 */
int upload_flaw(struct upload *u, const struct upload_writer *w);
void upload_set_flaw(struct upload *u, struct upload_writer *w, int flaw);
/*
 * True if the contents end like a complete document: a text ends with a newline, JSON with a
 * closing bracket.
 */
bool upload_is_whole(struct upload *u, const struct upload_writer *w);
/*
 * Make the file show what W has written, and return true. If W has written nothing or has lost the
 * file, or if the file already shows W's contents, return false.
 */
bool upload_show(struct upload *u, struct upload_writer *w);
/* Return the version of the contents that the file shows. */
uint64_t upload_shown(struct upload *u);
enum content_state upload_state(struct upload *u);
/* Set the state of the contents that U shows, if their version is VERSION. */
void upload_set_state(struct upload *u, uint64_t version, enum content_state state);
/* True if a writer has unsubmitted changes of U, or if the contents of U are being launched. */
bool upload_is_busy(struct upload *u);
/*
 * Make U show TEXT, which U's file on disk already contains. Return the version of TEXT. But if U
 * no longer shows VERSION, keep its newer contents and return 0.
 */
uint64_t upload_replace(struct upload *u, uint64_t version, const char *text);

/* --- attributes --- */

/*
 * Set ST to the type, permissions (before umask), owner, size and times of U. The size is that of
 * W's contents. If W is NULL, it is the size of the contents that changed last, because a program
 * that is writing a file expects this.
 */
void upload_stat(struct upload *u, const struct upload_writer *w, struct stat *st);
/*
 * Set those of the mode, owner and times of U that TO_SET (FUSE_SET_ATTR_*) selects to the values
 * in ATTR. Return 0, or -EPERM if kxfs does not run as root, and the request changes the owner, or
 * the group to one of which kxfs is not a member.
 */
int upload_set_attr(struct upload *u, const struct stat *attr, int to_set);
/* Set U's owner to the one that an earlier mount has recorded. */
void upload_set_owner(struct upload *u, struct file_owner owner);

/* --- writers --- */

/*
 * Return how often another process has taken U from its writers (upload_displace). If this number
 * has changed between a lookup and the open that follows, the handle must not write: its process
 * still expects the close to launch the file under the old name.
 */
unsigned upload_taken(struct upload *u);
/*
 * Add W to U's writers. OPENER is the process that has opened W, or 0 if unknown. TAKEN is the
 * value that upload_taken had when the kernel looked up the name. If another process has taken U
 * since then, or U has no name any more, W has lost the file. If the open of W has MADE the file,
 * and its name is a submitting name, W gets contents of its own now, so that they never mix with
 * writes of others.
 */
void upload_add_writer(struct upload *u, struct upload_writer *w, pid_t opener, unsigned taken,
		       bool made);
void upload_remove_writer(struct upload *u, struct upload_writer *w);
bool upload_has_writers(struct upload *u);
/* Return how many writers of U were opened by PROCESS, not counting W. */
size_t upload_others(struct upload *u, const struct upload_writer *w, pid_t process);
/*
 * Record that /proc does not show the process that opened W. STRANGE is true if the process is in
 * another pid namespace, so that its number is meaningless here.
 */
void upload_set_unseen(struct upload *u, struct upload_writer *w, bool strange);
/* True if W has unsubmitted changes, and has not lost the file. */
bool upload_is_dirty(struct upload *u, const struct upload_writer *w);
/*
 * True if W may write. False if W has lost the file, or if W's contents are being launched or were
 * launched. Exception: if /proc does not show the writer, it may still write after a launch,
 * because kxfs can't know whether it had finished. Its next write then makes new contents.
 */
bool upload_may_write(struct upload *u, const struct upload_writer *w);
/* True if W has lost the file, and has unsubmitted changes. */
bool upload_is_lost(struct upload *u, const struct upload_writer *w);
/*
 * Record that W has submitted its contents as the launch with the number LAUNCH. LAUNCH is 0 if
 * nothing was submitted.
 */
void upload_submitted(struct upload *u, struct upload_writer *w, uint64_t launch);
/*
 * Record that the launch with the number LAUNCH has ended. If ACCEPTED is true, the writer that
 * started it can't write any more.
 */
void upload_concluded(struct upload *u, uint64_t launch, bool accepted);

/* --- the disk; on the pool, in the order of the queue --- */

/*
 * Write the changes of U to disk. Return 0 or a negative errno. After an error, the next save
 * writes the changes again.
 */
int upload_save(struct upload *u);
/*
 * Read the bytes of U. If U is open, keep them in memory. If RET_VERSION is not NULL, set
 * *RET_VERSION to the version of the contents, and DIGEST to their SHA-256. Return 0 or a negative
 * errno.
 */
int upload_load(struct upload *u, uint64_t *ret_version, char digest[UPLOAD_DIGEST]);
/* Sync U, so that the bytes survive a crash of the machine. Return 0 or a negative errno. */
int upload_sync(struct upload *u);
/*
 * Replace U's contents on disk by TEXT. If the disk is full, keep the old contents. Return 0 or a
 * negative errno.
 */
int upload_save_text(struct upload *u, const char *text);
/* Rename U to NAME on disk, or remove U if NAME is NULL. Return 0 or a negative errno. */
int upload_save_name(struct upload *u, const char *name);
/*
 * If U has changes that are not on disk, and no save is queued, return true and mark a save as
 * queued. Any thread.
 */
bool upload_want_save(struct upload *u);
/* True if all changes of U are on disk. Any thread. */
bool upload_is_saved(struct upload *u);

/* --- for names.c; under the lock --- */

void upload_hold(struct upload *u); /* add a reference */
/* True if a file has the tag TAG, even if the file was removed. */
bool uploads_have_tag(const struct uploads *all, const char *tag);
uint64_t upload_version(const struct upload *u);
/* True if U is on disk and not open. */
bool upload_is_idle(const struct upload *u);
/*
 * Take the file U from all its writers, except those that PROCESS has opened, because PROCESS
 * removes or replaces U. If a writer with unsubmitted changes has lost U, return the process of
 * this writer, or -1 if the process is unknown. Otherwise return 0.
 */
pid_t upload_displace(struct upload *u, pid_t process);
/*
 * Set U's name. NULL means that U has no name any more. If the name is not a submitting name, U
 * becomes a scratch file, and counts towards the limits of scratch files.
 */
void upload_set_name(struct upload *u, const char *name);
