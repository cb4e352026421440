/* SPDX-License-Identifier: MIT */
/*
 * One directory, submit/ or dryrun/, and the queue in which its files reach the disk.
 *
 * All changes of the disk go through one queue of the pool (backend/base/work.h), in the order in which they were
 * requested. So the disk always has what was true a moment ago. Neither the FUSE thread nor the I/O thread waits for
 * it: a callback reports the end of each change.
 *
 * The bytes of a file are in the page cache before they are launched, so they outlive a crash of kxfs. They are synced
 * within a second of the result, beside the queue and together with those of other launches. A sync that began before
 * the reply would delay it, since a journal does one sync at a time. A power cut before that may lose the file of a
 * job, but not its document, which the job's record has.
 */
#pragma once

#include "fs/submit/names.h"
#include "fs/submit/submit.h"

struct saver; /* the queue, and the names of the files to sync (save.c) */

/* Plain data. submit_new sets it, and then it is only read. */
struct submit {
	struct submit_config config;
	struct fs *fs;
	const char *name; /* "submit", "dryrun" */
	bool dry;	  /* this is dryrun/: nothing is launched */
	struct file_owner us;
	char *dir;  /* STATE/submit */
	int dir_fd; /* a descriptor of DIR */
	struct lock lock;
	struct uploads *files;
	struct names *names;
	struct saver *saver;
};

/* Make the saver, and find all files of S on disk. 0, or a negative errno. Before the mount is up. */
int save_open(struct submit *s);
/* To be called after the loop has ended: sync what is left, if the disk responds, and free the saver of S, if any. */
void save_end(struct submit *s);

/* The request is done, with ERR: 0 or a negative errno. I/O thread. */
typedef void (*save_fn)(void *data, int err);

enum save_what {
	SAVE_BYTES, /* the changes of the file reach the disk */
	SAVE_SYNC,  /* the same, and they outlive a crash of the machine */
	SAVE_LOAD, /* the bytes are in memory if the file is open, and its content is not CONTENT_FOUND any more */
	SAVE_RENAME, /* the file is called TEXT on disk, or (NULL) is removed */
	SAVE_TEXT,   /* TEXT becomes the file's content on disk */
	SAVE_CHECK,  /* -ESTALE unless TEXT is the SHA-256 of the file */
};

/*
 * Do WHAT for the file U, after everything that was requested before. TEXT is copied. FN may be NULL: then errors are
 * in the log. Any thread.
 */
void save_file(struct submit *s, struct upload *u, enum save_what what, const char *text,
	       save_fn fn, void *data);
/* Do SAVE_BYTES for U, if that is needed and was not requested yet. Any thread. */
void save_soon(struct submit *s, struct upload *u);
/* The launch of the file NAME has ended, and its bytes were written: sync them soon. I/O thread. */
void save_launched(struct submit *s, const char *name);
