/* SPDX-License-Identifier: MIT */
/*
 * The directories submit/ and dryrun/. When a user writes a file to submit/, kxfs submits it as a
 * job. When a user writes a file to dryrun/, kxfs launches nothing, but replaces the file's
 * contents by the manifest that it would launch. kxfs does this only if the file has a submitting
 * name, which is a name that ends in .yaml, .yml or .json (spec_name_submits). docs/kxfs-submit.7
 * has the rules for users.
 *
 * An upload is a file with its bytes (upload.h). A name may have a file and a NAME.error (names.h).
 * One lock guards uploads and names. A launch sends the contents of an upload to the backend and
 * shows the result (launch.h). NAME.job is a link that kxfs computes from the backend's records of
 * jobs (backend_file); submit/ has no records of its own. save.h is the queue in which files reach
 * the disk. writer.h finds out which process writes a file, and whether that process has finished.
 * It reads /proc; if /proc does not show the process, it uses the numbers in the kernel's requests.
 * file.c is the class of the files. dir.c has the classes of the two directories and of NAME.job
 * and NAME.error. Each of the two directories has a struct submit (save.h), which owns its tables.
 *
 * The FUSE thread changes bytes and names, and starts launches. The I/O thread ends launches, and
 * removes expired files. The pool writes to disk.
 *
 * On disk, the file submit/NAME is STATE/submit/NAME, and dryrun/NAME is STATE/dryrun/NAME.
 */
#pragma once

#include "backend/backend.h"
#include "fs/vfs/node.h"

struct submit;

/*
 * The configuration of submit/ or dryrun/. submit_new copies the struct, and borrows the objects
 * and texts to which it points.
 */
struct submit_config {
	struct backend *backend;
	const char *state_dir;	/* absolute */
	const char *mountpoint; /* absolute */
	const char *submitter;	/* user@host of the mount */
	/* true: a file belongs to the user who makes it; false: to the mounting user */
	bool allow_other;
};

/*
 * Make *RET, the object that the node of a directory represents. CLASS is the class of that node,
 * submit_class or dryrun_class. Read the directory STATE/submit or STATE/dryrun, or create it.
 * Return 0, or a negative errno with a message in *RET_TEXT, malloc'ed. Call this before the loop
 * runs.
 */
int submit_new(struct fs *fs, const struct submit_config *config, const struct node_class *class,
	       struct submit **ret, char **ret_text);
/*
 * Find the owners of files that earlier mounts have launched. Call this when the backend has
 * started, before the first request is served.
 */
void submit_find_owners(struct submit *s);
/* Call this after the loop has ended and all handles and nodes are freed. NULL is allowed. */
void submit_free(struct submit *s);

/*
 * Called when the job of FILE has expired (backend_events.expired). Remove FILE if it is closed and
 * its contents still have the digest DIGEST. I/O thread.
 */
void submit_expired(struct submit *s, const char *file, const char *digest);
/* Remove the closed files of dryrun/ that have not changed for 7 days. I/O thread. */
void submit_expire_dryrun(struct submit *s, int64_t now);

/* The classes of MOUNT/submit and MOUNT/dryrun. */
extern const struct node_class submit_class, dryrun_class;
