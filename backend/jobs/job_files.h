/* SPDX-License-Identifier: MIT */
/*
 * A table of the files of submit/, each with the records of the jobs that it has launched. kxfs
 * computes NAME.job from the table. The UUIDs of launches increase, even from mount to mount, so
 * that kxfs finds the newest launch of a file without a clock. records.c changes the table on the
 * I/O thread. Any thread may read it under its lock.
 */
#pragma once

#include "backend/base/lock.h"
#include "backend/jobs/store.h"
#include "spec/record/head.h"

#define JOB_FILES_UUID 37

/* The job that NAME.job links to. Plain data. */
struct backend_file {
	char *id; /* malloc'ed */
	enum backend_place place;
	char uuid[JOB_FILES_UUID]; /* of the submission */
	int64_t time;		   /* of the submission, in ns */
	char digest[65];	   /* SHA-256 of the document */
	bool owned; /* true if UID and GID submitted the job, else the mounting user */
	uid_t uid;
	gid_t gid;
};

struct job_files;
struct job_files_name;

/* A launch, within a struct record. Only job_files.c changes it. */
struct job_launch {
	const struct spec_head *head;
	struct job_files_name *name;	/* NULL if not in the table */
	bool shown;			/* the job is in the store */
	bool hidden;			/* NAME.job was removed; HEAD->unlinked is set later */
	struct job_launch *prev, *next; /* of the same file, newest first */
};

struct job_files *job_files_new(void);
void job_files_free(struct job_files *f); /* after all launches were removed */

/* --- I/O thread --- */

/*
 * Add L, which must be zeroed, if its job was submitted as a file. Its record must be on disk
 * already. HEAD, the record's head, must keep its address. Adding records in the order of keys is
 * fastest.
 */
void job_files_add(struct job_files *f, struct job_launch *l, const struct spec_head *head);
/* Any thread may read a launch's head under this lock. The I/O thread changes it under the lock. */
struct lock *job_files_lock(struct job_files *f);
/* Call this when the head of L has changed. From here on, L need not be in the table. */
void job_files_update(struct job_files *f, const struct job_launch *l);
/* Record whether the job of L is in the store now. */
void job_files_show(struct job_files *f, struct job_launch *l, bool shown);
/*
 * True if NAME.job shows L, or would show L if NAME.job had not been removed. False while L is
 * being launched, unless NAME.job was removed meanwhile.
 */
bool job_files_is_newest(struct job_files *f, const struct job_launch *l);
void job_files_remove(struct job_files *f, struct job_launch *l);

/* --- any thread --- */

/* Make a UUID that is greater than those of all launches. Return 0 or -EIO. */
int job_files_next_uuid(struct job_files *f, char ret[JOB_FILES_UUID]);
/* Like backend_file, but *RET has the id of the record, even if the store has renamed the job. */
int job_files_find(struct job_files *f, const char *file, struct backend_file *ret);
/* See backend_files, backend_files_changed, backend_knows_digest. */
size_t job_files_list(struct job_files *f, char ***ret);
int64_t job_files_changed(struct job_files *f);
bool job_files_know(struct job_files *f, const char *digest);
/* Hide FILE's launch, and set RET_KEY to its key. Return 0, or -ENOENT if there is none. */
int job_files_unlink(struct job_files *f, const char *file, char ret_key[JOB_FILES_UUID]);
