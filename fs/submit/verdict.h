/* SPDX-License-Identifier: MIT */
/*
 * What became of what was submitted under a name: NAME.job, a link to the job of the last accepted write, and
 * NAME.error, why the last write was refused. A verdict belongs to a name, not to a file, and knows nothing of bytes.
 *
 * Launches are numbered in the order in which they begin (verdicts_next); the verdict on a later one is never
 * replaced by that on an earlier one, even if the answer to the earlier one comes last.
 *
 * Any thread; one lock, a leaf. All is in memory; save.h brings it to disk.
 */
#ifndef KXFS_FS_SUBMIT_VERDICT_H
#define KXFS_FS_SUBMIT_VERDICT_H

#include "fs/submit/name.h"
#include "fs/submit/record.h"

/* Names of one table. */
#define VERDICTS_MAX 10000

struct verdicts;

/* US: the owner of verdicts that have none on disk. */
struct verdicts *verdicts_new(struct record_owner us);
void verdicts_free(struct verdicts *all); /* NULL is allowed */
/* Is there room for one more name? */
bool verdicts_room(struct verdicts *all);
/* When the list of names changed last, ns; 0: never. */
int64_t verdicts_changed(struct verdicts *all);
/* The number of a launch that begins now. */
uint64_t verdicts_next(struct verdicts *all);

/* --- what becomes of a launch --- */

/* A launch of NAME is under way from now on. */
void verdict_begin(struct verdicts *all, const char *name, struct record_owner owner);
/* It has ended; its verdict comes next. */
void verdict_end(struct verdicts *all, const char *name);
/* Launch NUMBER of NAME made the job ID, or was refused. Texts are copied; ERROR is cleaned and bounded. */
void verdict_accepted(struct verdicts *all, const char *name, uint64_t number, const char *id,
		      struct record_owner owner);
void verdict_refused(struct verdicts *all, const char *name, uint64_t number, const char *error,
		     struct record_owner owner);
/* The verdict of FROM becomes that of TO. A launch under way stays with the name under which it was submitted. */
void verdict_move(struct verdicts *all, const char *from, const char *to);
/* KIND is SUBMIT_NAME_JOB or SUBMIT_NAME_ERROR. -ENOENT: there is none. */
int verdict_remove(struct verdicts *all, const char *name, enum submit_name kind);

/* --- what is shown --- */

struct verdict_view {
	char *text; /* the job's id or the error; malloc'ed */
	int64_t time;
	struct record_owner owner;
};
/* 0, or -ENOENT. */
int verdict_get(struct verdicts *all, const char *name, enum submit_name kind,
		struct verdict_view *ret);
/* Call FN, under the lock, for each name that has a verdict of KIND. */
void verdicts_visit(struct verdicts *all, enum submit_name kind,
		    void (*fn)(void *data, const char *name), void *data);

/* --- over the end of a mount --- */

/* Fill the part of R, the record of NAME, that is about its verdict. */
void verdict_fill_record(struct verdicts *all, const char *name, struct record *r);
/* A record was written at TIME, by the clock of the disk, that says that a launch of NAME is under way. */
void verdict_recorded(struct verdicts *all, const char *name, int64_t time);
/* At the start: take the verdict of NAME from its record. */
void verdict_take_record(struct verdicts *all, const char *name, const struct record *r);
/*
 * The time (ns) up to which all launches have their verdict: BY, or less if a launch has been under way for longer.
 */
int64_t verdicts_reported_until(struct verdicts *all, int64_t by);
/*
 * An earlier mount has launched ID from what was written as NAME, at TIME or soon after. It is noted if that is news:
 * if it may be the launch that was under way when that mount ended, or came after REPORTED, the time up to which all
 * launches have their verdict.
 */
void verdict_was_launched(struct verdicts *all, const char *name, const char *id, int64_t time,
			  int64_t reported);
/*
 * Take the next name that had a launch under way when the last mount ended, or of which news were noted. *NAME and *ID
 * (NULL: no job of it is known) are malloc'ed. False: there is none left.
 */
bool verdicts_take_open(struct verdicts *all, char **name, char **id, struct record_owner *owner);

#endif
