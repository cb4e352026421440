/* SPDX-License-Identifier: MIT */
/*
 * One directory, submit/ or dryrun/, and how it outlives the mount. Its files are uploads (upload.h), and what became
 * of them is in verdicts (verdict.h). Here the record of a name (record.h) is filled by both and written to disk, and
 * read by both at the next start.
 *
 * The record of a name is filled when it is written, on the I/O thread; so the order in which changes are reported
 * does not matter. A record is in the page cache before the backend is asked, and before a verdict is
 * answered: a crash of kxfs loses nothing. Nothing is synced before the backend is asked. Within a second of a
 * verdict the file and its record are synced, on the pool, with those of other verdicts: a sync that began before
 * the answer would hold it up, since the disk's journal does one at a time. If a power cut comes before that, and the
 * record is gone or damaged, the backend reports the launch at the next start (backend_events.launched), since it syncs
 * what it launches.
 * STATE/submit.reported is the time up to which all launches have their verdict, so that older reports are no news.
 */
#ifndef KXFS_FS_SUBMIT_SAVE_H
#define KXFS_FS_SUBMIT_SAVE_H

#include "fs/submit/submit.h"
#include "fs/submit/upload.h"
#include "fs/submit/verdict.h"

struct saver; /* files to be synced, and the time in submit.reported (save.c) */

/* Set by submit_new, and then only read. */
struct submit {
	struct submit_config config;
	struct fs *fs;
	const char *name; /* "submit", "dryrun" */
	bool dry;	  /* nothing is launched */
	struct record_owner us;
	char *dir;  /* STATE/submit */
	int dir_fd; /* the same */
	struct uploads *uploads;
	struct verdicts *verdicts;
	struct records *records;
	struct saver *saver;
};

/* Read the records of S, which has all but a saver. 0 or a negative errno. Before the mount is up. */
int save_load(struct submit *s, struct saver **ret);
/* Something of NAME has changed: write its record; on the I/O thread at once, else soon. */
void save_name(struct submit *s, const char *name);
/* The verdict on NAME is in its record, and whoever waited for it has it: sync file and record soon. I/O thread. */
void save_answered(struct submit *s, const char *name);
/* All launches that the backend has reported have their verdict now: write STATE/submit.reported. */
void save_reported(struct submit *s);
/* The time (ns) up to which all launches had their verdict when the mount began. */
int64_t save_reported_until(const struct submit *s);
/* After the loop has ended: sync what is left, and free the saver (NULL is allowed) of S. */
void save_end(struct submit *s);

#endif
