/* SPDX-License-Identifier: MIT */
/*
 * The archive: DIR/NAMESPACE/DAY/ID/ has the files of a finished job, as plain files. DAY is the
 * day (UTC) on which the job was created. kxfs copies a job there once, completely or not at all,
 * and never changes a copy. Any number of mounts and `kxfs capture` processes may write to the same
 * DIR.
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
	 * JOB has ended. Return true if all of its available output is on disk, and kxfs is not
	 * removing any of it.
	 */
	bool (*is_settled)(void *data, const struct spec_job *job);
	/*
	 * Set *RET to the text of JOB's file NAME (manifest.yaml, app.yaml, events), malloc'ed, and
	 * *RET_MODE to the file's mode. Leave *RET NULL if there is no such file. Return 0 or a
	 * negative errno; -EINVAL if the text is damaged. Runs on the pool.
	 */
	int (*text)(void *data, const struct spec_job *job, const char *name, char **ret,
		    size_t *ret_len, mode_t *ret_mode);
	void *data;
};

/* Create an archive. Call this before the loop starts its threads. */
struct archive *archive_new(const struct archive_config *config);
void archive_free(struct archive *a); /* A may be NULL. Call this after the loop has stopped. */
/*
 * Check DIR, and create a mark file in it. Fail if the last start with STATE_DIR used this path,
 * but DIR has no mark now, for example because its file system is not mounted. If STATE_DIR is
 * NULL, only check that DIR is writable. Return 0, or a negative errno with *RET_TEXT, malloc'ed.
 * -ETIMEDOUT: DIR does not respond. Call this before the loop starts its threads.
 */
int archive_check(const char *dir, const char *state_dir, char **ret_text);
/* Start to copy jobs to DIR/NAMESPACE. The archive keeps its own copy of the string NAMESPACE. */
void archive_begin(struct archive *a, const char *namespace);
/* Call this for every job that is added (OLD is NULL), changed, or deleted (NEW_JOB is NULL). */
void archive_job(struct archive *a, const struct spec_job *old, const struct spec_job *new_job);

/*
 * True if job UID has ended, but DIR does not have it yet. The job must then be kept. A may be
 * NULL.
 */
bool archive_lacks(const struct archive *a, const char *uid);
/*
 * True if kxfs may remove job UID without a copy when it needs space: DIR is not available now, and
 * kxfs is not copying the job.
 */
bool archive_gives_up(const struct archive *a, const char *uid);

/*
 * Continue to copy for at most STOP_MS. Then cancel the current copy, and call FN(DATA). The
 * cancelled copy may still run on the pool until loop_stop returns true.
 */
void archive_stop(struct archive *a, loop_fn fn, void *data);

/* Print the lines for .kxfs/info and .kxfs/metrics. Any thread. */
void archive_info(struct archive *a, FILE *out);
void archive_metrics(struct archive *a, FILE *out);
