/* SPDX-License-Identifier: MIT */
/*
 * submit/: files that are written here run. dryrun/: the same, but nothing is launched, and the file becomes the
 * manifest that would be. docs/kxfs-submit.7 states the rules for users.
 *
 * An upload is a file as bytes (upload.h). A name belongs to a file, and may have a NAME.error (names.h). One lock
 * guards both. A launch sends the content of an upload to the backend and shows the result (launch.h). NAME.job is a
 * link computed from the job records of the backend (backend_file): submit/ has no records of its own. save.h is the
 * queue in which files reach the disk. writer.h finds in /proc which process writes a file and whether it is done;
 * holders.h finds what is possible without /proc. file.c is the class of the files, dir.c has the classes of the two
 * directories and of NAME.job and NAME.error. struct submit (save.h) owns the tables of one directory; a mount has two
 * of them.
 *
 * The FUSE thread changes bytes and names and begins launches; the I/O thread ends them, and removes expired files; the
 * pool writes.
 *
 * STATE/submit/NAME is a file, exactly as it was written; STATE/dryrun/NAME is one of dryrun/.
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
/* The backend has started, and the first request is served next: find the owners of the files. */
void submit_find_owners(struct submit *s);
/* To be called after the loop has ended, when handles and nodes are freed. NULL is allowed. */
void submit_free(struct submit *s);

/* See backend_events.expired: remove FILE if it is closed, and still the document with this DIGEST. I/O thread. */
void submit_expired(struct submit *s, const char *file, const char *digest);
/* Remove the files of dryrun/ that did not change for 7 days, if they are closed. I/O thread. */
void submit_expire_dryrun(struct submit *s, int64_t now);

/* The classes of MOUNT/submit and MOUNT/dryrun. */
extern const struct node_class submit_class, dryrun_class;
