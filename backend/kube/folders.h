/* SPDX-License-Identifier: MIT */
/*
 * What the state directory has of a job: its record (backend/jobs/records.h) and its output. A job that was submitted
 * from here has a record from the submission on; another job gets one when its output is captured. Both are named by
 * the job's key: the UUID of the submission, or the uid of a job that was not submitted from here. I/O thread.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/jobs/records.h"
#include "backend/jobs/store.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct folders;

/* ERR is 0, or why it could not be done. */
typedef void (*folders_fn)(void *data, int err);

/* What there is of a job. Plain data; its texts are valid until the caller returns to the loop. */
struct folder {
	const char *key;  /* NULL: there is nothing */
	const char *uid;  /* "": no job was seen so far */
	const char *id;	  /* the name of its object, or what that is called in jobs/ */
	const char *file; /* its file in submit/, or "" */
	bool own;	  /* the job was submitted from here */
	bool output;  /* there is output, or was: the job becomes history when it leaves jobs/ */
	bool dropped; /* its output was removed to make room, so it is not captured again */
	/* An earlier mount has ended before the merged log had everything in the job's logs. */
	bool unmerged;
};

struct folders_events {
	/* The output of job UID can be captured again. May only take note. */
	void (*freed)(void *data, const char *uid);
	void *data;
};

struct folders_config {
	struct loop *loop;
	struct store *store;
	struct records *records; /* all of them were read */
	struct output *output;
	const char *state_dir; /* borrowed */
	struct group *group;   /* whatever the end of the mount has to wait for enters it */
	bool passive;	       /* nothing is removed at the start */
};

struct folders *folders_new(const struct folders_config *config);
/* This and the next are to be called once, before folders_load. SAVED(DATA): a snapshot is being written. */
void folders_set_events(struct folders *f, const struct folders_events *events);
void folders_set_saved(struct folders *f, loop_fn saved, void *data);
/* Retry nothing any more. */
void folders_stop(struct folders *f);
void folders_free(struct folders *f); /* NULL is allowed */

/*
 * Put the snapshots of all records into the store, find out which output there is, and remove what no record names;
 * then call FN(DATA, err).
 */
void folders_load(struct folders *f, void (*fn)(void *data, int err), void *data);

/* --- whose a record is --- */

/* What there is of the job of VIEW. */
struct folder folders_of(const struct folders *f, const struct spec_job_view *view);
/* What there is of the job with this key (spec_job_key). */
struct folder folders_find(const struct folders *f, const char *key);
/* Is there a submission other than KEY whose job is to be called ID, and of which no job was seen? */
bool folders_awaits(const struct folders *f, const char *id, const char *key);
/* Call FN for each job that was launched; FN may remove it. */
void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data);
/* Is or was there output of JOB, and is nothing being done to it? */
bool folders_holds(const struct folders *f, const struct spec_job *job);
/* Is there output of JOB now? */
bool folders_has_output(const struct folders *f, const struct spec_job *job);
/* If a submission of which no job was seen is that of VIEW, its record is LIVE from now on. */
void folders_bind(struct folders *f, const struct spec_job_view *view);
/*
 * Output of VIEW's job is about to come. 0; -EINPROGRESS: something is being done to what there is, so freed() is
 * called later; -EBUSY: another job has this key; -EINVAL: no file can be called so.
 */
int folders_claim(struct folders *f, const struct spec_job_view *view);

/* --- what is written and removed --- */

/*
 * The store has a new snapshot of UID: write it, soon or (NOW) at once, if the job has a record, or has output and
 * needs one.
 */
void folders_save(struct folders *f, const char *uid, bool now);
/*
 * Remove all that there is of KEY: its record, then its output. DONE (may be NULL) is called after that. Without a DONE
 * a message says what can't be removed.
 */
void folders_remove(struct folders *f, const char *key, folders_fn done, void *data);
/* Remove the output of KEY, whose job has finished; its record says that. DONE (may be NULL) is called after that. */
void folders_drop_output(struct folders *f, const char *key, folders_fn done, void *data);
