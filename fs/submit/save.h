/* SPDX-License-Identifier: MIT */
/*
 * One directory, submit/ or dryrun/, and how it comes to disk: its files (upload.h), and the record of each name
 * (record.h, filled and taken by names.h).
 *
 * All that is done to the disk is one queue of the pool (backend/base/work.h), in the order in which it was asked for;
 * so what stands there is at any moment what was true a moment ago. Nothing of it holds up the FUSE thread or the I/O
 * thread: who needs it done is called when it is. A record is filled when it enters the queue.
 *
 * A record is in the page cache before the backend is asked, and before a verdict is answered: a crash of kxfs loses
 * nothing. Nothing is synced before the backend is asked. Within a second of a verdict the file and its record are
 * synced, beside the queue, with those of other verdicts: a sync that began before the answer would hold it up, since
 * the disk's journal does one at a time. If a power cut comes before that, and the record is gone or damaged, the
 * backend reports the launch at the next start (backend_events.launched), since it syncs what it launches.
 * STATE/submit.reported is the number up to which all launches have their verdict, so that older reports are no news.
 */
#pragma once

#include <stdatomic.h>

#include "fs/submit/names.h"
#include "fs/submit/submit.h"

struct saver; /* the queue, and files to be synced (save.c) */

/* Set by submit_new, and then only read. */
struct submit {
	struct submit_config config;
	struct fs *fs;
	const char *name; /* "submit", "dryrun" */
	bool dry;	  /* nothing is launched */
	struct record_owner us;
	char *dir;  /* STATE/submit */
	int dir_fd; /* the same */
	struct lock lock;
	struct uploads *files;
	struct names *names;
	struct records *records;
	struct saver *saver;
	atomic_bool recovered; /* news of the backend are shown at once */
};

/* Make the saver, and read all files and records of S. 0 or a negative errno. Before the mount is up. */
int save_open(struct submit *s, struct saver **ret);
/* When the mount is up, before anybody is served: refuse files whose writers were not done when the last one ended. */
void save_unfinished(struct submit *s);
/* After the loop has ended: sync what is left, if the disk answers, and free the saver of S (none is allowed). */
void save_end(struct submit *s);

/* What follows has been done, with ERR, 0 or a negative errno; I/O thread. */
typedef void (*save_fn)(void *data, int err);

enum save_what {
	SAVE_BYTES, /* what was written comes to disk */
	SAVE_SYNC,  /* the same, and a crash of the machine does not cost it */
	SAVE_LOAD, /* the bytes are in memory if it is open, and it is known whether they were launched */
	SAVE_RENAME, /* it is called TEXT on disk, or (NULL) is no file any more */
	SAVE_TEXT,   /* TEXT becomes its content on disk */
};

/* Each from any thread, after all that was asked for before. FN may be NULL: then errors are in the log. */

/* Do WHAT for the file U. TEXT is copied. */
void save_file(struct submit *s, struct upload *u, enum save_what what, const char *text,
	       save_fn fn, void *data);
/* SAVE_BYTES, if that is needed and nobody has asked for it. */
void save_soon(struct submit *s, struct upload *u);
/* Write the record of NAME. */
void save_name(struct submit *s, const char *name, save_fn fn, void *data);

/* --- I/O thread --- */

/* The verdict on NAME is known, and its record was asked for: sync it and its file soon. */
void save_answered(struct submit *s, const char *name);
/* A start has told of all that the backend has reported: STATE/submit.reported says so after all that was asked for. */
void save_reported(struct submit *s);
