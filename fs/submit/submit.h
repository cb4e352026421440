/* SPDX-License-Identifier: MIT */
/*
 * submit/: files that are written here run. dryrun/: the same, but nothing is launched, and the file
 * becomes the manifest that would be. docs/kxfs-layout.5 states the rules for users.
 *
 * Objects: an upload is a file as bytes (upload.h); a name is what is known of it, one state and one record (names.h);
 * one lock guards both. A launch takes the content of an upload to the backend and shows the verdict (launch.h). A
 * record is what is on disk of a name (record.h); save.h is the queue in which all of it comes to disk. writer.h tells
 * from /proc who is writing a file and whether that process is done, holders.h what can be known where /proc does not
 * tell. file.c is the class of the files, dir.c the classes of the two directories and of NAME.job and NAME.error.
 * struct submit (save.h) owns the tables of one directory; there are two of them a mount.
 *
 * The FUSE thread changes bytes and names and begins launches; the I/O thread ends them, and removes what has expired;
 * the pool writes.
 *
 * In the state directory: STATE/submit/NAME is a file, exactly as it was written; STATE/submit.records/NAME is what is
 * known of it; STATE/submit.reported says until when all that was launched has its verdict. The same for dryrun.
 */
#pragma once

#include "backend/backend.h"
#include "fs/vfs/node.h"

struct submit;

/* Not copied, but for the struct itself. */
struct submit_config {
	struct backend *backend;
	const char *state_dir;	/* absolute */
	const char *mountpoint; /* absolute */
	const char *submitter;	/* user@host of the mount */
	bool allow_other;	/* files belong to who made them */
};

/*
 * Make what CLASS, submit_class or dryrun_class, shows: the object of its node. Reads the state, or makes it.
 * 0, or a negative errno with *RET_TEXT. Before the loop runs.
 */
int submit_new(struct fs *fs, const struct submit_config *config, const struct node_class *class,
	       struct submit **ret, char **ret_text);
/* The backend's news, while it starts: backend_events.launched. */
void submit_launched(struct submit *s, const char *file, const char *id, const char *submission);
/* As backend_events.job_of. */
char *submit_job_of(struct submit *s, const char *file);
/* The mount is up, and nobody is served yet: show what became of what was under way when the last one ended. */
void submit_recover(struct submit *s);
/* After the loop has ended, and handles and nodes are freed. NULL is allowed. */
void submit_free(struct submit *s);

/*
 * I/O thread, now and then: remove files whose job finished more than 7 days ago, and manifests that
 * old.
 */
void submit_expire(struct submit *s, int64_t now);

/* The classes of MOUNT/submit and MOUNT/dryrun. */
extern const struct node_class submit_class, dryrun_class;
