/* SPDX-License-Identifier: MIT */
/*
 * What is known of each name in submit/ or dryrun/: the file of that name and the state of its content, the launches
 * under way, and their verdicts: NAME.job, a link to the job of the last accepted write, and NAME.error, which says why
 * the last write was refused. There is one table, one lock (its owner's, which also guards the files' bytes), and one
 * record on disk for each name (record.h). This file is about memory; save.h brings it to disk.
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
 * On disk LAUNCHED, CLAIMED, TOLD and a launch under way stand in the record. So if a file submits and its record says
 * none of these, it was being written when a mount was killed, and the next start says so.
 *
 * A verdict belongs to the name. Launches are numbered in the order in which they begin, over all mounts; the verdict
 * on a later one is never replaced by that on an earlier one, even if the answer to the earlier one comes last. The
 * number stands in the UUID of the launch, which is in the name's record before the backend is asked, and in the job.
 * So the start after a crash knows what became of each launch without any clock.
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

/* LOCK, borrowed, is that of the files. US owns verdicts that have no owner on disk. */
struct names *names_new(struct lock *lock, struct record_owner us);
void names_free(struct names *all); /* NULL is allowed */

/* --- any thread --- */

/* When the list of names last changed, in ns. */
int64_t names_changed(struct names *all);
/* The names that stand for a KIND; *RET and its items are malloc'ed. */
size_t names_list(struct names *all, enum submit_name kind, char ***ret);
/* A number for a verdict without a launch. */
uint64_t names_next(struct names *all);

/* --- files --- */

/* The file called NAME as a reference; NULL: none. */
struct upload *names_file(struct names *all, const char *name);
/* Make the file NAME: *RET is a reference. -EEXIST; -ENOSPC: there are too many names. */
int names_make(struct names *all, struct uploads *files, const char *name, mode_t mode,
	       struct record_owner owner, struct upload **ret);
/* U was found on disk as NAME. */
void names_add(struct names *all, const char *name, struct upload *u);
/* Find the present name of U; false: it has none any more. */
bool names_of(struct names *all, const struct upload *u, char ret[NAME_MAX + 1]);

/* A writer has lost its file, whose name submitted, to the process that removed, replaced or renamed that. */
struct name_loss {
	pid_t writer;	 /* -1: it is not known which process it was; 0: nobody has lost anything */
	uint64_t number; /* number for the verdict */
	char name[NAME_MAX + 1];
};

/* PROCESS (0: none) takes its name from U, if it has one, and U from all other writers. */
void names_drop(struct names *all, struct upload *u, pid_t process, struct name_loss *ret);
/*
 * PROCESS gives U the name TO. A file that has that name loses it, and is taken from all other writers; so is U, if its
 * name submits and TO does not. A content that was launched takes its verdict along, if both names submit.
 */
void names_move(struct names *all, struct upload *u, const char *to, pid_t process,
		struct name_loss *ret);
/*
 * Drop the file NAME if it was not changed after BEFORE, in ns (INT64_MAX: whenever it was), its content was launched,
 * and nobody has it open: *RET is a reference. -ENOENT; -EBUSY; -EAGAIN: it has to be read first (names_loaded).
 */
int names_expire(struct names *all, const char *name, int64_t before, struct upload **ret);

/* --- content --- */

/* The state of the content of U; NAME_EMPTY: U has no name. */
enum name_state names_state(struct names *all, const struct upload *u);
/* The bytes of U change. True: its record says what does not hold any more. */
bool names_writing(struct names *all, const struct upload *u);
/* Nobody writes U any more. True: its record does not say so yet. */
bool names_settle(struct names *all, const struct upload *u);
/* The bytes of U have DIGEST. */
void names_loaded(struct names *all, const struct upload *u, const char *digest);
/* An earlier mount has launched the content of U if that has DIGEST; "": whatever it has. */
void names_claim(struct names *all, const struct upload *u, const char *digest);
/* Is U being written, or launched? */
bool names_busy(struct names *all, const struct upload *u);

/* --- launches --- */

struct name_launch {
	uint64_t number;
	char uuid[RECORD_UUID];
};

/*
 * VERSION, the content of U, is being launched as NAME. RECORDED: the record of NAME says so until names_concluded is
 * called. 0 or -EIO.
 */
int names_launch(struct names *all, const char *name, const struct upload *u, uint64_t version,
		 struct record_owner owner, bool recorded, struct name_launch *ret);
/*
 * The launch of VERSION has ended. DIGEST is that of the content, which is LAUNCHED now; NULL: it was refused. OPEN:
 * the outcome is not known, so the record of the launch stays for the next mount.
 */
void names_concluded(struct names *all, const char *name, const struct upload *u, uint64_t version,
		     const struct name_launch *l, const char *digest, bool open);
/* Launch NUMBER of NAME made the job ID, or was refused. Texts are copied; ERROR is cleaned and bounded. */
void names_accepted(struct names *all, const char *name, uint64_t number, const char *id,
		    struct record_owner owner);
void names_refused(struct names *all, const char *name, uint64_t number, const char *error,
		   struct record_owner owner);
/* Remove a verdict: KIND is SUBMIT_NAME_JOB or SUBMIT_NAME_ERROR. -ENOENT: there is none. */
int names_remove(struct names *all, const char *name, enum submit_name kind);

struct name_verdict {
	char *text; /* the job's id or the error; malloc'ed */
	int64_t time;
	struct record_owner owner;
};
/* Find a verdict. 0, or -ENOENT. */
int names_verdict(struct names *all, const char *name, enum submit_name kind,
		  struct name_verdict *ret);

/* --- over the end of a mount --- */

/* Fill *RET with the record of NAME; it is to be cleared. *FILE: a reference to the file of NAME, or NULL. */
void names_record(struct names *all, const char *name, struct record *ret, struct upload **file);
/* Take over what the record R of NAME says. All files were added before. */
void names_take_record(struct names *all, const char *name, const struct record *r);
/* The number up to which all launches have their verdict. */
uint64_t names_reported(struct names *all);
/*
 * Take the next file whose record, now that all were taken, does not say what its content is: somebody was writing it
 * when the last mount ended. From now on it counts as told. False: there is none left.
 */
bool names_take_unfinished(struct names *all, char **name);
/* When the last mount ended, all launches up to REPORTED had their verdict; UINT64_MAX: that is not known. */
void names_set_reported(struct names *all, uint64_t reported);
/*
 * The submission UUID of NAME became the job ID, or ("") no job; NULL: that is not known yet, and told later. This
 * notes it if it is news. True: NAME shows it already, but the last mount may have ended before its record was synced.
 */
bool names_was_launched(struct names *all, const char *name, const char *id, const char *uuid);
/*
 * Take the next name that had a launch under way when the last mount ended, or of which news were noted. *NAME and *ID
 * (NULL: no job of it is known) are malloc'ed; *NUMBER is that of the launch. False: there is none left.
 */
bool names_take_open(struct names *all, char **name, char **id, uint64_t *number,
		     struct record_owner *owner);
