/* SPDX-License-Identifier: MIT */
/*
 * Which records were submitted as which file of submit/: NAME.job is computed from this table. Launches have UUIDs that
 * grow over all mounts, so the newest launch of a file is found without a clock. records.c, which owns the table,
 * changes it on the I/O thread; any thread reads it, under its own lock.
 */
#pragma once

#include "backend/jobs/store.h"
#include "spec/record/head.h"

#define JOB_FILES_UUID 37

/* What NAME.job shows. Plain data. */
struct backend_file {
	char *id; /* malloc'ed */
	enum backend_place place;
	char uuid[JOB_FILES_UUID]; /* of the submission */
	int64_t time;		   /* when it was submitted, in ns */
	char digest[65];	   /* SHA-256 of the document */
	bool owned;		   /* UID and GID submitted it; else the user who mounts */
	uid_t uid;
	gid_t gid;
};

struct job_files;
struct job_files_entry;
struct record;

struct job_files *job_files_new(void);
void job_files_free(struct job_files *f); /* all launches were removed */
/* Call FN on the I/O thread when the job that FILE launched last may have changed. */
void job_files_set_changed(struct job_files *f, void (*fn)(void *data, const char *file),
			   void *data);

/* --- I/O thread --- */

/*
 * Add the record R, which is on disk; its HEAD must keep its address. Return NULL if R was not
 * submitted as a file. Adding records in the order of their keys is fastest.
 */
struct job_files_entry *job_files_add(struct job_files *f, struct record *r,
				      const struct spec_head *head);
/* The state of L has changed in its head. NULL is allowed, here and below. */
void job_files_update(struct job_files_entry *l);
/* SHOWN: the job of L is in the store. */
void job_files_show(struct job_files_entry *l, bool shown);
/*
 * Free L, whose record is removed. Return the record whose NAME.job must be marked as removed, so
 * that an older job of the file does not reappear; NULL if there is none.
 */
struct record *job_files_remove(struct job_files_entry *l);

/* --- any thread --- */

/* Make a UUID greater than those of all launches. 0 or -EIO. */
int job_files_next_uuid(struct job_files *f, char ret[JOB_FILES_UUID]);
/* See backend_file, but for jobs in the store, which may be called otherwise by now. */
int job_files_find(struct job_files *f, const char *file, struct backend_file *ret);
/* See backend_files, backend_files_changed, backend_knows_digest. */
size_t job_files_list(struct job_files *f, char ***ret);
int64_t job_files_changed(struct job_files *f);
bool job_files_know(struct job_files *f, const char *digest);
/* Hide the launch that job_files_find finds, and return its KEY. 0 or -ENOENT. */
int job_files_unlink(struct job_files *f, const char *file, char ret_key[JOB_FILES_UUID]);
