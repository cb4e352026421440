/* SPDX-License-Identifier: MIT */
/*
 * Keeps jobs in an archive: their texts, and what they print. A job that is over is put there a moment after its last
 * change; one that goes on again and again, each time with what it has printed meanwhile. What can't be put stays in
 * the state directory, and is tried again. I/O thread, unless said otherwise.
 *
 *	keep    (here) which jobs there are, which is next, and the state that stays: STATE/archive/
 *	errand  one job is put
 *	lister  lines are put into the list of a day
 *	text    names, records and lines; pure
 */
#pragma once

#include "backend/archive/archive.h"
#include "backend/keep/text.h"

#define KEEP_DIR "archive" /* below STATE: UID says what the archive has of a job, */
#define KEEP_LEFT                                                                                  \
	".left" /* and UID.left is the last snapshot of one that the cluster does not have any more */

struct keep;

/* Pool: the text KEEP_APPDEF, KEEP_MANIFEST or KEEP_EVENTS of JOB, malloc'ed. -ENOENT: there is none (any more). */
typedef int (*keep_text_fn)(void *data, const struct spec_job *job, enum keep_text which,
			    char **ret, size_t *ret_len);

struct keep_config {
	struct loop *loop;
	struct archive_place place;
	const char *state_dir; /* borrowed */
	const char *writer;    /* user@host, of whom each state directory is another writer */
	unsigned stop_ms;      /* so long keep_stop tries */
	keep_text_fn text;
	void *data;
};

/* CONFIG is copied but for what it borrows. 0, or a negative errno of archive_new with *RET_TEXT. Any thread. */
int keep_new(const struct keep_config *config, struct keep **ret, char **ret_text);
void keep_free(struct keep *k); /* NULL is allowed; after the loop has stopped */

/*
 * All jobs are of NAMESPACE of the cluster that UID tells from others (its namespace's). FN is told 0, also if the
 * archive is away for now; or -EEXIST: it has jobs of another cluster below that name, so nothing will be put.
 */
void keep_begin(struct keep *k, const char *namespace, const char *uid,
		void (*fn)(void *data, int err, const char *text), void *data);
/* FN(DATA), which only takes note of it: keep_has is true of one more job. Before keep_begin. */
void keep_set_put(struct keep *k, loop_fn fn, void *data);
/* As backend_events.job, from the first job on. */
void keep_job(struct keep *k, const struct spec_job *old, const struct spec_job *new_job);
/* Has the archive all that there is of the job UID, which has ended? K may be NULL: there is none to wait for. */
bool keep_has(const struct keep *k, const char *uid);
/* What is new is put once more, then FN(DATA). Nothing may be put after it. */
void keep_stop(struct keep *k, loop_fn fn, void *data);

/* Any thread. */
void keep_metrics(struct keep *k, FILE *out);
