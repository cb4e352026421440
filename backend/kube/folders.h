/* SPDX-License-Identifier: MIT */
/*
 * The folders of the state directory (folder_files.h), one a job that was submitted from here or whose output is on
 * disk. They say which jobs are ours, also after a crash in the middle of a submission. A folder is named by its job's
 * identity (spec_job_key): the UUID of the submission, or the uid of a job that was not submitted from here. Folders
 * are made by submissions and by output, and are removed when nobody needs them. I/O thread; whatever touches the disk
 * runs on the pool.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/jobs/store.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct folders;

/* ERR is 0, or why it could not be done. */
typedef void (*folders_fn)(void *data, int err);

/* Only folders.c writes its fields. */
struct folder {
	char *key; /* its name: the UUID of the submission (OWN), or the job's uid */
	bool own;  /* the job was submitted from here */
	char *id; /* name of the job's directory, or of its object, when that was last written; "": not known */
	char *uid; /* uid of the job; "": not known yet */
	/*
	 * The file in submit/ that the job was submitted as, if an earlier mount did that, or if this one could not
	 * find out what became of it. Else NULL.
	 */
	char *file;
	int64_t written; /* when it was written, in ns */
	bool output;	 /* there is output, or was: the job becomes history when it leaves jobs/ */
	bool dropped;	 /* its output was removed to make room, so it is not captured again */
	/* An earlier mount has ended before the merged log had everything in the job's logs. */
	bool unmerged;
	/*
	 * No job of its submission was seen so far, and the submission may take effect until then (loop_now_ms); 0: it
	 * is known what became of it.
	 */
	uint64_t doubt;
};

struct folders_events {
	/* The output of job UID can be captured into its folder again, or into a new one. May only take note. */
	void (*freed)(void *data, const char *uid);
	void *data;
};

struct folders_config {
	struct loop *loop;
	struct store *store;
	struct output *output;
	const char *state_dir; /* borrowed */
	struct group *group;   /* whatever the end of the mount has to wait for enters it */
};

struct folders *folders_new(const struct folders_config *config);
/* This and the next are to be called once, before folders_load. SAVED(DATA): a snapshot was written. */
void folders_set_events(struct folders *f, const struct folders_events *events);
void folders_set_saved(struct folders *f, loop_fn saved, void *data);
/* Write at once the snapshots that still wait for that. */
void folders_stop(struct folders *f);
void folders_free(struct folders *f); /* NULL is allowed */

/* Read all folders, and put their snapshots into the store; then call FN(DATA, err). */
void folders_load(struct folders *f, void (*fn)(void *data, int err), void *data);

/* --- whose a folder is --- */

/* The folder KEY (spec_job_key); NULL: there is none. */
const struct folder *folders_find(const struct folders *f, const char *key);
/* The folder of the very job of VIEW, if it has one; else NULL. */
const struct folder *folders_of(const struct folders *f, const struct spec_job_view *view);
/* Is there a submission whose job is to be called ID, and of which no job has been seen? */
bool folders_awaits(const struct folders *f, const char *id);
/* Call FN for each folder; FN may remove the folder that it is called for. */
void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data);
/* Has the folder of JOB output, or had it some, and is nothing being done to the folder? */
bool folders_holds(const struct folders *f, const struct spec_job *job);
/* Is there output in the folder of JOB now? */
bool folders_has_output(const struct folders *f, const struct spec_job *job);

/* --- folders that are made --- */

/*
 * A new SUBMISSION (its UUID), whose folder is about to be made (folder_files_submit) and whose job is to be called ID.
 * -EEXIST: it has a folder, or another one is under way under that name.
 */
int folders_reserve(struct folders *f, const char *id, const char *submission);
/* Undo folders_reserve: no folder was made. */
void folders_release(struct folders *f, const char *submission);
/* Has the cluster shown the job of this submission? It may be gone again. */
bool folders_was_seen(const struct folders *f, const char *submission);
/*
 * The submission, which may have been sent before, is sent once more. -EEXIST: it has no folder, or that is being
 * removed, or its job is known.
 */
int folders_resume(struct folders *f, const char *submission);
/*
 * The submission was answered, and its folder stays, unless its job is gone already. UID is the job's; "": not known.
 */
void folders_submitted(struct folders *f, const char *submission, const char *uid);
/*
 * It is not known whether the submission of FILE was launched; its job may appear for MS (folder.doubt).
 */
void folders_doubt(struct folders *f, const char *submission, const char *file, uint64_t ms);
/*
 * If a folder belongs to VIEW's job, it has that job's uid from now on. Returns the folder if it was in doubt, with a
 * submission of which somebody may still want to hear; else NULL.
 */
const struct folder *folders_bind(struct folders *f, const struct spec_job_view *view);
/*
 * Output of VIEW's job, which is called ID, is about to come: claim its folder, which is made if there is none. 0;
 * -EINPROGRESS: something is being done to the folder, so freed() is called later. -EBUSY: another job's folder has the
 * uid for its name.
 */
int folders_claim(struct folders *f, const char *id, const struct spec_job_view *view);

/* --- what is written and removed --- */

/* Write the newest snapshot of UID, if its job has a folder, soon or (NOW) at once. */
void folders_save(struct folders *f, const char *uid, bool now);
/*
 * Remove the folder KEY with all that is in it; DONE (may be NULL) is called after that. If a folder with output can't
 * be removed and there is a DONE, the folder stays known, and can be removed later; else a message says what is left on
 * the disk. Without a DONE the folder of a submission that is under way stays until that is answered.
 */
void folders_remove(struct folders *f, const char *key, folders_fn done, void *data);
/*
 * Remove the output in the folder KEY, whose job has finished; all else of the job stays, and the next mount knows that
 * it was removed. DONE (may be NULL) is called after that.
 */
void folders_drop_output(struct folders *f, const char *key, folders_fn done, void *data);
