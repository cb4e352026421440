/* SPDX-License-Identifier: MIT */
/*
 * The archive: DIR/NAMESPACE/DAY/ID/ has the files of a finished job, as plain files. DAY is the
 * day on which the job was created (UTC). A job is copied there once, completely or not at all;
 * existing copies never change. Any number of mounts and captures may write to one DIR. A job that
 * can't be copied is retried, and the others continue.
 *
 * I/O thread, unless noted otherwise. Accesses of DIR run on the pool (copy.c), one job at a time.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/job/job.h"

struct archive;
struct output;

/* Copied; what it points to is borrowed. */
struct archive_config {
	struct loop *loop;
	struct output *output; /* has the logs of all jobs */
	const char *dir;       /* DIR, an absolute path */
	const char *state_dir;
	unsigned stop_ms; /* how long archive_stop continues */
	/* True if the output of JOB, which has ended, is complete, or known to be incomplete. */
	bool (*is_settled)(void *data, const struct spec_job *job);
	/*
	 * Runs on the pool: return the text of JOB's file NAME (manifest.yaml, app.yaml, events),
	 * malloc'ed, and its mode; or leave *RET NULL. -EINVAL: the text is damaged.
	 */
	int (*text)(void *data, const struct spec_job *job, const char *name, char **ret,
		    size_t *ret_len, mode_t *ret_mode);
	void *data;
};

/* Before the loop has threads. */
struct archive *archive_new(const struct archive_config *config);
void archive_free(struct archive *a); /* NULL is allowed; call this when the loop has stopped. */
/*
 * Check that DIR exists, and is the directory that an earlier start of the kxfs of STATE_DIR has
 * used. STATE_DIR NULL: check that it is writable. Return 0, or a negative errno with *RET_TEXT,
 * malloc'ed; -ETIMEDOUT: it does not answer. This waits for DIR, a limited time. Before the loop
 * has threads.
 */
int archive_check(const char *dir, const char *state_dir, char **ret_text);
/* Start to copy. NAMESPACE is copied. */
void archive_begin(struct archive *a, const char *namespace);
/*
 * Report a job of this archive that is new, has changed, or (NEW_JOB is NULL) was deleted. From the
 * first job on.
 */
void archive_job(struct archive *a, const struct spec_job *old, const struct spec_job *new_job);

/*
 * For code that removes old jobs: true if job UID has ended, and is not in the archive yet. A is
 * NULL without an archive.
 */
bool archive_lacks(const struct archive *a, const char *uid);
/*
 * True if DIR accepts no jobs at present, so that the job UID may be removed if there is no space
 * for more.
 */
bool archive_gives_up(const struct archive *a, const char *uid);

/*
 * Continue for a limited time, then call FN(DATA). A copy in progress has ended when loop_stop
 * returns true.
 */
void archive_stop(struct archive *a, loop_fn fn, void *data);

/* Any thread. */
void archive_info(struct archive *a, FILE *out);
void archive_metrics(struct archive *a, FILE *out);
