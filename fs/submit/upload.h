/* SPDX-License-Identifier: MIT */
/*
 * A file of submit/ or dryrun/ as bytes: its content, its bounds, and its writers. Its name is in names.h.
 *
 * While a file is open, and until its changes are on disk, its bytes are in memory: reading and writing never wait. The
 * disk has them in STATE/submit/NAME. The functions for the disk run on the pool, one at a time, in the order of the
 * directory's queue (save.h), since only there the file's name on disk is known.
 *
 * Each open file of a name that submits has contents of its own from its first change on, a copy of what the file
 * shows. The file shows them when they are closed (or synced): so no content is ever a mixture of what two processes
 * wrote, and a process that opens the file reads what was closed last. In a file whose name does not submit, all open
 * files change what is shown, as on any file system: a second vim must read the first one's swap file.
 *
 * A file outlives its name, as on any file system. Each change of a content gives it another version. A launch is of
 * one version, so a late result does not apply to bytes that were written since. A process that removes the file,
 * replaces it, or renames it so that it does not submit any more takes it from the processes that are writing it: their
 * close fails, and nothing of it is launched.
 *
 * The content that a file shows has a state. A rename to a name that submits launches a NEW content:
 *
 *	state     | the content                              | next
 *	NEW       | was not launched, or was refused         | launch: LAUNCHING
 *	FOUND     | was on disk at the start of the mount    | loaded: LAUNCHED if a record has its digest, else NEW
 *	LAUNCHING | is being launched                        | accepted: LAUNCHED; refused: NEW
 *	LAUNCHED  | was launched; dryrun/: is a manifest     |
 *
 * A change makes any of them NEW.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "backend/base/lock.h"
#include "spec/base/base.h"

/* The most bytes of files that are in memory at once. */
#define UPLOADS_MAX_MEMORY (256u << 20)

#define UPLOAD_DIGEST 65 /* bytes of a SHA-256 in hexadecimal, with its NUL */

enum content_state { CONTENT_NEW, CONTENT_FOUND, CONTENT_LAUNCHING, CONTENT_LAUNCHED };

struct file_owner {
	uid_t uid;
	gid_t gid;
};

struct uploads; /* what the files of one directory have in common */
struct upload;

struct content;

/* A handle through which a file may be written; zeroed by its owner, set by the functions below. Under the lock. */
struct upload_writer {
	pid_t opener; /* the process that opened it; 0: not known */
	/* /proc does not show the opener, so kxfs knows only from its closes when it is done (holders.h). */
	bool unseen;
	bool dirty;	 /* the bytes were changed through this handle since its last submission */
	bool lost;	 /* another process has removed, replaced or renamed the file */
	bool spent;	 /* a launch was accepted, so nothing more is written through this handle */
	uint64_t launch; /* number of the launch whose result is pending; 0: none */
	struct content *content; /* contents of the handle; NULL: those that the file shows */
	struct upload_writer *prev, *next;
};

/*
 * DIR_FD, borrowed, is the directory; LOCK, borrowed, guards its files and their names (names.h). US: files of this
 * process's user are shown as owned by US.
 */
struct uploads *uploads_new(int dir_fd, struct file_owner us, struct lock *lock);
/* To be called when nobody has a file any more; NULL is allowed. */
void uploads_free(struct uploads *all);

/* --- life; this and all functions below are for any thread, unless a comment restricts them --- */

/* Make a new empty file, to be saved as NAME; returns a reference. TAG, by which its node is known, is copied. */
struct upload *upload_new(struct uploads *all, const char *tag, const char *name, mode_t mode,
			  struct file_owner owner);
/* The file NAME that is on disk already, with the attributes ST and a content in STATE. Before the mount is up. */
struct upload *upload_found(struct uploads *all, const char *name, const struct stat *st,
			    enum content_state state);
struct upload *upload_ref(struct upload *u);
void upload_unref(struct upload *u); /* NULL is allowed */
define_cleanup(upload_unrefp, struct upload *, upload_unref)
#define cleanup_upload cleanup(upload_unrefp)
const char *upload_tag(const struct upload *u);

/*
 * Open U: keep its bytes in memory until upload_close was called as often as this. -EAGAIN: it is open, but upload_load
 * must run before a byte is touched. It is not open after -ENFILE (too much is in memory) and -ESTALE (it has no name
 * any more). EMPTY: the caller empties it next, so its bytes are not needed, and -EAGAIN does not happen.
 */
int upload_open(struct upload *u, bool empty);
void upload_close(struct upload *u);

/* --- bytes of an open file: those of W, or (W is NULL) those that the file shows --- */

size_t upload_read(struct upload *u, const struct upload_writer *w, char *buf, size_t size,
		   off_t off);
/* -EFBIG, -ENOSPC: the file is at its bounds, and the content has a flaw then. W is not NULL. */
int upload_write(struct upload *u, struct upload_writer *w, const char *buf, size_t size,
		 off_t off);
int upload_truncate(struct upload *u, struct upload_writer *w, off_t size);
uint64_t upload_size(struct upload *u, const struct upload_writer *w);
/* Copy all bytes, malloc'ed and NUL-terminated, with the version. */
void upload_copy(struct upload *u, const struct upload_writer *w, char **ret, size_t *ret_len,
		 uint64_t *ret_version);
