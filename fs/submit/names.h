/* SPDX-License-Identifier: MIT */
/*
 * The names in submit/ or dryrun/. A name may have a file, and a NAME.error: the reason why the
 * newest launch of NAME failed. Both are in memory. The caller's lock guards names and files
 * (upload.h).
 *
 * Launches are numbered in the order of their start. A late result of an older launch never
 * replaces the result of a newer launch. A result belongs to the name under which the contents were
 * launched, even if the file has been renamed since.
 */
#pragma once

#include "fs/submit/upload.h"

#define NAMES_MAX 10000
/* in bytes */
#define NAMES_MAX_ERROR 32768

/* --- what names mean --- */

#define SUBMIT_JOB_SUFFIX   ".job"
#define SUBMIT_ERROR_SUFFIX ".error"

enum submit_name { SUBMIT_NAME_FILE, SUBMIT_NAME_JOB, SUBMIT_NAME_ERROR };

/*
 * Return 0 if users may make a file NAME. Return -EINVAL or -ENAMETOOLONG if NAME is invalid, or
 * -EPERM if NAME is the name of a result (.job, .error).
 */
int submit_name_check(const char *name);
/* Return the kind of NAME: a file, BASE.job or BASE.error. Set RET_BASE to BASE, if any. */
enum submit_name submit_name_kind(const char *name, char ret_base[NAME_MAX + 1]);

/*
 * True if NAME, which is not a submitting name, is a temporary name of an editor or another program
 * ("4913", "sedX3k9dw", "app.yaml.1f3a", "app.yaml~", "tmp.x").
 */
bool submit_name_is_passing(const char *name);

/* --- the table --- */

struct names;

/* LOCK is also the lock of the files (uploads_new). It is borrowed. */
struct names *names_new(struct lock *lock);
void names_free(struct names *all); /* NULL is allowed */

/* --- any thread --- */

/* Return the time (ns) of the last change of the list of names. */
int64_t names_changed(struct names *all);
/*
 * Set *RET to the names (without suffix) that have a file, or, for SUBMIT_NAME_ERROR, a NAME.error.
 * Return their number. The array and the names are malloc'ed.
 */
size_t names_list(struct names *all, enum submit_name kind, char ***ret);

/* --- files --- */

/* Return a new reference, or NULL. */
struct upload *names_file(struct names *all, const char *name);
/*
 * Make the file NAME. *RET becomes a new reference. Return 0, -EEXIST, or -ENOSPC if there are too
 * many names.
 */
int names_make(struct names *all, struct uploads *files, const char *name, mode_t mode,
	       struct file_owner owner, struct upload **ret);
/* Add U, which was found on disk. Take ownership of the reference. */
void names_add(struct names *all, const char *name, struct upload *u);
/* Set RET to U's current name. Return false if U was removed. */
bool names_of(struct names *all, const struct upload *u, char ret[NAME_MAX + 1]);

/*
 * A writer that has lost its file, because another process has removed, replaced or renamed the
 * file. This is reported only if the file had a submitting name.
 */
struct name_loss {
	pid_t writer; /* the writer's process; -1 if unknown; 0 if no writer has lost the file */
	/* number for names_end, which the caller calls with the reason for NAME.error */
	uint64_t number;
	char name[NAME_MAX + 1];
};

/*
 * Rename U to TO, or remove U's name if TO is NULL, as PROCESS has requested. Take the file that
 * had the name TO from its writers, except those that PROCESS has opened. Take U from its writers
 * in the same way if U loses a submitting name: by a removal, or by a rename to a name that does
 * not submit. If PROCESS is 0, spare no writer. *RET reports a writer that has lost a file. If U
 * has no name, do nothing.
 */
void names_move(struct names *all, struct upload *u, const char *to, pid_t process,
		struct name_loss *ret);
/* If U still has the contents VERSION and is closed, remove its name and return true. */
bool names_expire(struct names *all, struct upload *u, uint64_t version);

/* --- launches --- */

/* Start a launch of NAME, and return its number. names_end must end it. */
uint64_t names_begin(struct names *all, const char *name);
/*
 * End a launch of NAME. NUMBER is what names_begin returned, or 0 to keep NAME.error. Unless a
 * newer launch has ended, make ERROR the text of NAME.error. If ERROR is NULL, remove NAME.error.
 */
void names_end(struct names *all, const char *name, uint64_t number, const char *error,
	       struct file_owner owner);
/* Explain in NAME.error why NAME is not launched. */
void names_explain(struct names *all, const char *name, const char *error, struct file_owner owner);

struct name_error {
	char *text; /* malloc'ed */
	int64_t time;
	struct file_owner owner;
};
/* Set *RET to NAME.error. Return 0 or -ENOENT. */
int names_error(struct names *all, const char *name, struct name_error *ret);
/* Return 0 or -ENOENT. */
int names_remove_error(struct names *all, const char *name);
