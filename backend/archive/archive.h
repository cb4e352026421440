/* SPDX-License-Identifier: MIT */
/*
 * The archive: DIR/NAMESPACE/DAY/ID/ has the files of a job that has ended, as plain files. DAY is the day on which the
 * job was created (UTC). A job is copied there once, whole or not at all; what is there is never changed. Any number of
 * mounts and captures may write to one DIR. A job that can't be copied is tried again, and the others go on.
 *
 * I/O thread, unless said otherwise. What touches DIR runs on the pool (copy.c), one job at a time.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/job/job.h"

struct archive;
struct output;

enum archive_text { ARCHIVE_MANIFEST, ARCHIVE_APPDEF, ARCHIVE_EVENTS };

/* Copied; what it points to is borrowed. */
struct archive_config {
	struct loop *loop;
	struct output *output; /* has the logs of all jobs */
	const char *dir;       /* DIR, an absolute path */
	const char *state_dir;
	unsigned stop_ms; /* how long archive_stop goes on */
	/* Is the output of JOB, which has ended, complete, or known to be incomplete? */
	bool (*is_settled)(void *data, const struct spec_job *job);
	/* Runs on the pool: a text of JOB, malloc'ed, and the mode that its file may have; or *RET stays NULL. */
	int (*text)(void *data, const struct spec_job *job, enum archive_text which, char **ret,
		    size_t *ret_len, mode_t *ret_mode);
	void *data;
};

/* Before the loop has threads. */
struct archive *archive_new(const struct archive_config *config);
void archive_free(struct archive *a); /* NULL is allowed; to be called when the loop has stopped */
/*
 * Is DIR there, and the directory that an earlier start of the kxfs of STATE_DIR has found? STATE_DIR NULL: can it be
 * written to? 0, or a negative errno with *RET_TEXT, malloc'ed; -ETIMEDOUT: it does not answer. This waits for DIR, a
 * limited time. Before the loop has threads.
 */
int archive_check(const char *dir, const char *state_dir, char **ret_text);
/* Begin to copy. NAMESPACE is copied. */
void archive_begin(struct archive *a, const char *namespace);
/* A job that this archive gets is new, has changed, or (NEW_JOB is NULL) is gone. From the first job on. */
void archive_job(struct archive *a, const struct spec_job *old, const struct spec_job *new_job);

/* For those who remove what is old. Has job UID ended, and is it not in the archive yet? A is NULL if there is none. */
bool archive_lacks(const struct archive *a, const char *uid);
/* DIR takes no jobs at present, so what the archive lacks of UID may be removed if there is no room for more. */
bool archive_gives_up(const struct archive *a, const char *uid);

/* Go on for a limited time, then call FN(DATA). A copy that is under way then has ended when loop_stop returns true. */
void archive_stop(struct archive *a, loop_fn fn, void *data);

/* Any thread. */
void archive_info(struct archive *a, FILE *out);
void archive_metrics(struct archive *a, FILE *out);
