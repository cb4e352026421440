/* SPDX-License-Identifier: MIT */
/*
 * An upload is a file of submit/ or dryrun/, with its bytes and its writers. names.h has the names.
 *
 * While a file is open, and until its changes are on disk, its bytes are in memory. So reading and
 * writing never wait. Functions for the disk run on the pool, one at a time, in the order of the
 * directory's queue (save.h). Only this queue knows a file's name on disk, because a queued rename
 * may still change it.
 *
 * If a file has a submitting name (submit.h), each handle gets contents of its own at its first
 * change: a copy of what the file shows. When the handle is closed or synced, the file shows the
 * handle's contents. So contents never mix the writes of two processes, and an open reads what was
 * closed last. If a file has another name, all handles change the same contents: a second vim must
 * be able to read the swap file of the first.
 *
 * A file outlives its name. Each change of the contents gives them a new version. A launch belongs
 * to one version, so a late result does not apply to newer bytes.
 *
 * A writer is a handle that is open for writing. A process takes a file from its writers if it
 * removes or replaces the file, or renames it to a name that does not submit. Then the closes of
 * these writers fail, and kxfs launches nothing that was written through them.
 *
 * The contents that a file shows have a state. Any change makes them NEW. A rename to a submitting
 * name launches only NEW contents.
 *
 *	state     | the contents                           | next
 *	NEW       | were not launched, or were refused     | launch: LAUNCHING
 *	FOUND     | were on disk at the start of the mount | loading shows a launch: LAUNCHED
 *	          |                                        | loading shows no launch: NEW
 *	LAUNCHING | are being launched                     | accepted: LAUNCHED; refused: NEW
 *	LAUNCHED  | were launched; dryrun/: are a manifest |
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "backend/base/lock.h"
#include "spec/base/base.h"

/* the most bytes that all files of a directory together may have in memory */
#define UPLOADS_MAX_MEMORY (256u << 20)

#define UPLOAD_DIGEST 65 /* a SHA-256 in hexadecimal, with the NUL */

enum content_state { CONTENT_NEW, CONTENT_FOUND, CONTENT_LAUNCHING, CONTENT_LAUNCHED };

struct file_owner {
	uid_t uid;
	gid_t gid;
};

struct uploads;
struct upload;

struct content;

/* This module's part of a writable handle. The handle's owner zeroes it. Under the lock. */
struct upload_writer {
	pid_t opener; /* the process that opened the handle; 0 if unknown */
	/* true if /proc does not show the opener: struct holders decides when it has finished */
	bool unseen;
	bool dirty;	 /* true if there are unsubmitted changes */
	bool lost;	 /* true if another process has taken the file */
	bool spent;	 /* true if a launch was accepted; then only an UNSEEN writer may write */
	uint64_t launch; /* number of the launch whose result is pending, or 0 */
	/* NULL if the handle uses the contents that the file shows */
	struct content *content;
	struct upload_writer *prev, *next;
};

/*
 * Make the data that all files of a directory share. DIR_FD is the directory on disk. LOCK guards
 * files and their names (names.h). Both are borrowed. The user of this process owns files on disk;
 * US owns them in the mount.
 */
struct uploads *uploads_new(int dir_fd, struct file_owner us, struct lock *lock);
/* Call this when all files are freed. NULL is allowed. */
void uploads_free(struct uploads *all);

/* --- making and freeing; from here on, any thread, except where a comment restricts it --- */

/* Return a new empty file. Call this under the lock. */
struct upload *upload_new(struct uploads *all, const char *name, mode_t mode,
			  struct file_owner owner);
/*
 * Return a file that was found on disk. STATE is the state of its contents. Call this before the
 * mount is up.
 */
struct upload *upload_found(struct uploads *all, const char *name, const struct stat *st,
			    enum content_state state);
struct upload *upload_ref(struct upload *u);
void upload_unref(struct upload *u); /* NULL is allowed */
define_cleanup(upload_unrefp, struct upload *, upload_unref)
#define cleanup_upload cleanup(upload_unrefp)
/* Return a number that no other file of the directory has had during this mount. */
uint64_t upload_id(const struct upload *u);

/* A file at one moment. Plain data. */
struct upload_look {
	/*
	 * How often U was taken from its writers (upload_displace). If this number changes between
	 * a lookup and the open, the handle must not write: its process expects a launch under the
	 * old name.
	 */
	unsigned taken;
	/* VERSION and STATE are those of the contents that the file shows. */
	uint64_t version;
	enum content_state state;
	bool has_writers;
	bool is_busy;  /* a writer has unsubmitted changes, or the contents are being launched */
	bool is_saved; /* all changes are on disk */
	/*
	 * Size of W's contents, or of those that the file shows if W is NULL or has none. FLAW is
	 * of the same contents.
	 */
	uint64_t size;
	/*
	 * Why the contents are incomplete, as a positive errno; 0 if they are complete. ECANCELED:
	 * a signal ended the writing process. EINVAL: a signal may have ended it, and the contents
	 * do not end like a complete document. Both remain until the next write. Other errnos: a
	 * write failed. They remain until the file is emptied.
	 */
	int flaw;
	/* The members below are false if W is NULL. */
	bool is_whole; /* the contents end like a document: with a newline, or a JSON bracket */
	bool is_dirty; /* W has unsubmitted changes, and has not lost the file */
	bool is_lost;  /* W has unsubmitted changes, and has lost the file */
	/*
	 * W has not lost the file, and W's contents were not launched and are not being launched. A
	 * writer that /proc does not show may also write after a launch, because kxfs can't know
	 * whether it had finished. The next write of such a writer makes new contents.
	 */
	bool may_write;
};

