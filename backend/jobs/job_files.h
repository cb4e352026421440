/* SPDX-License-Identifier: MIT */
/*
 * A table of the files of submit/. For each file it has the records of the jobs that the file has
 * launched. NAME.job is a link to the job that the file NAME launched last. kxfs finds this job in
 * the table. The UUIDs of launches increase, even from mount to mount, so that kxfs finds the
 * newest launch without a clock. records.c changes the table on the I/O thread. Any thread may read
 * the table under its lock.
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
	bool owned; /* true if UID and GID submitted the job, false if the mounting user did */
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
void job_files_free(struct job_files *f); /* call this after removing all launches */

/* --- I/O thread --- */

/*
 * If the job of HEAD was submitted as a file, add L, which must be zeroed. Otherwise do nothing.
 * HEAD is the head of a record that is already on disk. HEAD must keep its address. It is fastest
 * to add records in the order of their keys.
 */
void job_files_add(struct job_files *f, struct job_launch *l, const struct spec_head *head);
/* Any thread may read a launch's head under this lock. The I/O thread changes it under the lock. */
struct lock *job_files_lock(struct job_files *f);
/* Call this when the head of L has changed. Here and below, L need not be in the table. */
void job_files_update(struct job_files *f, const struct job_launch *l);
/* Record whether the job of L is in the store now. */
void job_files_show(struct job_files *f, struct job_launch *l, bool shown);
/*
 * True if L is the newest launch of its file, even if the user has removed NAME.job. Don't count a
 * newer launch whose job is not in the store yet. False while L is SUBMITTING, unless the user has
 * removed NAME.job.
 */
bool job_files_is_newest(struct job_files *f, const struct job_launch *l);
void job_files_remove(struct job_files *f, struct job_launch *l);

/* --- any thread --- */

/* Make a UUID that is greater than those of all launches. Return 0 or -EIO. */
int job_files_next_uuid(struct job_files *f, char ret[JOB_FILES_UUID]);
/* Like backend_file, but *RET has the id in the record. The store may have renamed the job. */
int job_files_find(struct job_files *f, const char *file, struct backend_file *ret);
/* See backend_files, backend_files_changed, backend_knows_digest. */
size_t job_files_list(struct job_files *f, char ***ret);
int64_t job_files_changed(struct job_files *f);
bool job_files_know(struct job_files *f, const char *digest);
/*
 * Hide the launch that job_files_find finds for FILE, and set RET_KEY to the launch's key. Return
 * 0, or -ENOENT if there is no such launch.
 */
int job_files_unlink(struct job_files *f, const char *file, char ret_key[JOB_FILES_UUID]);
