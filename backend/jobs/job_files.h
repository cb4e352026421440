/* SPDX-License-Identifier: MIT */
/*
 * A table of the files of submit/: for each file, the records of the jobs that the file has
 * launched. kxfs computes NAME.job from it. The UUIDs of launches increase, even from mount to
 * mount, so that kxfs finds the newest launch of a file without a clock. records.c owns the table
 * and changes it on the I/O thread. Any thread may read the table under its lock.
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
	char uuid[JOB_FILES_UUID]; /* the UUID of the submission */
	int64_t time;		   /* the time of the submission, in ns */
	char digest[65];	   /* SHA-256 of the document */
	/*
	 * True if UID and GID are those of the user who submitted the job. False if the mounting
	 * user submitted the job.
	 */
	bool owned;
	uid_t uid;
	gid_t gid;
};

struct job_files;
struct job_files_name;

/* A launch. It is a member of struct record, but only job_files.c changes it. */
struct job_launch {
	const struct spec_head *head;
	struct job_files_name *name; /* NULL if the launch is not in the table */
	bool shown;		     /* true if the job is in the store */
	/* true if NAME.job was removed; HEAD->unlinked follows when the record is written */
	bool hidden;
	struct job_launch *prev, *next; /* launches of the same file, the newest first */
};

struct job_files *job_files_new(void);
void job_files_free(struct job_files *f); /* Call this after all launches were removed. */

/* --- I/O thread --- */

/*
 * If L's job was submitted as a file, add L, which must be zeroed, to the table. HEAD is the head
 * of the job's record, which must be on disk already. HEAD must keep its address. Adding records in
 * the order of their keys is fastest.
 */
void job_files_add(struct job_files *f, struct job_launch *l, const struct spec_head *head);
/*
 * Return the lock under which any thread may read a launch's head, and the I/O thread changes it.
 */
struct lock *job_files_lock(struct job_files *f);
/*
 * Call this when the head of L has changed. This function and the functions below do nothing if L
 * is not in the table.
 */
void job_files_update(struct job_files *f, const struct job_launch *l);
/* Record whether the job of L is in the store now (SHOWN). */
void job_files_show(struct job_files *f, struct job_launch *l, bool shown);
/*
 * True if NAME.job shows L, or would show L if NAME.job had not been removed. While L is being
 * launched, NAME.job shows the previous launch, so the result is false unless NAME.job was removed.
 */
bool job_files_is_newest(struct job_files *f, const struct job_launch *l);
/* Remove L from the table, because its record is being removed. */
void job_files_remove(struct job_files *f, struct job_launch *l);

/* --- any thread --- */

/* Make a UUID that is greater than those of all launches. Return 0 or -EIO. */
int job_files_next_uuid(struct job_files *f, char ret[JOB_FILES_UUID]);
/*
 * Like backend_file, but *RET has the id from the record, although the store may have renamed the
 * job.
 */
int job_files_find(struct job_files *f, const char *file, struct backend_file *ret);
/* See backend_files, backend_files_changed, backend_knows_digest. */
size_t job_files_list(struct job_files *f, char ***ret);
int64_t job_files_changed(struct job_files *f);
bool job_files_know(struct job_files *f, const char *digest);
/*
 * Hide the launch of FILE from job_files_find, because NAME.job is being removed. Set RET_KEY to
 * the key of this launch. Return 0, or -ENOENT if job_files_find would find no launch of FILE.
 */
int job_files_unlink(struct job_files *f, const char *file, char ret_key[JOB_FILES_UUID]);
