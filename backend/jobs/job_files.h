/* SPDX-License-Identifier: MIT */
/*
 * A table from files of submit/ to the records that were submitted as these files. NAME.job is
 * computed from it. The UUIDs of launches increase, also from mount to mount, so the newest launch
 * of a file is found without a clock. records.c owns the table, and changes it on the I/O thread.
 * Any thread reads it, under its lock.
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
	bool owned; /* UID and GID are the submitter's; else the mounting user has submitted it */
	uid_t uid;
	gid_t gid;
};

struct job_files;
struct job_files_name;

/* A launch, which is a member of its record. Only job_files.c changes it. */
struct job_launch {
	const struct spec_head *head;
	struct job_files_name *name;	/* NULL if it is not in the table */
	bool shown;			/* its job is in the store */
	bool hidden;			/* NAME.job was removed; HEAD records that later */
	struct job_launch *prev, *next; /* launches of the same file, the newest first */
};

struct job_files *job_files_new(void);
void job_files_free(struct job_files *f); /* Call this after all launches were removed. */
/* Call FN on the I/O thread when the job that FILE launched last may have changed. */
void job_files_set_changed(struct job_files *f, void (*fn)(void *data, const char *file),
			   void *data);

/* --- I/O thread --- */

/*
 * Enter L, which is zeroed and whose record is on disk, if it was submitted as a file. HEAD must
 * keep its address. Adding records in the order of their keys is fastest.
 */
void job_files_add(struct job_files *f, struct job_launch *l, const struct spec_head *head);
/* Return the lock that must be held while the head of a launch is changed, because any thread reads it. */
struct lock *job_files_lock(struct job_files *f);
/* The head of L has changed. This function and those below do nothing if L is not in the table. */
void job_files_update(struct job_files *f, const struct job_launch *l);
/* SHOWN: the job of L is in the store. */
void job_files_show(struct job_files *f, struct job_launch *l, bool shown);
/*
 * True if NAME.job shows L, or would show L if NAME.job were not removed. False while the launch is
 * undecided, unless its NAME.job was removed: if the launch is refused, NAME.job shows the one
 * before it.
 */
bool job_files_is_newest(struct job_files *f, const struct job_launch *l);
/* Remove L from the table, because its record is being removed. */
void job_files_remove(struct job_files *f, struct job_launch *l);

/* --- any thread --- */

/* Make a UUID greater than those of all launches. 0 or -EIO. */
int job_files_next_uuid(struct job_files *f, char ret[JOB_FILES_UUID]);
/* As backend_file, but *RET has the recorded id: the store may have renamed the job since. */
int job_files_find(struct job_files *f, const char *file, struct backend_file *ret);
/* See backend_files, backend_files_changed, backend_knows_digest. */
size_t job_files_list(struct job_files *f, char ***ret);
int64_t job_files_changed(struct job_files *f);
bool job_files_know(struct job_files *f, const char *digest);
/* Hide the launch that job_files_find finds, and return its KEY. 0 or -ENOENT. */
int job_files_unlink(struct job_files *f, const char *file, char ret_key[JOB_FILES_UUID]);
