/* SPDX-License-Identifier: MIT */
/*
 * The folders of the state directory (folder_files.h), one a job that was submitted from here or whose output is on
 * disk. What stands there says which jobs are ours, also after a crash in the middle of a submission. Names of jobs
 * come again, so a folder is a job's by its uid, or, as long as that is not known, by the UUID of its submission.
 * Folders are made by submissions and by output; they are removed when nobody needs them, and make room for another
 * job of their name. I/O thread; whatever touches the disk runs on the pool.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/jobs/store.h"
#include "backend/output/output.h"
#include "spec/view/view.h"

struct folders;

/* ERR: why it was not done; else 0. */
typedef void (*folders_fn)(void *data, int err);

/* Written by folders.c alone. */
struct folder {
	char *id;
	char *uid;	  /* "" not known yet */
	char *submission; /* "" not submitted from here */
	/*
	 * The file in submit/ that it was submitted as, if that was by an earlier mount, or by this one, which could
	 * not find out what became of it. Else NULL.
	 */
	char *file;
	int64_t written; /* when, ns */
	bool output;	 /* there is some, or was: the job becomes history when it leaves */
	bool dropped;	 /* its output was removed to make room: it is not captured again */
	bool unmerged; /* an earlier mount has left its merged log without all that its logs have */
	/* loop_now_ms until which its submission, of which no job has been seen, may take effect; 0: it is known. */
	uint64_t doubt;
};

struct folders_events {
	/* The folder ID is free, or can be captured into again: a job of that name may wait for it. */
	void (*freed)(void *data, const char *id);
	/* Is job UID in the cluster, or is something of it still captured? Then its folder is not moved. */
	bool (*in_use)(void *data, const char *uid);
	void *data;
};

struct folders_config {
	struct loop *loop;
	struct store *store;
	struct output *output;
	const char *state_dir; /* borrowed */
	struct group *group;   /* entered by whatever the end of the mount waits for */
};

struct folders *folders_new(const struct folders_config *config);
/* These two are to be called once, before folders_load. SAVED(DATA): a snapshot has been written. */
void folders_set_events(struct folders *f, const struct folders_events *events);
void folders_set_saved(struct folders *f, loop_fn saved, void *data);
/* Write the snapshots that are still to be written, without waiting for more. */
void folders_stop(struct folders *f);
void folders_free(struct folders *f); /* NULL is allowed */

/* Read all folders, and put the snapshots in them into the store; then FN(DATA, err). */
void folders_load(struct folders *f, void (*fn)(void *data, int err), void *data);

/* --- whose a folder is --- */

const struct folder *folders_find(const struct folders *f, const char *id);
/* The folder ID, if it is that of this very job; else NULL. */
const struct folder *folders_of(const struct folders *f, const char *id,
				const struct spec_job_view *view);
/* Call FN for each folder; it may remove that one. */
void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data);
/* The folder of ID has output of job UID, or had some, and nothing else is being done to it. */
bool folders_holds(const struct folders *f, const char *id, const char *uid);
/* There is output in the folder of ID now. */
bool folders_has_output(const struct folders *f, const char *id);

/* --- folders that are made --- */

/*
 * The name ID is for a new submission, whose folder is about to be made (folder_files_submit). -EEXIST: there is a
 * folder of that name, or one is about to be made or removed.
 */
int folders_reserve(struct folders *f, const char *id, const char *submission);
/* That has found a folder of that name on the disk, and has made none. */
void folders_release(struct folders *f, const char *id);
/* Has the cluster shown the job of this submission, whose folder is ID, though it may be gone again? */
bool folders_was_seen(const struct folders *f, const char *id, const char *submission);
/*
 * The submission whose folder is ID, which may have been sent, is sent once more. -EEXIST: the folder is another's, or
 * goes, or its job is known.
 */
int folders_resume(struct folders *f, const char *id, const char *submission);
/*
 * The submission whose folder is ID was answered, and the folder stays, unless its job is gone already. UID: of its
 * job; "" not known.
 */
void folders_submitted(struct folders *f, const char *id, const char *uid);
/* Whether the submission FILE, whose folder is ID, was launched is not known, and may be seen for MS (folder.doubt). */
void folders_doubt(struct folders *f, const char *id, const char *file, uint64_t ms);
/*
 * The folder ID, if it is that of VIEW's job, belongs to its uid from now on. Returns it if that was in doubt, with
 * a submission of which somebody may wait to hear; else NULL.
 */
const struct folder *folders_bind(struct folders *f, const char *id,
				  const struct spec_job_view *view);
/*
 * Output of this job is about to come: its folder ID, made if there is none. 0; or -EBUSY: another job of that id has
 * the folder, which is being moved out of the way, as NAME~UID8 in the history, or aside if nobody can tell whose it
 * is. freed() is called then.
 */
int folders_claim(struct folders *f, const char *id, const struct spec_job_view *view);

/* --- what is written and removed --- */

/* The newest snapshot of UID, whose job has a folder, is to be on disk soon, or (NOW) at once. */
void folders_save(struct folders *f, const char *uid, bool now);
/*
 * Remove the folder ID with all that is in it; DONE (may be NULL) is called after that. If one with output can't be
 * removed, and there is a DONE, it stays known, and can be removed later. Else a message says what is left on the disk.
 * Without a DONE that of a submission stays until this is answered.
 */
void folders_remove(struct folders *f, const char *id, folders_fn done, void *data);
/*
 * Remove the output in the folder ID, whose job has finished; all else of the job stays, and the next mount knows of it
 * too. DONE (may be NULL) is called after that.
 */
void folders_drop_output(struct folders *f, const char *id, folders_fn done, void *data);
