/* SPDX-License-Identifier: MIT */
/*
 * One directory, submit/ or dryrun/, and how it comes to disk: its files (upload.h), and the record of each name
 * (record.h, filled and taken by names.h).
 *
 * All changes of the disk go through one queue of the pool (backend/base/work.h), in the order in which they were asked
 * for; so at any moment the disk has what was true a moment ago. None of them holds up the FUSE thread or the I/O
 * thread: whoever needs one is called when it is done. A record is filled when it enters the queue.
 *
 * A record is in the page cache before the backend is asked, and before a request is answered with a verdict: so a
 * crash of kxfs loses nothing. Nothing is synced before the backend is asked. Within a second of a verdict the file and
 * its record are synced, beside the queue, with those of other verdicts: a sync that began before the answer would hold
 * it up, since the disk's journal does one at a time. If a power cut comes before that, and the record is gone or
 * damaged, the backend reports the launch at the next start (backend_events.launched), since it syncs what it launches.
 * STATE/submit.reported is the number up to which all launches have their verdict, so that older reports are no news. A
 * record that the disk does not take is tried again, and holds that number up.
 */
#pragma once

#include <stdatomic.h>

#include "fs/submit/names.h"
#include "fs/submit/submit.h"

struct saver; /* the queue, and the files that are to be synced (save.c) */

/* submit_new sets it, and then it is only read. */
struct submit {
	struct submit_config config;
	struct fs *fs;
	const char *name; /* "submit", "dryrun" */
	bool dry;	  /* it is dryrun/: nothing is launched */
	struct record_owner us;
	char *dir;  /* STATE/submit */
	int dir_fd; /* a descriptor of DIR */
	struct lock lock;
	struct uploads *files;
	struct names *names;
	struct launches *records;
	struct saver *saver;
	atomic_bool recovered; /* the start is over: the backend's news are shown at once */
};

/*
 * Make the saver, and read all files and records of S. 0, or a negative errno with *RET_TEXT (malloc'ed; NULL if there
 * is no more to say). Before the mount is up.
 */
int save_open(struct submit *s, struct saver **ret, char **ret_text);
/*
 * To be called when the mount is up, before anybody is served: refuse files whose writers were not done when the last
 * mount ended.
 */
void save_unfinished(struct submit *s);
/*
 * To be called after the loop has ended: sync what is left, if the disk answers, and free the saver of S, if there is
 * one.
 */
void save_end(struct submit *s);

/* What was asked for is done, with ERR: 0 or a negative errno. I/O thread. */
typedef void (*save_fn)(void *data, int err);

enum save_what {
	SAVE_BYTES, /* bytes that were written come to disk */
	SAVE_SYNC,  /* the same, and they outlive a crash of the machine */
	/* The bytes come to memory if the file is open, and it becomes known whether they were launched. */
	SAVE_LOAD,
	SAVE_RENAME, /* the file is called TEXT on disk, or (NULL) is removed */
	SAVE_TEXT,   /* TEXT becomes the file's content on disk */
};

/*
 * The functions below are for any thread. Each does its work after all that was asked for before. FN may be NULL: then
 * errors are in the log.
 */

/* Do WHAT for the file U. TEXT is copied. */
void save_file(struct submit *s, struct upload *u, enum save_what what, const char *text,
	       save_fn fn, void *data);
/* Do SAVE_BYTES for U, if that is needed and was not asked for yet. */
void save_soon(struct submit *s, struct upload *u);
/* Write the record of NAME. */
void save_name(struct submit *s, const char *name, save_fn fn, void *data);

/* --- I/O thread --- */

/* The verdict on NAME is known, and its record is in the queue: sync that and the file soon. */
void save_answered(struct submit *s, const char *name);
/*
 * The start has told of all that the backend has reported: after all that was asked for before, STATE/submit.reported
 * says so.
 */
void save_reported(struct submit *s);
