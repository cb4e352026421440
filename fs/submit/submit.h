/* SPDX-License-Identifier: MIT */
/*
 * The directories submit/ and dryrun/. kxfs submits a file that a user writes to submit/ as a job.
 * In dryrun/, kxfs launches nothing, but replaces the file's contents by the manifest that it would
 * launch. Both happen only if the file has a submitting name, which ends in .yaml, .yml or .json
 * (spec_name_submits). docs/kxfs-submit.7 has the rules for users.
 *
 * An upload is a file with its bytes (upload.h). A name may have a file and a NAME.error (names.h).
 * One lock guards uploads and names. A launch sends the contents of an upload to the backend
 * (launch.h). save.h is the queue in which files reach the disk: submit/NAME is STATE/submit/NAME.
 * writer.h finds out which process writes a file, and whether it has finished. file.c is the class
 * of the files, dir.c has the other classes. NAME.job is a link that is computed from the backend's
 * records (backend_file).
 *
 * The FUSE thread changes bytes and names, and starts launches. The I/O thread ends launches, and
 * removes expired files. The pool writes to disk.
 */
#pragma once

#include "backend/backend.h"
#include "fs/vfs/node.h"

struct submit;

/* The configuration of submit/ or dryrun/. submit_new copies it, and borrows what it points to. */
struct submit_config {
	struct backend *backend;
	const char *state_dir;	/* absolute */
	const char *mountpoint; /* absolute; "" if unknown */
	const char *submitter;	/* user@host of the mount */
	/* true if a file belongs to the user who makes it; otherwise, to the mounting user */
	bool allow_other;
};

/*
 * Make *RET, the object of the node of submit/ or dryrun/. CLASS is submit_class or dryrun_class.
 * Read the directory on disk, or create it. Return 0, or a negative errno with a message in
 * *RET_TEXT, malloc'ed. Call this before the loop runs.
 */
int submit_new(struct fs *fs, const struct submit_config *config, const struct node_class *class,
	       struct submit **ret, char **ret_text);
/*
 * Find the owners of files launched by earlier mounts. Call this after the backend has started and
 * before the first request is served, because this function reads the files without the queue.
 */
void submit_find_owners(struct submit *s);
/* Call this after the loop has ended and handles and nodes are freed. NULL is allowed. */
void submit_free(struct submit *s);

/* Remove FILE, whose job has expired, if it is closed and has the digest DIGEST. I/O thread. */
void submit_expired(struct submit *s, const char *file, const char *digest);
/* Remove closed files of dryrun/ that have not changed for 7 days. I/O thread. */
void submit_expire_dryrun(struct submit *s, int64_t now);

extern const struct node_class submit_class, dryrun_class;
