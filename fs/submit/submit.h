/* SPDX-License-Identifier: MIT */
/*
 * submit/: a file that is written here is submitted as a job. dryrun/: nothing is launched; the manifest that would be
 * launched replaces the file's contents. docs/kxfs-submit.7 has the rules for users.
 *
 * An upload is the bytes of a file (upload.h). A name may have a file and a NAME.error (names.h).
 * One lock guards both. A launch sends the contents of an upload to the backend and shows the
 * result (launch.h). NAME.job is a link computed from the backend's job records (backend_file):
 * submit/ has no records of its own. save.h is the queue in which files reach the disk. writer.h
 * finds which process writes a file, and whether it has finished: in /proc or, if /proc does not
 * show the process, by the kernel's requests. file.c is the class of the files; dir.c has the
 * classes of the two directories and of NAME.job and NAME.error. struct submit (save.h) owns the
 * tables of one directory; a mount has two of them.
 *
 * The FUSE thread changes bytes and names and starts launches; the I/O thread ends launches and removes expired files;
 * the pool writes to disk.
 *
 * STATE/submit/NAME is a file of submit/, exactly as it was written; STATE/dryrun/NAME is a file of dryrun/.
 */
#pragma once

#include "backend/backend.h"
#include "fs/vfs/node.h"

struct submit;

/*
 * The configuration. submit_new copies the struct; the objects and texts that it points to are
 * borrowed.
 */
struct submit_config {
	struct backend *backend;
	const char *state_dir;	/* absolute */
	const char *mountpoint; /* absolute */
	const char *submitter;	/* user@host of the mount */
	bool allow_other;	/* files belong to the users who made them */
};

/*
 * Make the object for a node of CLASS, which is submit_class or dryrun_class; read its state
 * directory, or create it. Return 0, or a negative errno with *RET_TEXT. Call this before the loop
 * runs.
 */
int submit_new(struct fs *fs, const struct submit_config *config, const struct node_class *class,
	       struct submit **ret, char **ret_text);
/*
 * Find the owners of the files. Call this when the backend has started, before the first request is
 * served.
 */
void submit_find_owners(struct submit *s);
/* Call this after the loop has ended and all handles and nodes are freed. NULL is allowed. */
void submit_free(struct submit *s);

/*
 * See backend_events.expired: remove FILE if it is closed and its contents still have this DIGEST.
 * I/O thread.
 */
void submit_expired(struct submit *s, const char *file, const char *digest);
/* Remove the files of dryrun/ that did not change for 7 days, if they are closed. I/O thread. */
void submit_expire_dryrun(struct submit *s, int64_t now);

/* The classes of MOUNT/submit and MOUNT/dryrun. */
extern const struct node_class submit_class, dryrun_class;
