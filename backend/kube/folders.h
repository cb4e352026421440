/* SPDX-License-Identifier: MIT */
/*
 * The folders of the state directory (folder_files.h), one a job that was submitted from here or whose output is on
 * disk. They say which jobs are ours, also after a crash in the middle of a submission. Names of jobs are used again,
 * so a folder belongs to a job by the job's uid, or, as long as that is not known, by the UUID of its submission.
 * Folders are made by submissions and by output; they are removed when nobody needs them, and moved away when another
 * job of their name needs room. I/O thread; whatever touches the disk runs on the pool.
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
	char *id;
	char *uid;	  /* uid of the job; "": not known yet */
	char *submission; /* UUID of the submission; "": the job was not submitted from here */
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
	/*
	 * The folder ID is free, or can be captured into again, or could not be moved: a job of that name may have
	 * waited for that.
	 */
	void (*freed)(void *data, const char *id);
	/* Has job UID its folder's name for as long as it lives? Then the folder is not moved. */
	bool (*in_use)(void *data, const char *uid);
	/* The folder of job UID is about to be moved: from now on, and until moved(), nothing is captured into it. */
	void (*moves)(void *data, const char *uid);
	/* The folder of job UID is called ID now; or it could not be moved, and is called so still. */
	void (*moved)(void *data, const char *uid, const char *id);
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

const struct folder *folders_find(const struct folders *f, const char *id);
/* The folder ID, if it belongs to this very job; else NULL. */
const struct folder *folders_of(const struct folders *f, const char *id,
				const struct spec_job_view *view);
/* Call FN for each folder; FN may remove the folder that it is called for. */
void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data);
/* Has the folder ID output of job UID, or had it some, and is nothing being done to the folder? */
bool folders_holds(const struct folders *f, const char *id, const char *uid);
/* Is there output in the folder ID now? */
bool folders_has_output(const struct folders *f, const char *id);

/* --- folders that are made --- */

/*
 * Reserve the name ID for a new submission, whose folder is about to be made (folder_files_submit). -EEXIST: there is a
 * folder of that name, or one is about to be made or removed.
 */
int folders_reserve(struct folders *f, const char *id, const char *submission);
/* Undo folders_reserve: there was a folder of that name on the disk, so none was made. */
void folders_release(struct folders *f, const char *id);
/* Has the cluster shown the job of this submission, whose folder is ID? It may be gone again. */
bool folders_was_seen(const struct folders *f, const char *id, const char *submission);
/*
 * The submission whose folder is ID, which may have been sent before, is sent once more. -EEXIST: the folder is
 * another's, or is being removed, or its job is known.
 */
int folders_resume(struct folders *f, const char *id, const char *submission);
/*
 * The submission whose folder is ID was answered, and the folder stays, unless its job is gone already. UID is the
 * job's; "": not known.
 */
void folders_submitted(struct folders *f, const char *id, const char *uid);
/*
 * It is not known whether the submission FILE, whose folder is ID, was launched; its job may appear for MS
 * (folder.doubt).
 */
void folders_doubt(struct folders *f, const char *id, const char *file, uint64_t ms);
/*
 * From now on the folder ID, if it belongs to VIEW's job, has that job's uid. Returns the folder if it was in doubt,
 * with a submission of which somebody may still want to hear; else NULL.
 */
const struct folder *folders_bind(struct folders *f, const char *id,
				  const struct spec_job_view *view);
/*
 * Output of VIEW's job is about to come: claim its folder ID, which is made if there is none. 0; -EINPROGRESS:
 * something is being done to the folder, so freed() is called later, whatever came of that. For one, a folder that
 * belongs to another job of that id is moved to NAME~UID8 in the history, or aside if nobody can tell whose it is.
 * -EBUSY: another job has the folder, and keeps it.
 */
int folders_claim(struct folders *f, const char *id, const struct spec_job_view *view);

/* --- what is written and removed --- */

/* Write the newest snapshot of UID, if its job has a folder, soon or (NOW) at once. */
void folders_save(struct folders *f, const char *uid, bool now);
/*
 * Remove the folder ID with all that is in it; DONE (may be NULL) is called after that. If a folder with output can't
 * be removed and there is a DONE, the folder stays known, and can be removed later; else a message says what is left on
 * the disk. Without a DONE the folder of a submission that is under way stays until that is answered.
 */
void folders_remove(struct folders *f, const char *id, folders_fn done, void *data);
/*
 * Remove the output in the folder ID, whose job has finished; all else of the job stays, and the next mount knows that
 * it was removed. DONE (may be NULL) is called after that.
 */
void folders_drop_output(struct folders *f, const char *id, folders_fn done, void *data);
