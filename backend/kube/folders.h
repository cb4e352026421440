/* SPDX-License-Identifier: MIT */
/*
 * The files of each job in the state directory: its record (backend/jobs/records.h) and its output. A job that was
 * submitted from here has a record since its submission; another job gets one when its output is captured. Both are
 * named by the job's key: the UUID of the submission, or, for a job that was not submitted from here, its uid. I/O
 * thread.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/jobs/records.h"
#include "backend/jobs/store.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct folders;

/* ERR: 0 or a negative errno. */
typedef void (*folders_fn)(void *data, int err);

/* What the state directory has for a job. Plain data; its texts are valid until the caller returns to the loop. */
struct folder {
	const char *key; /* NULL: there are no files of this job */
	const char *uid; /* "" until the job is seen */
	bool own;	 /* the job was submitted from here */
	/* there is output, or was: when the job leaves jobs/, it is moved to history/ */
	bool output;
	bool dropped; /* its output was removed to free space, so it is not captured again */
	/* An earlier mount has ended before it had added all lines to the job's merged log. */
	bool unmerged;
};

struct folders_events {
	/* The output of job UID can be captured again. Must not call functions of folders. */
	void (*freed)(void *data, const char *uid);
	void *data;
};

struct folders_config {
	struct loop *loop;
	struct store *store;
	struct records *records; /* every record has been read */
	struct output *output;
	const char *state_dir; /* borrowed */
	struct group *group;   /* entered while an operation is in progress */
	bool passive;	       /* the mount is read-only: do not remove any files at the start */
};

struct folders *folders_new(const struct folders_config *config);
/* Call these two once, before folders_load. SAVED(DATA) is called when a snapshot is being written. */
void folders_set_events(struct folders *f, const struct folders_events *events);
void folders_set_saved(struct folders *f, loop_fn saved, void *data);
/* Stop retrying to create records that could not be created. */
void folders_stop(struct folders *f);
void folders_free(struct folders *f); /* NULL is allowed */

/*
 * Put the snapshots of all records into the store, find the output on disk, and remove output without a record.
 * Then call FN(DATA, err).
 */
void folders_load(struct folders *f, void (*fn)(void *data, int err), void *data);

/* --- lookups --- */

/* Return the files of the job of VIEW; return the files of the job with KEY (spec_job_key). */
struct folder folders_of(const struct folders *f, const struct spec_job_view *view);
struct folder folders_find(const struct folders *f, const char *key);
/* True if a submission other than KEY has chosen the name ID, and the job of that submission was not seen yet. */
bool folders_awaits(const struct folders *f, const char *id, const char *key);
/* Call FN for each job that was launched; FN may remove it. */
void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data);
/* True if there is, or was, output of JOB. False if its record and output are being removed. */
bool folders_holds(const struct folders *f, const struct spec_job *job);
/* True if there is output of JOB now. */
bool folders_has_output(const struct folders *f, const struct spec_job *job);
/* If a submission has a record and VIEW is its job, the record becomes LIVE. */
void folders_bind(struct folders *f, const struct spec_job_view *view);
/*
 * Prepare the output folder of VIEW's job. Return 0; -EINPROGRESS if old files are being removed, after which
 * freed() is called; -EBUSY if another job has this key; -EINVAL if the key can't be a file name.
 */
int folders_claim(struct folders *f, const struct spec_job_view *view);

/* --- changes --- */

/*
 * The store has a new snapshot of job UID. Write it if the job has a record, or has output and so needs one: soon,
 * or, with NOW, immediately.
 */
void folders_save(struct folders *f, const char *uid, bool now);
/* Remove the record of KEY, then its output, then call DONE. If DONE is NULL, log errors instead. */
void folders_remove(struct folders *f, const char *key, folders_fn done, void *data);
/* Remove the output of KEY, whose job has finished, and note that in its record. Then call DONE (may be NULL). */
void folders_drop_output(struct folders *f, const char *key, folders_fn done, void *data);
