/* SPDX-License-Identifier: MIT */
/*
 * Reads the archive that captures fill (backend/keep/): the jobs that stand there become snapshots like any others, and
 * those of the last days stand in the history of the store as long as no other part of kxfs knows them. The reader
 * writes nothing into an archive. Anybody may have written what stands there, so it passes over whatever is no job.
 *
 *	reader  (here) which days and jobs there are, which of them the store has, and the texts of a job
 *	day     the list of a day becomes snapshots
 *	spool   logs are fetched into STATE/fetched/
 *	remote  the archive, for threads that may wait
 *
 * These functions are called on the pool, and by handlers that may wait for a disk; none of them may wait on the I/O
 * thread.
 */
#pragma once

#include "backend/archive/archive.h"
#include "backend/jobs/store.h"
#include "backend/keep/text.h"
#include "backend/output/output.h"

struct reader;

struct reader_config {
	struct loop *loop;
	struct store *store;
	struct output *output; /* output of the mount, whose bytes count in the spool, too */
	struct archive_address place;
	const char *state_dir; /* borrowed */
	uint64_t spool_limit;  /* in bytes */
	int64_t history_keep;  /* in seconds */
};

/*
 * CONFIG is copied, but what it points to is borrowed. *RET_TEXT is malloc'ed if this fails. To be called before the
 * loop runs.
 */
int reader_new(const struct reader_config *config, struct reader **ret, char **ret_text);
void reader_free(struct reader *r); /* to be called after the loop has stopped; NULL is allowed */

/* --- I/O thread --- */

/* From now on show the jobs of the cluster that UID (of NAMESPACE) tells from others, and no others. */
void reader_begin(struct reader *r, const char *namespace, const char *uid);
/* No jobs will be shown, for the reason WHY. */
void reader_refuse(struct reader *r, const char *why);
/* See backend_events.job: a job that has left jobs/ or the history may stand in the archive. */
void reader_job(struct reader *r, const struct spec_job *old, const struct spec_job *new_job);
void reader_stop(struct reader *r, loop_fn fn, void *data);

/* --- any thread; these wait, some seconds at most: 0 or a negative errno, -EHOSTUNREACH: the archive is away --- */

/* Somebody looks at the history. The first ones wait until the archive was read, or can't be. */
void reader_look(struct reader *r);
/* The days that have jobs, oldest first. *RET, and each item of it, is malloc'ed. */
int reader_days(struct reader *r, char ***ret, size_t *ret_n);
/* The jobs of a day, each of which has an id of its own there, as new references; *RET is malloc'ed. */
int reader_jobs(struct reader *r, const char *day, const struct spec_job ***ret, size_t *ret_n);
/* The job of DAY that is called ID, a new reference. */
int reader_job_of(struct reader *r, const char *day, const char *id, const struct spec_job **ret);
/* The newest job called ID, of any day, a new reference. */
int reader_find(struct reader *r, const char *id, const struct spec_job **ret);
/*
 * Replace *JOB, a reference that may be brief, by a snapshot that is not; if other parts know the job, by one that also
 * has the logs of attempts that only the archive knows.
 */
int reader_complete(struct reader *r, const struct spec_job **job);
/* The text WHICH of JOB, malloc'ed. */
int reader_text(struct reader *r, const struct spec_job *job, enum keep_text which, char **ret,
		size_t *ret_len);
/*
 * Like output_log and output_log_stat, for any job that the archive has: what of the log is not in the spool is
 * fetched. -ENOSPC: the spool has no room for it.
 */
int reader_log(struct reader *r, const struct spec_job *job, const char *key, enum log_form form,
	       struct log **ret);
int reader_log_stat(struct reader *r, const struct spec_job *job, const char *key,
		    enum log_form form, struct log_stat *ret);

/* --- any thread, from memory --- */

/* The job of this uid, if the archive has it and it was read; a new reference. */
const struct spec_job *reader_by_uid(struct reader *r, const char *uid);
/* How many bytes are in STATE/fetched. */
uint64_t reader_bytes(struct reader *r);
/* Print the lines for .kxfs/info. */
void reader_info(struct reader *r, FILE *out);
