/* SPDX-License-Identifier: MIT */
/*
 * The archive: DIR/NAMESPACE/DAY/ID/ contains the files of a finished job, as plain files. DAY is
 * the day (UTC) on which the job was created. kxfs copies a job there once, completely or not at
 * all, and never changes an existing copy. Any number of mounts and `kxfs capture` processes may
 * write to the same DIR. If a job can't be copied, kxfs retries it later, and copies the other jobs
 * meanwhile.
 *
 * I/O thread, unless noted otherwise. Accesses to DIR run on the pool (copy.c), one job at a time.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/job/job.h"

struct archive;
struct output;

/* archive_new copies this struct, but not the strings and objects that it points to. */
struct archive_config {
	struct loop *loop;
	struct output *output; /* has the logs of all jobs */
	const char *dir;       /* DIR: an absolute path */
	const char *state_dir;
	unsigned stop_ms; /* how long archive_stop continues to copy */
	/*
	 * Called only for a JOB that has ended. True if all available output of JOB is on disk, and
	 * kxfs is not removing any of it.
	 */
	bool (*is_settled)(void *data, const struct spec_job *job);
	/*
	 * Set *RET to the text of JOB's file NAME (manifest.yaml, app.yaml, events), malloc'ed, and
	 * *RET_MODE to the file's mode. Return 0, or a negative errno; -EINVAL if the text is
	 * damaged. If JOB has no such file, return 0 and leave *RET NULL. Runs on the pool.
	 */
	int (*text)(void *data, const struct spec_job *job, const char *name, char **ret,
		    size_t *ret_len, mode_t *ret_mode);
	void *data;
};

/* Create an archive. Call this before the loop starts its threads. */
struct archive *archive_new(const struct archive_config *config);
void archive_free(struct archive *a); /* A may be NULL. Call this after the loop has stopped. */
/*
 * Check that DIR exists. If the last start with STATE_DIR used the same path, also check that the
 * path still leads to the same directory. This check fails if, for example, the file system of the
 * archive is not mounted. If STATE_DIR is NULL, check only that DIR is writable. Return 0, or a
 * negative errno with *RET_TEXT, malloc'ed. Return -ETIMEDOUT if DIR does not respond in time. Call
 * this before the loop starts its threads.
 */
int archive_check(const char *dir, const char *state_dir, char **ret_text);
/* Start to copy jobs to DIR/NAMESPACE. NAMESPACE is copied. */
void archive_begin(struct archive *a, const char *namespace);
/* Call this for every job that is added (OLD is NULL), changed, or deleted (NEW_JOB is NULL). */
void archive_job(struct archive *a, const struct spec_job *old, const struct spec_job *new_job);

/*
 * True if job UID has ended and DIR does not have it yet. The code that removes old jobs must then
 * keep this job. False if A is NULL.
 */
bool archive_lacks(const struct archive *a, const char *uid);
/*
 * True if DIR is not available now, and kxfs is not copying job UID. In this case kxfs may remove
 * job UID without a copy if it needs the disk space.
 */
bool archive_gives_up(const struct archive *a, const char *uid);

/*
 * Continue to copy for a limited time. Then cancel the current copy, and call FN(DATA). The
 * cancelled copy may still run on the pool until loop_stop returns true.
 */
void archive_stop(struct archive *a, loop_fn fn, void *data);

/* Print the lines for .kxfs/info and .kxfs/metrics. Any thread. */
void archive_info(struct archive *a, FILE *out);
void archive_metrics(struct archive *a, FILE *out);
