/* SPDX-License-Identifier: MIT */
/*
 * The archive: DIR/NAMESPACE/DAY/ID/ has the files of a finished job, as plain files. DAY is the day on which the
 * job was created (UTC). A job is copied there once, completely or not at all; existing copies never change. Any
 * number of mounts and captures may write to one DIR. If a job can't be copied, kxfs retries it, and copies the
 * other jobs meanwhile.
 *
 * I/O thread, unless noted otherwise. Accesses of DIR run on the pool (copy.c), one job at a time.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/job/job.h"

struct archive;
struct output;

/* Copied by archive_new. Everything that it points to is borrowed. */
struct archive_config {
	struct loop *loop;
	struct output *output; /* has the logs of all jobs */
	const char *dir;       /* DIR, an absolute path */
	const char *state_dir;
	unsigned stop_ms; /* the time for which archive_stop continues to copy */
	/* True if the output of JOB, which has ended, is complete, or known to be incomplete. */
	bool (*is_settled)(void *data, const struct spec_job *job);
	/*
	 * Set *RET to the text of JOB's file NAME (manifest.yaml, app.yaml, events), malloc'ed, and *RET_MODE to
	 * its mode. If there is no such file, leave *RET NULL. Return 0 or a negative errno; -EINVAL: the text is
	 * damaged. Runs on the pool.
	 */
	int (*text)(void *data, const struct spec_job *job, const char *name, char **ret,
		    size_t *ret_len, mode_t *ret_mode);
	void *data;
};

/* Create an archive. Call this before the loop has threads. */
struct archive *archive_new(const struct archive_config *config);
void archive_free(struct archive *a); /* NULL is allowed; call this when the loop has stopped. */
/*
 * Check that DIR exists, and that earlier starts with STATE_DIR have used the same DIR. If STATE_DIR is NULL, check
 * that DIR is writable. This waits for DIR for a limited time. Return 0, or a negative errno with *RET_TEXT,
 * malloc'ed; -ETIMEDOUT: DIR does not answer. Call this before the loop has threads.
 */
int archive_check(const char *dir, const char *state_dir, char **ret_text);
/* Start to copy jobs to DIR/NAMESPACE. The string NAMESPACE is copied. */
void archive_begin(struct archive *a, const char *namespace);
/*
 * Report a job that is new (OLD is NULL), has changed, or was deleted (NEW_JOB is NULL). Every job must be
 * reported.
 */
void archive_job(struct archive *a, const struct spec_job *old, const struct spec_job *new_job);

/* For code that removes old jobs: true if job UID has ended, and is not in the archive yet. False if A is NULL. */
bool archive_lacks(const struct archive *a, const char *uid);
/* True if DIR can't be used at present, so that job UID may be removed without a copy if space is needed. */
bool archive_gives_up(const struct archive *a, const char *uid);

/*
 * Copy for a limited time, then call FN(DATA). A copy that is still in progress then has ended when loop_stop
 * returns true.
 */
void archive_stop(struct archive *a, loop_fn fn, void *data);

/* Print the lines for .kxfs/info and .kxfs/metrics. Any thread. */
void archive_info(struct archive *a, FILE *out);
void archive_metrics(struct archive *a, FILE *out);
