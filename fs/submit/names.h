/* SPDX-License-Identifier: MIT */
/*
 * The names in submit/ or dryrun/: which file each belongs to, and NAME.error, the reason why the newest launch of the
 * name failed. Both are in memory; NAME.job comes from the records of jobs (backend_file). One lock, which the owner
 * passes, guards the table and the files (upload.h).
 *
 * Launches are numbered in the order in which they begin. The result of the newest launch of a name is shown. The
 * result of an older one never replaces it, even if it arrives later. A result belongs to the name under which the
 * content was launched, also if the file has another name by then.
 */
#pragma once

#include "fs/submit/name.h"
#include "fs/submit/upload.h"

/* Names of one table. */
#define NAMES_MAX 10000
/* The most bytes of a NAME.error. */
#define NAMES_MAX_ERROR 32768

struct names;

/* LOCK, borrowed, is that of the files. */
struct names *names_new(struct lock *lock);
void names_free(struct names *all); /* NULL is allowed */

/* --- any thread --- */

/* When the list of names last changed, in ns. */
int64_t names_changed(struct names *all);
/* The names that have a file, or (KIND is SUBMIT_NAME_ERROR) an error; *RET and its items are malloc'ed. */
size_t names_list(struct names *all, enum submit_name kind, char ***ret);

/* --- files --- */

/* The file called NAME as a reference; NULL: none. */
struct upload *names_file(struct names *all, const char *name);
/* Make the file NAME: *RET is a reference. -EEXIST; -ENOSPC: there are too many names. */
int names_make(struct names *all, struct uploads *files, const char *name, mode_t mode,
	       struct file_owner owner, struct upload **ret);
/* The file U, whose reference is given away, was found on disk as NAME. */
void names_add(struct names *all, const char *name, struct upload *u);
/* Find the present name of U. False: the file was removed. */
bool names_of(struct names *all, const struct upload *u, char ret[NAME_MAX + 1]);

/* A writer has lost its file, whose name submitted, to the process that removed, replaced or renamed the file. */
struct name_loss {
	pid_t writer;	 /* -1: the process is not known; 0: no writer has lost the file */
	uint64_t number; /* of the launch that failed so, as from names_begin */
	char name[NAME_MAX + 1];
};

/* PROCESS (0: none) takes its name from U, if it has one, and U from all other writers. */
void names_drop(struct names *all, struct upload *u, pid_t process, struct name_loss *ret);
/*
 * PROCESS gives U the name TO. A file that has that name loses it, and is taken from all other writers; so is U, if its
 * name submits and TO does not.
 */
void names_move(struct names *all, struct upload *u, const char *to, pid_t process,
		struct name_loss *ret);
/* Take its name from U if U still has the content VERSION and nobody has it open. False: it keeps its name. */
bool names_expire(struct names *all, struct upload *u, uint64_t version);

/* --- launches --- */

/* A launch of NAME begins: return its number. It ends with one of the next three functions. */
uint64_t names_begin(struct names *all, const char *name);
/* Launch NUMBER was accepted: an error of it, or of an older launch, is removed. */
void names_accepted(struct names *all, const char *name, uint64_t number);
/* Launch NUMBER was refused: ERROR becomes NAME.error, clean and bounded, unless a newer launch has a result. */
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