struct upload_look upload_look(struct upload *u, const struct upload_writer *w);

/*
 * Open U, so that its bytes remain in memory until upload_close. Return 0 on success. Also after
 * -EAGAIN, U is open, but upload_load must run before the bytes are used. After other errors, U is
 * not open: -ENFILE if too many bytes are in memory, -ESTALE if U was removed.
 *
 * If EMPTY is true, the caller empties U next, and so needs no bytes. Then never return -EAGAIN.
 */
int upload_open(struct upload *u, bool empty);
void upload_close(struct upload *u);

/* --- bytes of an open file --- */

/* These functions use W's contents, or those that the file shows if W is NULL or has none. */

size_t upload_read(struct upload *u, const struct upload_writer *w, char *buf, size_t size,
		   off_t off);
/* W must not be NULL. Return 0, or -EFBIG or -ENOSPC, which becomes the flaw of the contents. */
int upload_write(struct upload *u, struct upload_writer *w, const char *buf, size_t size,
		 off_t off);
/* Record that a write of W failed with ERR, which becomes the flaw of the contents. */
void upload_fail(struct upload *u, struct upload_writer *w, int err);
/* If U is closed, SIZE must be 0. */
int upload_truncate(struct upload *u, struct upload_writer *w, off_t size);
/* *RET is malloc'ed and NUL-terminated. */
void upload_copy(struct upload *u, const struct upload_writer *w, char **ret, size_t *ret_len,
		 uint64_t *ret_version);
void upload_set_flaw(struct upload *u, struct upload_writer *w, int flaw);
/*
 * Make the file show what W has written, and return true. Return false if W has written nothing, if
 * its first write failed, if W has lost the file, or if the file already shows W's contents.
 */
bool upload_show(struct upload *u, struct upload_writer *w);
/* Set the state, if U still shows VERSION. */
void upload_set_state(struct upload *u, uint64_t version, enum content_state state);
/*
 * Make U show TEXT, which is on disk already, and return the version of TEXT. If U no longer shows
 * VERSION, keep U's newer contents and return 0.
 */
uint64_t upload_replace(struct upload *u, uint64_t version, const char *text);

/* --- attributes --- */

/*
 * Set type, permissions (before umask), owner, size and times. If W is NULL, the size is that of
 * the contents that changed last, because a program that is writing a file expects this.
 */
void upload_stat(struct upload *u, const struct upload_writer *w, struct stat *st);
/* Set what TO_SET (FUSE_SET_ATTR_*) selects. Return -EPERM if only root may do this. */
int upload_set_attr(struct upload *u, const struct stat *attr, int to_set);
void upload_set_owner(struct upload *u, struct file_owner owner);

/* --- writers --- */

/*
 * Add W, opened by the process OPENER (0 if unknown), to U's writers. TAKEN is the value at the
 * lookup (struct upload_look). W has lost the file if TAKEN is out of date, or if U has no name. If
 * the open has MADE a file with a submitting name, W gets its own contents now, so that they never
 * mix with writes of others.
 */
void upload_add_writer(struct upload *u, struct upload_writer *w, pid_t opener, unsigned taken,
		       bool made);
void upload_remove_writer(struct upload *u, struct upload_writer *w);
/* Return how many writers of U, not counting W, were opened by PROCESS. */
size_t upload_others(struct upload *u, const struct upload_writer *w, pid_t process);
/* Record that /proc hides W's opener. STRANGE is true if the opener is in another pid namespace. */
void upload_set_unseen(struct upload *u, struct upload_writer *w, bool strange);
/*
 * Record that W has no unsubmitted changes. LAUNCH is the number of the launch of its contents,
 * or 0 if nothing was launched.
 */
void upload_submitted(struct upload *u, struct upload_writer *w, uint64_t launch);
/*
 * Record the end of LAUNCH. If ACCEPTED is true, the writer whose contents were launched may not
 * write any more, unless the writer is UNSEEN.
 */
void upload_concluded(struct upload *u, uint64_t launch, bool accepted);

/* --- the disk; on the pool, in the order of the queue --- */

/* Write U's changes to disk. After an error, the next save writes them again. */
int upload_save(struct upload *u);
/*
 * Read U's bytes, and keep them in memory if U is open. Unless RET_VERSION is NULL, set
 * *RET_VERSION to the version of the bytes, and DIGEST to their SHA-256.
 */
int upload_load(struct upload *u, uint64_t *ret_version, char digest[UPLOAD_DIGEST]);
int upload_sync(struct upload *u);
/* Replace U's contents on disk by TEXT. If the disk is full, keep the old contents. */
int upload_save_text(struct upload *u, const char *text);
/* Rename U to NAME on disk, or remove it if NAME is NULL. */
int upload_save_name(struct upload *u, const char *name);
/* If U has changes, and no save is queued, mark a save as queued and return true. Any thread. */
bool upload_want_save(struct upload *u);

/* --- for names.c; under the lock --- */

void upload_hold(struct upload *u); /* add a reference */
uint64_t upload_version(const struct upload *u);
/* True if U is on disk and closed. */
bool upload_is_idle(const struct upload *u);
/*
 * Take U from its writers, except those that PROCESS has opened. Return the process of a writer
 * that has thereby lost unsubmitted changes, -1 if this process is unknown, or 0 if no writer has
 * lost changes.
 */
pid_t upload_displace(struct upload *u, pid_t process);
/*
 * Record that U has the name NAME, or no name if NAME is NULL. A file with a name that does not
 * submit counts as a scratch file.
 */
void upload_set_name(struct upload *u, const char *name);
