/* SPDX-License-Identifier: MIT */
/*
 * Keeps jobs in an archive: their texts, and what they print. A job that is over is put there a moment after its last
 * change; a job that goes on is put again and again, each time with what it has printed meanwhile. What can't be put
 * stays in the state directory, and is tried again. I/O thread, unless said otherwise.
 *
 *	keep    (here) which jobs there are, which is next, and the state that stays: STATE/archive/
 *	errand  one job is put
 *	lister  lines are put into the list of a day
 *	text    names, records and lines; pure
 */
#pragma once

#include "backend/archive/archive.h"
#include "backend/keep/text.h"

/*
 * A directory in STATE: its file UID says what the archive has of a job, and UID.left is the last snapshot of a job
 * that the cluster no longer has.
 */
#define KEEP_DIR  "archive"
#define KEEP_LEFT ".left"

struct keep;

/*
 * Runs on the pool: the text KEEP_APPDEF, KEEP_MANIFEST or KEEP_EVENTS of JOB, malloc'ed. -ENOENT: there is none, or
 * none any more.
 */
typedef int (*keep_text_fn)(void *data, const struct spec_job *job, enum keep_text which,
			    char **ret, size_t *ret_len);

struct keep_config {
	struct loop *loop;
	struct archive_address place;
	const char *state_dir; /* borrowed */
	const char *writer;    /* user@host; each state directory is another writer */
	unsigned stop_ms;      /* how long keep_stop tries */
	keep_text_fn text;
	void *data;
};

/*
 * CONFIG is copied, but what it points to is borrowed. 0, or a negative errno of archive_new with *RET_TEXT. Any
 * thread.
 */
int keep_new(const struct keep_config *config, struct keep **ret, char **ret_text);
void keep_free(struct keep *k); /* NULL is allowed; to be called after the loop has stopped */

/*
 * Begin. All jobs are of NAMESPACE, in the cluster that UID (the uid of its namespace) tells from others. FN is told 0,
 * also if the archive is away for now; or -EEXIST: below that name the archive has jobs of another cluster, so nothing
 * will be put.
 */
void keep_begin(struct keep *k, const char *namespace, const char *uid,
		void (*fn)(void *data, int err, const char *text), void *data);
/* FN(DATA) is called when keep_has becomes true for another job; it may only take note. To be set before keep_begin. */
void keep_set_put(struct keep *k, loop_fn fn, void *data);
/* See backend_events.job; called from the first job on. */
void keep_job(struct keep *k, const struct spec_job *old, const struct spec_job *new_job);
/* Has the archive everything of job UID, which has ended? K NULL: there is no archive to wait for, so yes. */
bool keep_has(const struct keep *k, const char *uid);
/* Put what is new once more, then call FN(DATA). Nothing is put after that. */
void keep_stop(struct keep *k, loop_fn fn, void *data);

/* Any thread. */
void keep_metrics(struct keep *k, FILE *out);
