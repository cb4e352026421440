/* SPDX-License-Identifier: MIT */
/*
 * The files of each job in the state directory: its record (backend/jobs/records.h) and its output. A job that was
 * submitted with this state directory has a record from its submission on. Any other job gets a record when its
 * output is captured. The job's key is the name of both: the UUID of the submission or, without a submission, the
 * job's uid. I/O thread.
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

/*
 * The files that the state directory has for a job. Plain data; its strings are valid until the caller returns to
 * the loop.
 */
struct folder {
	const char *key; /* NULL: there are no files of this job */
	const char *uid; /* "" until a watch has shown the job */
	bool own;	 /* the job was submitted with this state directory */
	/* the job has output, or had some; so when it leaves jobs/, it moves to history/ */
	bool output;
	bool dropped; /* its output was removed to free space, so it is not captured again */
	/* An earlier mount ended before it had added all lines to the job's merged log. */
	bool unmerged;
};

struct folders_events {
	/*
	 * A removal of files of job UID has ended, so the owner may call folders_claim again. Must not call
	 * functions of folders.
	 */
	void (*freed)(void *data, const char *uid);
	void *data;
};

struct folders_config {
	struct loop *loop;
	struct store *store;
	struct records *records; /* all records have been read */
	struct output *output;
	const char *state_dir; /* borrowed */
	struct group *group;   /* entered while an operation is in progress */
	bool passive;	       /* the mount is read-only: do not remove any files at the start */
};

struct folders *folders_new(const struct folders_config *config);
/*
 * Set the callbacks. Call both functions once, before folders_load. SAVED(DATA) is called whenever a new snapshot
 * is going to be written.
 */
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

/* Return the files of the job of VIEW, or of the job with KEY (spec_job_key). */
struct folder folders_of(const struct folders *f, const struct spec_job_view *view);
struct folder folders_find(const struct folders *f, const char *key);
/* True if a submission other than KEY has chosen the name ID, and the job of that submission was not seen yet. */
bool folders_awaits(const struct folders *f, const char *id, const char *key);
/* Call FN for each job that was launched. FN may remove the job's files. */
void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data);
/* True if JOB has output, or had some. False if its record and output are being removed. */
bool folders_holds(const struct folders *f, const struct spec_job *job);
/* True if JOB has output now. */
bool folders_has_output(const struct folders *f, const struct spec_job *job);
/* If VIEW is the job of a submission with a record, mark the record as LIVE. */
void folders_bind(struct folders *f, const struct spec_job_view *view);
/*
 * Prepare the output folder of VIEW's job. Return 0, -EBUSY if another job has the same key, or -EINVAL if the key
 * can't be a file name. Return -EINPROGRESS if old files are being removed; freed() is called after that.
 */
int folders_claim(struct folders *f, const struct spec_job_view *view);

/* --- changes --- */

/*
 * Write the new snapshot of job UID from the store: soon, or immediately if NOW. Do this only if the job has a
 * record, or has output and so needs a record.
 */
void folders_save(struct folders *f, const char *uid, bool now);
/* Remove the record of KEY, then its output, then call DONE. If DONE is NULL, log errors instead. */
void folders_remove(struct folders *f, const char *key, folders_fn done, void *data);
/*
 * Remove the output of KEY, whose job has finished. Note the removal in the job's record. Then call DONE (may be
 * NULL).
 */
void folders_drop_output(struct folders *f, const char *key, folders_fn done, void *data);
