/* SPDX-License-Identifier: MIT */
/*
 * The files of each job in the state directory: its record (backend/jobs/records.h) and its output.
 * The record of a submitted job is created at the submission. The record of any other job is
 * created when kxfs begins to capture the job. The files are named after the job's key: the UUID of
 * the submission or, without a submission, the job's uid. I/O thread.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/jobs/records.h"
#include "backend/jobs/store.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct folders;

/* ERR is 0 or a negative errno. */
typedef void (*folders_fn)(void *data, int err);

/* The files of one job. Plain data; the strings are valid until the caller returns to the loop. */
struct folder {
	const char *key; /* NULL if the job has no files */
	const char *uid; /* "" until a watch has shown the job */
	bool own;	 /* true if the job was submitted with this state directory */
	/* true if the job has or had output. Such a job moves to history/ when it leaves jobs/. */
	bool output;
	/* true if the output was removed to free space. kxfs then does not capture it again. */
	bool dropped;
	bool unmerged; /* true if the merged log may lack lines that an earlier mount captured */
};

struct folders_events {
	/* Called when a removal of UID's files has ended. Must not call functions of folders. */
	void (*freed)(void *data, const char *uid);
	void *data;
};

struct folders_config {
	struct loop *loop;
	struct store *store;
	struct records *records; /* loaded completely */
	struct output *output;
	const char *state_dir; /* borrowed */
	struct group *group;   /* entered while an operation is in progress */
	bool passive;	       /* true if the mount is read-only: remove no files at the start */
};

struct folders *folders_new(const struct folders_config *config);
/* Call each of these two functions once, before folders_load. folders_save calls SAVED(DATA). */
void folders_set_events(struct folders *f, const struct folders_events *events);
void folders_set_saved(struct folders *f, loop_fn saved, void *data);
/* Stop retrying to create records. */
void folders_stop(struct folders *f);
void folders_free(struct folders *f); /* NULL is allowed */

/*
 * Put the snapshots of all records into the store, and find the output on disk. Remove output that
 * has no record. Call FN(DATA, ERR) when the load has ended; ERR is 0 or a negative errno.
 */
void folders_load(struct folders *f, void (*fn)(void *data, int err), void *data);

/* Return the files of the job that VIEW shows, or of the job with the key KEY (spec_job_key). */
struct folder folders_of(const struct folders *f, const struct spec_job_view *view);
struct folder folders_find(const struct folders *f, const char *key);
/*
 * True if a submission other than KEY has chosen the name ID for its job, and no watch has shown
 * this job yet.
 */
bool folders_awaits(const struct folders *f, const char *id, const char *key);
/* Call FN for each job that has a record and was launched. FN may remove the job's files. */
void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data);
/* True if JOB has, or had, output, and no removal is in progress. */
bool folders_holds(const struct folders *f, const struct spec_job *job);
/* True if JOB has output now. */
bool folders_has_output(const struct folders *f, const struct spec_job *job);
/* If the job that VIEW shows has a record from its submission, make the record LIVE. */
void folders_bind(struct folders *f, const struct spec_job_view *view);
/*
 * Prepare the output folder of VIEW's job. Return 0, -EBUSY if another job has the same key,
 * -EINVAL if the key can't be a file name, or -EINPROGRESS if kxfs is removing old files. In the
 * last case, claim again after folders_events.freed was called.
 */
int folders_claim(struct folders *f, const struct spec_job_view *view);

/*
 * Write the snapshot of job UID from the store to the job's record, immediately (NOW) or soon. If
 * the job has output but no record, make a record first. Without output and record, write nothing.
 */
void folders_save(struct folders *f, const char *uid, bool now);
/*
 * Remove the record and the output of KEY, if there are any. Then call DONE, but not within this
 * call. If DONE is NULL, log errors instead.
 */
void folders_remove(struct folders *f, const char *key, folders_fn done, void *data);
/* Like folders_remove, but remove only the output, and record this. The job must have ended. */
void folders_drop_output(struct folders *f, const char *key, folders_fn done, void *data);
