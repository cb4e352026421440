/* SPDX-License-Identifier: MIT */
/*
 * One directory, submit/ or dryrun/, and the queue in which its files reach the disk.
 *
 * All changes of the disk go through one queue of the pool (backend/base/work.h), in the order of
 * the requests, so the directory on disk always equals the directory in memory at an earlier time.
 * Neither the FUSE thread nor the I/O thread waits for the queue: a callback reports the end of
 * each change.
 *
 * The bytes of a file are in the page cache before they are launched, so they survive a crash of
 * kxfs. kxfs syncs the file within a second of the result, outside the queue, together with the
 * files of other launches. A sync before the reply would delay it, since a journal does one sync at
 * a time. A power cut before the sync may lose the file of a job, but not its document, which the
 * job's record has.
 */
#pragma once

#include "fs/submit/names.h"
#include "fs/submit/submit.h"

struct saver; /* the queue, and the names of the files to sync (save.c) */

/* Plain data, set by submit_new and constant afterwards. */
struct submit {
	struct submit_config config;
	struct fs *fs;
	const char *name; /* "submit", "dryrun" */
	bool dry;	  /* this is dryrun/, which launches nothing */
	struct file_owner us;
	char *dir;  /* STATE/submit */
	int dir_fd; /* a descriptor of DIR */
	struct lock lock;
	struct uploads *files;
	struct names *names;
	struct saver *saver;
};

/*
 * Make the saver, and find all files of S on disk. Return 0 or a negative errno. Call this before
 * the mount is up.
 */
int save_open(struct submit *s);
/*
 * Sync the files that are not synced yet, if the disk responds. Free the saver of S, if any. Call
 * this after the loop has ended.
 */
void save_end(struct submit *s);

/* Called when the request is done; ERR is 0 or a negative errno. I/O thread. */
typedef void (*save_fn)(void *data, int err);

enum save_what {
	SAVE_BYTES, /* write the changes of the file to disk */
	SAVE_SYNC,  /* the same, and sync the file */
	SAVE_LOAD, /* if the file is open, read its bytes into memory; the contents are not CONTENT_FOUND afterwards */
	SAVE_RENAME, /* rename the file on disk to TEXT, or (NULL) remove it */
	SAVE_TEXT,   /* make TEXT the file's contents on disk */
	SAVE_CHECK,  /* -ESTALE unless TEXT is the SHA-256 of the file */
};

/*
 * Do WHAT for the file U, after everything that was requested before. TEXT is copied. If FN is
 * NULL, errors are only logged. Any thread.
 */
void save_file(struct submit *s, struct upload *u, enum save_what what, const char *text,
	       save_fn fn, void *data);
/* Queue SAVE_BYTES for U if it is needed and not queued yet. Any thread. */
void save_soon(struct submit *s, struct upload *u);
/* The launch of the file NAME has ended: sync the file soon. I/O thread. */
void save_launched(struct submit *s, const char *name);

/* --- the class of its files (file.c); FUSE thread --- */

/* Return the node of U in DIR, as a reference. */
struct node *submit_file_node(struct fs *fs, struct node *dir, struct upload *u);
/*
 * Make the handle in FI for U. TAKEN: upload_taken when its node was made. MADE: this request has
 * made U. Empty U if FI requests that. Return 0; -EAGAIN if the handle was made but SAVE_LOAD must
 * run before it is used; or another negative errno without a handle.
 */
int submit_file_open(struct fs *fs, fuse_req_t req, struct submit *s, struct upload *u,
		     unsigned taken, bool made, struct fuse_file_info *fi);
