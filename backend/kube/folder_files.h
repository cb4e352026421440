/* SPDX-License-Identifier: MIT */
/*
 * The files of a job's folder in the state directory of a mount of a cluster, but for its output (output.h):
 *
 *	STATE/submissions/UUID	a submission that is under way: "ID\nFILE\nSHA256\n" and the text that was written
 *	STATE/jobs/ID/
 *		app.yaml	the text that was written
 *		submission	"UUID\nFILE\n": the job was submitted from here, as FILE; then "UID\n", as soon as the
 *				server has told the uid: from then on no other job is this one, whatever its object
 *				says. Its mtime is that of the submission
 *		job.json	the newest snapshot of a job whose output is, or was, captured
 *		dropped		its uid: its output was removed to make room
 *	STATE/jobs/ID~UID8/	the same of a job of the history, since another job called ID has output: UID8 is the
 *				beginning of its uid. No job of a cluster has a `~` in its name
 *	STATE/unread/		what was moved out of the way: folders of which nobody can tell whose they are, and
 *				damaged submissions
 *
 * Before anything is sent, STATE/submissions/UUID is synced, which takes two fsyncs (of the file and of its directory)
 * and is all that a start after a crash needs to know that the job is ours. Most disks do both in one transaction,
 * since the file gets its name before it is synced. So after a power cut the file may be there without being whole,
 * which its digest shows; nothing was sent then. The digest is of "UUID\nID\nFILE\n" and the text. The job's folder is
 * made before that file, without a sync. It is synced when the submission has been answered; if kxfs dies before, the
 * next start makes it again.
 *
 * All functions wait for the disk, so they run on the pool; they return 0 or a negative errno.
 */
#pragma once

#include "spec/job/job.h"

/* What a start has found of a folder. Plain data. */
struct folder_found {
	char *id;
	char *submission;	   /* its UUID; NULL: the job was not submitted from here */
	char *file;		   /* the file's name in submit/; NULL: not known */
	int64_t written;	   /* when it was written, in ns */
	char *uid;		   /* uid of the job that was submitted; NULL: not known */
	char *dropped;		   /* uid of the job whose output was removed; NULL: none was */
	struct spec_job *snapshot; /* NULL: there is none */
	bool unread;		   /* there is output, and nobody can tell of which job */
	bool unmerged;		   /* as in struct folder; folders.c finds out */
	struct folder_found *next;
};

/*
 * Load all folders, after completing the submissions that a crash has cut off. *RET is the caller's, also after an
 * error.
 */
int folder_files_load(const char *state_dir, struct folder_found **ret);
void folder_found_free(struct folder_found *found);

struct folder_submission {
	const char *id;
	const char *uuid;
	const char *file;
	const char *text;
	size_t len;
	mode_t readable; /* see backend_submission.readable */
};

/*
 * Make the folder of a submission, and what a start needs to know of it. -EEXIST: there is a folder of that name, and
 * it is not a rest of an earlier try of the same submission; nothing is done.
 */
int folder_files_submit(const char *state_dir, const struct folder_submission *s);
/*
 * The submission, which was written at TIME (ns), is tried again, and its folder is there: give it its text again if a
 * crash has torn that.
 */
int folder_files_resume(const char *state_dir, const struct folder_submission *s, int64_t time);
/*
 * The submission UUID of ID was answered, and its folder stays: sync the folder, and write the job's uid ("": not
 * known) into it.
 */
int folder_files_settle(const char *state_dir, const char *id, const char *uuid, const char *uid);
/* Forget the submission UUID; to be called before its folder is removed. */
int folder_files_forget(const char *state_dir, const char *uuid);

/*
 * Write the snapshot JOB. UNREAD: the one on disk can't be read, so it is moved out of the way before, to *RET_PLACE
 * (malloc'ed).
 */
int folder_files_save(const char *state_dir, const struct spec_job *job, bool unread,
		      char **ret_place);
/* Write down that the output of job UID, whose folder is ID, was removed. */
int folder_files_drop(const char *state_dir, const char *id, const char *uid);
/* The name ID~UID8, malloc'ed; NULL: it would be no name of a file. */
char *folder_files_name_of(const char *id, const char *uid);
/* Move the folder to STATE/unread/; *RET_PLACE (malloc'ed) is where it is now. */
int folder_files_aside(const char *state_dir, const char *id, char **ret_place);
