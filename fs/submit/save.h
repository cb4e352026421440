/* SPDX-License-Identifier: MIT */
/*
 * Struct submit, the data of submit/ or dryrun/, and the queue that writes its files to disk.
 *
 * All changes on disk go through one queue of the pool (backend/base/work.h), in the order of the
 * requests. So the directory on disk always equals the directory in memory at some earlier time.
 * The FUSE and I/O threads never wait for the queue: a callback reports the end of each change.
 *
 * kxfs writes a file to the page cache before launching it, so the bytes survive a crash of kxfs.
 * It syncs a file only if the writer does. So a power failure may lose the newest files in submit/,
 * but not the documents of their jobs, which are in the jobs' records.
 */
#pragma once

#include "backend/base/work.h"
#include "fs/submit/names.h"
#include "fs/submit/submit.h"

/* Plain data, set by submit_new and constant afterwards. */
struct submit {
	struct submit_config config;
	struct fs *fs;
	const char *name; /* "submit" or "dryrun" */
	bool dry;	  /* true for dryrun/ */
	struct file_owner us;
	char *dir; /* STATE/submit or STATE/dryrun */
	int dir_fd;
	struct lock lock;
	struct uploads *files;
	struct names *names;
	struct work_queue queue; /* I/O thread */
};

/* Add all files on disk to S. Call this before the mount is up. Return 0 or a negative errno. */
int save_open(struct submit *s);

/* Called when a queued request is done. ERR is 0 or a negative errno. I/O thread. */
typedef void (*save_fn)(void *data, int err);

enum save_what {
	SAVE_BYTES, /* write the file's changes to disk */
	SAVE_SYNC,  /* SAVE_BYTES, then sync the file */
	/* read the bytes of an open file; change the state FOUND to LAUNCHED or NEW */
	SAVE_LOAD,
	SAVE_RENAME, /* rename the file on disk to TEXT, or remove it if TEXT is NULL */
	SAVE_TEXT,   /* replace the file's contents on disk by TEXT */
	SAVE_CHECK,  /* fail with -ESTALE unless TEXT is the file's SHA-256 */
};

/* Queue WHAT for U. TEXT is copied. FN gets the result. If FN is NULL, log an error. Any thread. */
void save_file(struct submit *s, struct upload *u, enum save_what what, const char *text,
	       save_fn fn, void *data);
/* Queue SAVE_BYTES for U if it has changes that are not queued yet. Any thread. */
void save_soon(struct submit *s, struct upload *u);

/* --- the class of the files (file.c); FUSE thread --- */

/* Return a new reference to U's node in DIR. */
struct node *submit_file_node(struct fs *fs, struct node *dir, struct upload *u);
/*
 * Make a handle for NODE's file, and store it in FI. MADE is true if this request has made the
 * file. If FI has O_TRUNC, empty the file. Return 0 or a negative errno. After -EAGAIN the handle
 * exists, but SAVE_LOAD must run before its use. After other errors there is no handle.
 */
int submit_file_open(struct fs *fs, fuse_req_t req, struct node *node, bool made,
		     struct fuse_file_info *fi);
