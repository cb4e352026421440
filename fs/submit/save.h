/* SPDX-License-Identifier: MIT */
/*
 * Defines struct submit, which has the data of submit/ or dryrun/, and the queue that writes the
 * files of these directories to disk.
 *
 * All changes on disk go through one queue of the pool (backend/base/work.h), in the order of the
 * requests. So the directory on disk always equals the directory in memory at some earlier time.
 * Neither the FUSE thread nor the I/O thread waits for the queue: a callback reports the end of
 * each change.
 *
 * Before kxfs launches a file, it writes the file to the page cache, so the bytes survive a crash
 * of kxfs. kxfs syncs a file only if its writer does. So a power failure may lose the newest files
 * in submit/. It does not lose the documents of their jobs, which are in the jobs' records.
 */
#pragma once

#include "backend/base/work.h"
#include "fs/submit/names.h"
#include "fs/submit/submit.h"

/* Plain data, set by submit_new and constant afterwards. */
struct submit {
	struct submit_config config;
	struct fs *fs;
	const char *name; /* "submit", "dryrun" */
	bool dry;	  /* true for dryrun/, false for submit/ */
	struct file_owner us;
	char *dir;  /* STATE/submit */
	int dir_fd; /* a descriptor of DIR */
	struct lock lock;
	struct uploads *files;
	struct names *names;
	struct work_queue queue; /* I/O thread */
};

/*
 * Add all files on disk to the tables of S. Return 0 or a negative errno. Call this before the mount
 * is up.
 */
int save_open(struct submit *s);

/* Called when a request in the queue is done. ERR is 0 or a negative errno. I/O thread. */
typedef void (*save_fn)(void *data, int err);

enum save_what {
	SAVE_BYTES, /* write the changes of the file to disk */
	SAVE_SYNC,  /* as SAVE_BYTES, then sync the file */
	/*
	 * Read the bytes of the file into memory, if it is open. If the state of the contents is
	 * CONTENT_FOUND, set it to LAUNCHED or NEW.
	 */
	SAVE_LOAD,
	SAVE_RENAME, /* rename the file on disk to TEXT; if TEXT is NULL, remove the file */
	SAVE_TEXT,   /* make TEXT the file's contents on disk */
	SAVE_CHECK,  /* fail with -ESTALE unless TEXT is the SHA-256 of the file */
};

/*
 * Queue WHAT for the file U. The queue runs WHAT after everything that was queued before. TEXT is
 * copied. FN gets the result. If FN is NULL, an error is only logged. Any thread.
 */
void save_file(struct submit *s, struct upload *u, enum save_what what, const char *text,
	       save_fn fn, void *data);
/* Queue SAVE_BYTES for U, unless U has no changes or SAVE_BYTES is queued already. Any thread. */
void save_soon(struct submit *s, struct upload *u);

/* --- the class of the files (file.c); FUSE thread --- */

/* Return a new reference to the node of U in DIR. */
struct node *submit_file_node(struct fs *fs, struct node *dir, struct upload *u);
/*
 * Make a handle for U, and store it in FI. TAKEN is the value that upload_taken had when U's node
 * was made. MADE is true if this request has made U. If FI has O_TRUNC, empty U. Return 0 or a
 * negative errno. If it is -EAGAIN, the handle exists, but SAVE_LOAD must run before the handle is
 * used. After other errors there is no handle.
 */
int submit_file_open(struct fs *fs, fuse_req_t req, struct submit *s, struct upload *u,
		     unsigned taken, bool made, struct fuse_file_info *fi);
