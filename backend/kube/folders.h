/* SPDX-License-Identifier: MIT */
/*
 * The files of each job in the state directory: its record (backend/jobs/records.h) and its output.
 * If a job was submitted with this state directory, it has a record from its submission on. Any
 * other job gets a record when kxfs captures its output. The record and the output have the job's
 * key as their name: the UUID of the submission or, without a submission, the job's uid. I/O
 * thread.
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

/*
 * The files that the state directory has for a job. Plain data; its strings are valid until the
 * caller returns to the loop.
 */
struct folder {
	const char *key; /* NULL if there are no files of this job */
	const char *uid; /* "" until a watch has shown the job */
	bool own;	 /* true if the job was submitted with this state directory */
	/* true if the job has, or had, output; it then moves to history/ when it leaves jobs/ */
	bool output;
	/* true if kxfs has removed the output to free space; kxfs then does not capture it again */
	bool dropped;
	/* True if an earlier mount ended before it had added all lines to the job's merged log. */
	bool unmerged;
};

struct folders_events {
	/*
	 * Called when a removal of files of job UID has ended. Must not call functions of folders.
	 * After the callback, folders_claim may be called again.
	 */
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
	/* true if the mount is read-only; then do not remove any files at the start */
	bool passive;
};

struct folders *folders_new(const struct folders_config *config);
/*
 * Set the callbacks. Call each of these two functions once, before folders_load. SAVED(DATA) is
 * called by folders_save.
 */
void folders_set_events(struct folders *f, const struct folders_events *events);
void folders_set_saved(struct folders *f, loop_fn saved, void *data);
/* Stop retrying to create records that could not be created. */
void folders_stop(struct folders *f);
void folders_free(struct folders *f); /* NULL is allowed */

/*
 * Put the snapshots of all records into the store, and find the output on disk. Remove output that
 * has no record. Then call FN(DATA, err).
 */
void folders_load(struct folders *f, void (*fn)(void *data, int err), void *data);

/* --- lookups --- */

/*
 * Return the files of a job. folders_of returns those of the job that VIEW shows, and folders_find
 * those of the job with the key KEY (spec_job_key).
 */
struct folder folders_of(const struct folders *f, const struct spec_job_view *view);
struct folder folders_find(const struct folders *f, const char *key);
/*
 * True if another submission than KEY has chosen the name ID, and the job of that submission has
 * not been seen yet.
 */
bool folders_awaits(const struct folders *f, const char *id, const char *key);
/* Call FN for each job that was launched. FN may remove the job's files. */
void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data);
/* True if JOB has, or had, output, and kxfs is not removing its output. */
bool folders_holds(const struct folders *f, const struct spec_job *job);
/* True if JOB has output now. */
bool folders_has_output(const struct folders *f, const struct spec_job *job);
/* If VIEW is the job of a submission that has a record, make the record LIVE. */
void folders_bind(struct folders *f, const struct spec_job_view *view);
/*
 * Prepare the output folder of VIEW's job. Return 0, -EBUSY if another job has the same key, or
 * -EINVAL if the key can't be a file name. Return -EINPROGRESS if kxfs is removing old files. In
 * this case folders_events.freed is called when the removal has ended.
 */
int folders_claim(struct folders *f, const struct spec_job_view *view);

/* --- changes --- */

/*
 * Write the current snapshot of job UID from the store to the job's record. If NOW is true, write
 * it immediately, otherwise soon. If the job has output but no record, make a record first. If the
 * job has neither, write nothing.
 */
void folders_save(struct folders *f, const char *uid, bool now);
/*
 * Remove the record and the output of KEY, if there are any. Then call DONE, but never from within
 * this function. If DONE is NULL, log errors instead.
 */
void folders_remove(struct folders *f, const char *key, folders_fn done, void *data);
/*
 * Remove the output of KEY, whose job has finished, and record the removal in the job's record.
 * Then call DONE, which may be NULL.
 */
void folders_drop_output(struct folders *f, const char *key, folders_fn done, void *data);
