/* SPDX-License-Identifier: MIT */
/*
 * The names in submit/ or dryrun/: which file each belongs to, and NAME.error, the reason why the newest launch of the
 * name failed. Both are in memory; NAME.job comes from the records of jobs (backend_file). One lock, which the owner
 * passes, guards the table and the files (upload.h).
 *
 * Launches are numbered in order of their start. The result of the newest launch of a name is
 * shown. The result of an older one never replaces it, even if it arrives later. A result belongs
 * to the name under which the contents were launched, even if the file was renamed since.
 */
#pragma once

#include "fs/submit/upload.h"

/* The most names in one table. */
#define NAMES_MAX 10000
/* The most bytes of a NAME.error. */
#define NAMES_MAX_ERROR 32768

/* --- what names mean --- */

#define SUBMIT_JOB_SUFFIX   ".job"
#define SUBMIT_ERROR_SUFFIX ".error"

enum submit_name { SUBMIT_NAME_FILE, SUBMIT_NAME_JOB, SUBMIT_NAME_ERROR };

/* Check if a user may make a file of this name. 0; or -EINVAL, -ENAMETOOLONG, -EPERM (the name of a result). */
int submit_name_check(const char *name);
/* Return what NAME is. If NAME is the result of a file, set RET_BASE to the file's name. */
enum submit_name submit_name_kind(const char *name, char ret_base[NAME_MAX + 1]);

/*
 * True if NAME, which does not submit, is a temporary name of an editor or another program ("4913", "sedX3k9dw",
 * "app.yaml.1f3a", "app.yaml~", "tmp.x").
 */
bool submit_name_is_passing(const char *name);

/* --- the table --- */

struct names;

/* LOCK, borrowed, is the lock of the files. */
struct names *names_new(struct lock *lock);
void names_free(struct names *all); /* NULL is allowed */

/* --- any thread --- */

/* Return the time of the last change of the list of names, in ns. */
int64_t names_changed(struct names *all);
/*
 * List the names that have a file or, if KIND is SUBMIT_NAME_ERROR, an error. *RET and its items
 * are malloc'ed.
 */
size_t names_list(struct names *all, enum submit_name kind, char ***ret);

/* --- files --- */

/* Return the file called NAME, as a reference, or NULL. */
struct upload *names_file(struct names *all, const char *name);
/* Make the file NAME; *RET is a reference. -EEXIST; -ENOSPC if there are too many names. */
int names_make(struct names *all, struct uploads *files, const char *name, mode_t mode,
	       struct file_owner owner, struct upload **ret);
/* Add the file U, which was found on disk as NAME. Takes ownership of the reference. */
void names_add(struct names *all, const char *name, struct upload *u);
/* Find the present name of U. False if the file was removed. */
bool names_of(struct names *all, const struct upload *u, char ret[NAME_MAX + 1]);

/*
 * A writer that has lost its file, whose name submitted, because another process has removed,
 * replaced or renamed the file.
 */
struct name_loss {
	pid_t writer;	 /* -1 if the process is unknown; 0 if no writer has lost the file */
	uint64_t number; /* launch number (names_begin) of the NAME.error that explains the loss */
	char name[NAME_MAX + 1];
};

/*
 * Remove U's name, if it has one, and take U from all writers except those of PROCESS (0 for no
 * exception).
 */
void names_drop(struct names *all, struct upload *u, pid_t process, struct name_loss *ret);
/*
 * PROCESS renames U to TO. If another file has the name TO, remove its name, and take that file
 * from all writers except PROCESS. If U's old name submits and TO does not, take U from them, too.
 */
void names_move(struct names *all, struct upload *u, const char *to, pid_t process,
		struct name_loss *ret);
/*
 * Remove U's name if U still has the contents VERSION and is not open. False if it keeps its name.
 */
bool names_expire(struct names *all, struct upload *u, uint64_t version);

/* --- launches --- */

/* Start a launch of NAME and return its number. One of the next three functions ends it. */
uint64_t names_begin(struct names *all, const char *name);
/* Launch NUMBER was accepted: remove its error, or an older launch's. */
void names_accepted(struct names *all, const char *name, uint64_t number);
/*
 * Launch NUMBER was refused: make ERROR the text of NAME.error, cleaned and bounded, unless a newer
 * launch has a result.
 */
void names_refused(struct names *all, const char *name, uint64_t number, const char *error,
		   struct file_owner owner);
/* A launch of NAME has ended without a result. */
void names_abandoned(struct names *all, const char *name);

struct name_error {
	char *text; /* malloc'ed */
	int64_t time;
	struct file_owner owner;
};
/* Find NAME.error. 0, or -ENOENT. */
int names_error(struct names *all, const char *name, struct name_error *ret);
/* Remove NAME.error. 0, or -ENOENT. */
int names_remove_error(struct names *all, const char *name);
