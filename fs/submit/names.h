/* SPDX-License-Identifier: MIT */
/*
 * The names in submit/ or dryrun/. A name may have a file, and a NAME.error with the reason why the
 * newest launch of NAME failed. Both are in memory. NAME.job is not stored here: it is computed
 * from the records of jobs (backend_file). A lock of the caller guards the table of names and also
 * the files (upload.h).
 *
 * Launches are numbered in the order of their start. NAME.error shows the result of the newest
 * launch of NAME that has ended. The result of an older launch never replaces it, even if it
 * arrives later. A result belongs to the name under which the contents were launched, even if the
 * file has been renamed since.
 */
#pragma once

#include "fs/submit/upload.h"

/* The largest number of names in one table. */
#define NAMES_MAX 10000
/* The largest size of a NAME.error in bytes. */
#define NAMES_MAX_ERROR 32768

/* --- what names mean --- */

#define SUBMIT_JOB_SUFFIX   ".job"
#define SUBMIT_ERROR_SUFFIX ".error"

enum submit_name { SUBMIT_NAME_FILE, SUBMIT_NAME_JOB, SUBMIT_NAME_ERROR };

/*
 * Return 0 if a user may make a file called NAME; otherwise -EINVAL, -ENAMETOOLONG, or -EPERM if
 * NAME is the name of a result (NAME.job, NAME.error).
 */
int submit_name_check(const char *name);
/*
 * Return the kind of NAME: the name of a file, or BASE.job, or BASE.error. For the last two, set
 * RET_BASE to BASE.
 */
enum submit_name submit_name_kind(const char *name, char ret_base[NAME_MAX + 1]);

/*
 * True if NAME is a temporary name of an editor or another program ("4913", "sedX3k9dw",
 * "app.yaml.1f3a", "app.yaml~", "tmp.x"). NAME must not be a submitting name (spec_name_submits).
 */
bool submit_name_is_passing(const char *name);

/* --- the table --- */

struct names;

/* Make a table of names. LOCK is the lock of the files (uploads_new); it is borrowed. */
struct names *names_new(struct lock *lock);
void names_free(struct names *all); /* NULL is allowed */

/* --- any thread --- */

/* Return the time at which the list of names last changed, in ns. */
int64_t names_changed(struct names *all);
/*
 * Set *RET to the names that have a file, or, if KIND is SUBMIT_NAME_ERROR, to the names that have
 * a NAME.error. Return how many there are. The names have no suffix. The array and the names are
 * malloc'ed.
 */
size_t names_list(struct names *all, enum submit_name kind, char ***ret);

/* --- files --- */

/* Return a new reference to the file called NAME, or NULL. */
struct upload *names_file(struct names *all, const char *name);
/*
 * Make the file NAME, and set *RET to a reference. Return 0, -EEXIST, or -ENOSPC if there are too
 * many names.
 */
int names_make(struct names *all, struct uploads *files, const char *name, mode_t mode,
	       struct file_owner owner, struct upload **ret);
/* Add the file U, which was found on disk as NAME. Take ownership of the reference. */
void names_add(struct names *all, const char *name, struct upload *u);
/* Set RET to the current name of U, and return true. Return false if U was removed. */
bool names_of(struct names *all, const struct upload *u, char ret[NAME_MAX + 1]);

/*
 * A writer that has lost its file, because another process has removed, replaced or renamed the
 * file. The functions below report this only for a file that had a submitting name
 * (spec_name_submits).
 */
struct name_loss {
	pid_t writer; /* the writer's process; -1 if unknown; 0 if no writer has lost the file */
	/* number of a launch (names_begin) for the NAME.error that explains the loss */
	uint64_t number;
	char name[NAME_MAX + 1];
};

/*
 * Change the name of U to TO, or remove it if TO is NULL, as PROCESS has requested. If another file
 * has the name TO, remove that name from it, and take it from all its writers, except those that
 * PROCESS has opened. If U gets no name, or U's submitting name changes to one that does not
 * submit, take U from its writers in the same way. If PROCESS is 0, take the files from all
 * writers. *RET reports a writer that has lost a file. If U has no name, do nothing.
 */
void names_move(struct names *all, struct upload *u, const char *to, pid_t process,
		struct name_loss *ret);
/*
 * If U still has the contents VERSION and is not open, remove U's name and return true. Otherwise
 * return false.
 */
bool names_expire(struct names *all, struct upload *u, uint64_t version);

/* --- launches --- */

/*
 * Start a launch of NAME and return its number. The caller must end the launch with one of the next
 * three functions.
 */
uint64_t names_begin(struct names *all, const char *name);
/*
 * End launch NUMBER of NAME, which was accepted. Remove NAME.error, unless it is from a newer
 * launch.
 */
void names_accepted(struct names *all, const char *name, uint64_t number);
/*
 * End launch NUMBER of NAME, which was refused. Make ERROR the text of NAME.error, cleaned and
 * shortened, unless a newer launch has a result.
 */
void names_refused(struct names *all, const char *name, uint64_t number, const char *error,
		   struct file_owner owner);
/* End a launch of NAME that has no result. */
void names_abandoned(struct names *all, const char *name);

struct name_error {
	char *text; /* malloc'ed */
	int64_t time;
	struct file_owner owner;
};
/* Set *RET to NAME.error. Return 0 or -ENOENT. */
int names_error(struct names *all, const char *name, struct name_error *ret);
/* Remove NAME.error. Return 0 or -ENOENT. */
int names_remove_error(struct names *all, const char *name);
