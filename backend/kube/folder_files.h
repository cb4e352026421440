/* SPDX-License-Identifier: MIT */
/*
 * The files of a job's folder in the state directory of a mount of a cluster, but for its output (output.h):
 *
 *	STATE/submissions/UUID	a submission that is under way: "ID\nFILE\nSHA256\n" and the text that was written
 *	STATE/output/KEY/	KEY is the UUID of the submission, or the uid of a job that was not submitted from here
 *		app.yaml	the text that was written
 *		submission	"ID\nFILE\n": the job was submitted from here, as FILE; then "UID\n", as soon as the
 *				server has told the uid: from then on no other job is this one, whatever its object
 *				says. Its mtime is that of the submission
 *		job.json	the newest snapshot of a job whose output is, or was, captured
 *		dropped		its uid: its output was removed to make room
 *	STATE/aside/		damaged snapshots and submissions
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
	char *key;
	bool own;		   /* the job was submitted from here */
	char *id;		   /* what the job was called; NULL: not known */
	char *file;		   /* the file's name in submit/; NULL: not known */
	int64_t written;	   /* when it was written, in ns */
	char *uid;		   /* uid of the job that was submitted; NULL: not known */
	char *dropped;		   /* uid of the job whose output was removed; NULL: none was */
	struct spec_job *snapshot; /* NULL: there is none */
	bool printed;		   /* there is output, though no snapshot */
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
 * Make the folder of a submission, and what a start needs to know of it. -EEXIST: there is such a folder, and it has
 * more than an earlier try of the same submission would have left; nothing is done.
 */
int folder_files_submit(const char *state_dir, const struct folder_submission *s);
/*
 * The submission, which was written at TIME (ns), is tried again, and its folder is there: give it its text again if a
 * crash has torn that.
 */
int folder_files_resume(const char *state_dir, const struct folder_submission *s, int64_t time);
/*
 * The submission UUID was answered, and its folder stays: sync the folder, and write the job's uid ("": not known) into
 * it.
 */
int folder_files_settle(const char *state_dir, const char *uuid, const char *uid);
/* Forget the submission UUID; to be called before its folder is removed. */
int folder_files_forget(const char *state_dir, const char *uuid);

/* Write the snapshot JOB. */
int folder_files_save(const char *state_dir, const struct spec_job *job);
/* Write down that the output of job UID in the folder KEY was removed. */
int folder_files_drop(const char *state_dir, const char *key, const char *uid);
