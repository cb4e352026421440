/* SPDX-License-Identifier: MIT */
/*
 * submit/: files that are written here run. dryrun/: the same, but nothing is launched, and the file becomes the
 * manifest that would be. docs/kxfs-submit.7 states the rules for users.
 *
 * Objects: an upload is a file as bytes (upload.h); a name (names.h) has what else is known of the file, as one state
 * and one record; one lock guards both. A launch takes the content of an upload to the backend and shows the verdict
 * (launch.h). A record is what the disk has of a name (record.h); save.h is the queue in which files and records come
 * to disk. writer.h tells from /proc who is writing a file and whether that process is done; holders.h tells what can
 * be known where /proc does not. file.c is the class of the files, dir.c the classes of the two directories and of
 * NAME.job and NAME.error. struct submit (save.h) owns the tables of one directory; there are two of them a mount.
 *
 * The FUSE thread changes bytes and names and begins launches; the I/O thread ends them, and removes what has expired;
 * the pool writes.
 *
 * In the state directory: STATE/submit/NAME is a file, exactly as it was written; STATE/submit.records/NAME is what is
 * known of it; STATE/submit.reported is the number up to which all launches have their verdict. The same for dryrun.
 */
#pragma once

#include "backend/backend.h"
#include "fs/vfs/node.h"

struct submit;

/* The struct is copied, but not what it points to. */
struct submit_config {
	struct backend *backend;
	const char *state_dir;	/* absolute */
	const char *mountpoint; /* absolute */
	const char *submitter;	/* user@host of the mount */
	bool allow_other;	/* files belong to the users who made them */
};

/*
 * Make the object of a node of CLASS, which is submit_class or dryrun_class. Reads its state, or makes it. 0, or a
 * negative errno with *RET_TEXT. To be called before the loop runs.
 */
int submit_new(struct fs *fs, const struct submit_config *config, const struct node_class *class,
	       struct submit **ret, char **ret_text);
/* A function for the backend's news during the start: backend_events.launched. */
void submit_launched(struct submit *s, const char *file, const char *id, const char *submission);
/* See backend_events.job_of. */
char *submit_job_of(struct submit *s, const char *file);
/*
 * The mount is up, and nobody is served yet: show what became of files and launches that were not done when the last
 * mount ended.
 */
void submit_recover(struct submit *s);
/* To be called after the loop has ended, when handles and nodes are freed. NULL is allowed. */
void submit_free(struct submit *s);

/*
 * Called now and then on the I/O thread: remove files whose job finished more than 7 days ago, and manifests as old as
 * that.
 */
void submit_expire(struct submit *s, int64_t now);

/* The classes of MOUNT/submit and MOUNT/dryrun. */
extern const struct node_class submit_class, dryrun_class;