/*
 * Why the content is not what its writer meant: an errno, which is ECANCELED if the writer was killed, and EINVAL if it
 * may have been killed and the content breaks off; 0: it is what was meant. A failed write sets this until the file is
 * emptied, a killed writer until the next write.
 */
int upload_flaw(struct upload *u, const struct upload_writer *w);
void upload_set_flaw(struct upload *u, struct upload_writer *w, int flaw);
/* True if the content ends as a text does, with a newline, or as JSON does, with the bracket that closes it. */
bool upload_is_whole(struct upload *u, const struct upload_writer *w);
/*
 * W has made U, so what is written through it goes into a new file, whatever others write into U meanwhile. To be
 * called right after upload_add_writer.
 */
void upload_begin(struct upload *u, struct upload_writer *w);
/* Let the file show what W has written. False if it shows that already, or W has written nothing. */
bool upload_show(struct upload *u, struct upload_writer *w);
/* True if the file shows the content VERSION. */
bool upload_is_version(struct upload *u, uint64_t version);
/* The version of the content that the file shows. */
uint64_t upload_shown(struct upload *u);
enum content_state upload_state(struct upload *u);
/* Set the state of VERSION, if U shows that. */
void upload_set_state(struct upload *u, uint64_t version, enum content_state state);
/* True if U is being written, or its content is being launched. */
bool upload_is_busy(struct upload *u);
/*
 * Let U show TEXT if it still shows VERSION; the disk has TEXT already. Returns the new version; 0: it shows another
 * content.
 */
uint64_t upload_replace(struct upload *u, uint64_t version, const char *text);

/* --- attributes --- */

/*
 * Set ST to the type and permissions (before umask), owner, size and times of U. The size is that of W's content, or,
 * if W is NULL, of the content that changed last, which a program expects of a file that it is writing.
 */
void upload_stat(struct upload *u, const struct upload_writer *w, struct stat *st);
/*
 * Set the mode, owner and times in ATTR that TO_SET names by FUSE_SET_ATTR_*. 0, or -EPERM: only root gives files away.
 */
int upload_set_attr(struct upload *u, const struct stat *attr, int to_set);
/* Set the owner that an earlier mount knew. */
void upload_set_owner(struct upload *u, struct file_owner owner);

/* --- writers --- */

/*
 * Enter W into the list of U. OPENER: the process that has opened it; 0: not known. If U has no name any more, W has
 * lost it.
 */
void upload_add_writer(struct upload *u, struct upload_writer *w, pid_t opener);
void upload_remove_writer(struct upload *u, struct upload_writer *w);
bool upload_has_writers(struct upload *u);
/* Return how many other writers than W process PROCESS has opened. */
size_t upload_others(struct upload *u, const struct upload_writer *w, pid_t process);
/*
 * /proc does not show the process that has opened W. STRANGE: its number is not that of a process of this pid
 * namespace either.
 */
void upload_set_unseen(struct upload *u, struct upload_writer *w, bool strange);
/* True if W has changed the bytes since its last submission, and has not lost the file. */
bool upload_is_dirty(struct upload *u, const struct upload_writer *w);
/*
 * False if W has lost the file, or if what was written through it was launched, or is being launched. A writer that
 * /proc does not show may continue after its launch: kxfs can't know whether it has finished, and what it writes next
 * is a new content.
 */
bool upload_may_write(struct upload *u, const struct upload_writer *w);
/* True if W has lost the file, and had bytes for it. */
bool upload_is_lost(struct upload *u, const struct upload_writer *w);
/* The contents of W are submitted as launch LAUNCH, or (0) not at all. */
void upload_submitted(struct upload *u, struct upload_writer *w, uint64_t launch);
/* Launch LAUNCH has ended: if it was ACCEPTED, nothing more is written through its writer. */
void upload_concluded(struct upload *u, uint64_t launch, bool accepted);

/* --- the disk; on the pool, in order --- */

/* Write the changes of U to disk. 0, or a negative errno: the next save retries. */
int upload_save(struct upload *u);
/*
 * Read the bytes of U into memory, if it is open. *RET_VERSION (may be NULL): the version of the content, with the
 * SHA-256 in DIGEST.
 */
int upload_load(struct upload *u, uint64_t *ret_version, char digest[UPLOAD_DIGEST]);
/* Sync U: its bytes, as they are on disk, outlive a crash of the machine. */
int upload_sync(struct upload *u);
/* Make TEXT the content of U on disk. If the disk is full, the old content stays. */
int upload_save_text(struct upload *u, const char *text);
/* Give U another name on disk, or none (NULL). */
int upload_save_name(struct upload *u, const char *name);
/* True if U needs a save that was not requested yet. Then it counts as requested until the save begins. */
bool upload_want_save(struct upload *u);
/* True if all of U is on disk. */
bool upload_is_saved(struct upload *u);

/* --- for names.c; under the lock --- */

void upload_hold(struct upload *u); /* take one reference more */
uint64_t upload_version(const struct upload *u);
/* True if U is on disk and not open. */
bool upload_is_idle(const struct upload *u);
/*
 * PROCESS removes or replaces the file: other writers lose it. Returns the process of a writer that has changed the
 * file since its last submission, -1 if that process is not known; 0: there is no such writer.
 */
pid_t upload_displace(struct upload *u, pid_t process);
/* From now on U has the name NAME, or none. A file whose name submits counts in no bound. */
void upload_set_name(struct upload *u, const char *name);
