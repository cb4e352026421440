/* SPDX-License-Identifier: MIT */
/*
 * What is known of each name in submit/ or dryrun/: the file of that name and what its content is, the launches under
 * way, and their verdicts: NAME.job, a link to the job of the last accepted write, and NAME.error, why the last write
 * was refused. One table, one lock (given by its owner, and shared with the files' bytes), one record on disk for each
 * name (record.h); all here is in memory, and save.h brings it to disk.
 *
 * The content of a file has a state, which goes with the file when it gets another name:
 *
 *	state     | what holds of the bytes              | what ends it
 *	EMPTY     | there are none yet                   | they change: WRITING
 *	WRITING   | changed; nobody has a verdict        | its writer is done: LAUNCHING; or it gives up: TOLD
 *	LAUNCHING | a launch of them is under way        | accepted: LAUNCHED; refused: TOLD; they change: WRITING
 *	TOLD      | refused, or never meant to be sent   | they change: WRITING; a rename: LAUNCHING
 *	LAUNCHED  | are a job's (dryrun/: a manifest)    | they change: WRITING
 *	CLAIMED   | as LAUNCHED, if the bytes have the   | they are read: LAUNCHED or TOLD; they change: WRITING
 *	          | digest; of an earlier mount          |
 *
 * On disk LAUNCHED, CLAIMED, TOLD and a launch under way stand in the record. So a file that submits and of which the
 * record says none of these was being written when a mount was killed, and the next start says so.
 *
 * A verdict belongs to the name. Launches are numbered in the order in which they begin, over all mounts; the verdict
 * on a later one is never replaced by that on an earlier one, even if the answer to the earlier one comes last. The
 * number stands in the UUID of the launch, which is in the name's record before the backend is asked, and in the job.
 * So the start after a crash knows what became of which launch without a look at any clock.
 */
#pragma once

#include "fs/submit/name.h"
#include "fs/submit/upload.h"

/* Names of one table. */
#define NAMES_MAX 10000

enum name_state {
	NAME_EMPTY,
	NAME_WRITING,
	NAME_LAUNCHING,
	NAME_TOLD,
	NAME_LAUNCHED,
	NAME_CLAIMED,
};

struct names;

/* LOCK, borrowed, is that of the files. US: the owner of verdicts that have none on disk. */
struct names *names_new(struct lock *lock, struct record_owner us);
void names_free(struct names *all); /* NULL is allowed */

/* --- any thread --- */

/* When the list of names changed last, ns. */
int64_t names_changed(struct names *all);
/* The names that have a KIND; *RET and its items are malloc'ed. */
size_t names_list(struct names *all, enum submit_name kind, char ***ret);
/* The number of a verdict without a launch. */
uint64_t names_next(struct names *all);

/* --- files --- */

/* The file called NAME as a reference; NULL: none. */
struct upload *names_file(struct names *all, const char *name);
/* Make the file NAME: *RET is a reference. -EEXIST; -ENOSPC: there are too many names. */
int names_make(struct names *all, struct uploads *files, const char *name, mode_t mode,
	       struct record_owner owner, struct upload **ret);
/* U was found on disk as NAME. */
void names_add(struct names *all, const char *name, struct upload *u);
/* What U is called now; false: it has no name any more. */
bool names_of(struct names *all, const struct upload *u, char ret[NAME_MAX + 1]);
/* U, if it has a name, has none any more. */
void names_drop(struct names *all, struct upload *u);
/*
 * U gets the name TO; a file that has that one loses it. A content that was launched takes its verdict along, if both
 * names submit.
 */
void names_move(struct names *all, struct upload *u, const char *to);
/*
 * Drop the file NAME if it has not been changed since BEFORE, ns (INT64_MAX: ever), its content was launched, and
 * nobody has it open: *RET is a reference. -ENOENT; -EBUSY; -EAGAIN: it must be read first, to know (names_loaded).
 */
int names_expire(struct names *all, const char *name, int64_t before, struct upload **ret);

/* --- content --- */

/* What the content of U is; NAME_EMPTY: it has no name. */
enum name_state names_state(struct names *all, const struct upload *u);
/* The bytes of U change. True: its record says what does not hold any more. */
bool names_writing(struct names *all, const struct upload *u);
/* Nobody writes U any more. True: its record does not say so yet. */
bool names_settle(struct names *all, const struct upload *u);
/* The bytes of U have DIGEST. */
void names_loaded(struct names *all, const struct upload *u, const char *digest);
/* An earlier mount has launched what is in U if it has DIGEST; "": whatever it is. */
void names_claim(struct names *all, const struct upload *u, const char *digest);
/* Is U being written, or launched? */
bool names_busy(struct names *all, const struct upload *u);

/* --- launches --- */

struct name_launch {
	uint64_t number;
	char uuid[RECORD_UUID];
};

/*
 * VERSION, the content of U, is being launched as NAME. RECORDED: the record of NAME says so until names_concluded.
 * 0 or -EIO.
 */
int names_launch(struct names *all, const char *name, const struct upload *u, uint64_t version,
		 struct record_owner owner, bool recorded, struct name_launch *ret);
/*
 * That launch has ended. DIGEST: of the content that is LAUNCHED now, which is VERSION; NULL: it was refused. OPEN:
 * what became of it is not known, so its record stays for the next mount.
 */
void names_concluded(struct names *all, const char *name, const struct upload *u, uint64_t version,
		     const struct name_launch *l, const char *digest, bool open);
/* Launch NUMBER of NAME made the job ID, or was refused. Texts are copied; ERROR is cleaned and bounded. */
void names_accepted(struct names *all, const char *name, uint64_t number, const char *id,
		    struct record_owner owner);
void names_refused(struct names *all, const char *name, uint64_t number, const char *error,
		   struct record_owner owner);
/* KIND is SUBMIT_NAME_JOB or SUBMIT_NAME_ERROR. -ENOENT: there is none. */
int names_remove(struct names *all, const char *name, enum submit_name kind);

struct name_view {
	char *text; /* the job's id or the error; malloc'ed */
	int64_t time;
	struct record_owner owner;
};
/* 0, or -ENOENT. */
int names_view(struct names *all, const char *name, enum submit_name kind, struct name_view *ret);

/* --- over the end of a mount --- */

/* The record of NAME; to be cleared. *FILE: a reference to its file, or NULL. */
void names_record(struct names *all, const char *name, struct record *ret, struct upload **file);
/* Take the record of NAME. All files were added. */
void names_take_record(struct names *all, const char *name, const struct record *r);
/* Up to which number all launches have their verdict. */
uint64_t names_reported(struct names *all);
/*
 * The next file whose record, now that all are taken, does not say what its content is: somebody was writing it when
 * the last mount ended. It counts as told from now on. False: there is none left.
 */
bool names_take_unfinished(struct names *all, char **name);
/* Up to REPORTED all launches had their verdict when the last mount ended; UINT64_MAX: that is not known. */
void names_set_reported(struct names *all, uint64_t reported);
/*
 * Submission UUID of NAME became the job ID, or ("") none; NULL: that is not known yet, and told later. It is noted if
 * that is news. True: NAME shows it already, but the last mount may have ended before its record was synced.
 */
bool names_was_launched(struct names *all, const char *name, const char *id, const char *uuid);
/*
 * Take the next name that had a launch under way when the last mount ended, or of which news were noted. *NAME and *ID
 * (NULL: no job of it is known) are malloc'ed. *UNKNOWN: an older kxfs did not note which launch it was. False: there
 * is none left.
 */
bool names_take_open(struct names *all, char **name, char **id, struct record_owner *owner,
		     bool *unknown);
