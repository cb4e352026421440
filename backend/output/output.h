/* SPDX-License-Identifier: MIT */
/*
 * The output of jobs on disk, in the state directory. ID is the job's key (spec_job_key):
 *	STATE/output/ID/		0700
 *		logs/KEY		bytes of one container in one attempt, 0600
 *		lines/KEY		where its lines begin, and when they were printed (lines.h)
 *		merged			index of the merged log: references into logs/, never copies
 *		merged.keys		names of the logs in `merged`, and their prefixes
 *		unmerged		an empty file: `merged` may lack some output
 *
 * Each log has one writer, which writes the table of lines before the bytes. In a cluster, it is
 * a log_writer (writer.h). For a local job, it is the helper process of the replica.
 *
 * The merged index sorts the lines of fetched logs by time, if they arrive within about a second
 * of each other (order.h). Lines of local logs are in the order in which kxfs reads them. Written
 * records never change. Each line of the merged log has the prefix "ROLE/K ", as in TorchX. A line
 * ends with '\n', or with a '\r' that is not followed by '\n'.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/output/log.h"

struct output;
struct output_job; /* one job's logs and merged index */

/* EVENTS is copied. Return 0, or a negative errno with *RET_TEXT, malloc'ed. */
int output_new(struct loop *loop, const char *state_dir, const struct output_events *events,
	       struct output **ret, char **ret_text);
void output_free(struct output *o); /* After loop_stop; NULL is allowed. */

/*
 * Call this before the loop runs if output is fetched from a cluster. kxfs then calls FETCH on the
 * I/O thread whenever a log is opened. KEY is NULL for the merged log. FETCH must begin the
 * required logs (output_log_begin). FETCH must call DONE(ARG) once on the I/O thread, when all
 * output printed before the call of FETCH is on disk, or is not available. Until then,
 * log_has_arrived is false. A log that has not begun when DONE is called counts as ended.
 */
typedef void (*output_fetch_fn)(void *data, const char *id, const char *key, loop_fn done,
				void *arg);
void output_set_fetch(struct output *o, output_fetch_fn fetch, void *data);

/* --- I/O thread --- */

/* Start to count the bytes of output on disk. */
void output_start(struct output *o);
/*
 * Write waiting output into the merged logs, for some seconds at most. Then call all functions that
 * still wait in log_when_arrived, and FN(DATA).
 */
void output_stop(struct output *o, loop_fn fn, void *data);

/*
 * Return the output of job ID. Return NULL and set errno to EINVAL if ID is not a valid name. If
 * the output is new, the pool creates the folder and reads the index. Logs that begin meanwhile
 * wait. If the disk fails, kxfs logs the error and retries every second.
 */
struct output_job *output_job_open(struct output *o, const char *id);
/*
 * Begin the log KEY of J. After a restart of kxfs, call this again as soon as kxfs knows that the
 * log exists. Return 0, or -EINVAL if KEY or PREFIX is invalid.
 *
 * The merged log has PREFIX, such as "trainer/0 ", before each line of this log. If PREFIX is NULL,
 * the merged log does not contain this log, and a log_writer must write it. ANEW is true if the log
 * was empty before this run of kxfs. If the log has ended, it begins again, and kxfs adds only its
 * missing output to the merged log.
 */
int output_log_begin(struct output_job *j, const char *key, const char *prefix, bool anew);
/* Call this when a helper has written more of the log KEY, and of its table of lines. */
void output_log_grown(struct output_job *j, const char *key);
/*
 * EXPECTED: earlier output of the log KEY is about to arrive. The merged log then delays all other
 * logs until a call without EXPECTED, until the log KEY ends, or for some seconds.
 */
void output_log_expect(struct output_job *j, const char *key, bool expected);
/* Record whether the cluster denies access to the log. If all are denied, so is the merged log. */
void output_log_deny(struct output_job *j, const char *key, bool denied);
/*
 * Call this when the log KEY is complete. Readers then see its end. When the merged log on disk has
 * all of it, or can't be written, kxfs calls FN(DATA), but not within this call. FN may be NULL.
 */
void output_log_end(struct output_job *j, const char *key, loop_fn fn, void *data);
/*
 * Call this when all logs of J have ended, and no more will begin. The merged log ends when it has
 * all of their lines.
 */
void output_job_end(struct output_job *j);
/* Undo output_job_end: logs may begin again. */
void output_job_resume(struct output_job *j);
/*
 * True if an earlier run of kxfs has left the merged log of job ID incomplete. The caller must then
 * begin and end all logs of the job again, and end the job. Call this on the pool.
 */
bool output_is_unmerged(const struct output *o, const char *id);
/*
 * True if kxfs is not adding output to the merged log of job ID. Also true after 600 failed
 * retries: a full disk must not prevent the archiving of a job whose removal would free the disk.
 */
bool output_is_merged(const struct output *o, const char *id);
/*
 * Close J, which may be NULL. Its readers can continue. kxfs does not call the functions passed to
 * output_log_end any more.
 */
void output_job_close(struct output_job *j);
/*
 * Remove the directory of job ID on the pool, then call DONE with 0 or a negative errno. If DONE is
 * NULL, log an error. The job must be closed. Readers that have opened a log can continue.
 */
void output_job_remove(struct output *o, const char *id, void (*done)(void *data, int err),
		       void *data);

/* --- any thread --- */

/*
 * Open a log. Return 0 or a negative errno. If its job is not open (output_job_open), the log has
 * the contents of its files, and then ends.
 */
int output_log(struct output *o, const char *id, const char *key, enum log_form form,
	       struct log **ret);
/* Like output_log, but do not fetch more output. */
int output_log_kept(struct output *o, const char *id, const char *key, enum log_form form,
		    struct log **ret);
int output_log_stat(struct output *o, const char *id, const char *key, enum log_form form,
		    struct log_stat *ret);
/* True if a process has the merged log of job ID open. */
bool output_is_read(struct output *o, const char *id);
/* Return the size of all output on disk, in bytes. */
uint64_t output_bytes(struct output *o);
/* Get the number of bytes and complete lines that this mount has added to merged logs. */
void output_captured(struct output *o, uint64_t *ret_bytes, uint64_t *ret_lines);
