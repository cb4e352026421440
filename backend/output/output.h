/* SPDX-License-Identifier: MIT */
/*
 * The output of jobs on disk, in the state directory, with one directory for each job. In
 * backend/output/, ID is the job's key (spec_job_key):
 *
 *	STATE/output/ID/		0700
 *		logs/KEY		bytes of one container in one attempt, 0600
 *		lines/KEY		where its lines begin, and when they were printed (lines.h)
 *		merged			index of the merged log: references into logs/, never copies
 *		merged.keys		names of the logs in `merged`, and their prefixes
 *		unmerged		an empty file: `merged` may lack some output
 *
 * Each log has one writer. It also writes the log's table of lines, and always writes the table
 * before the bytes. For a job in a cluster, the writer is a log_writer (writer.h). For a local job,
 * it is the helper process: the daemon only reads the files, and output_log_grown must be called
 * after each write.
 *
 * The merged index sorts the lines of fetched logs by time, if they arrive within about a second of
 * each other. Lines of local logs are in the order in which kxfs has read them. Written records
 * never change. When a reader opens the merged log, kxfs merges the lines that have arrived without
 * waiting for the rest of the second. Each line has the prefix "ROLE/K "; a line ends with '\n', or
 * with a '\r' that is not followed by '\n', as TorchX prints lines.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/output/log.h"

struct output;
struct output_job; /* the output of one job: its logs and its merged index */

/*
 * Create the output of STATE_DIR. EVENTS is copied. Return 0, or a negative errno with *RET_TEXT,
 * malloc'ed.
 */
int output_new(struct loop *loop, const char *state_dir, const struct output_events *events,
	       struct output **ret, char **ret_text);
void output_free(struct output *o); /* Call this after loop_stop; NULL is allowed. */

/*
 * If output is fetched from a cluster, call this before the loop runs. kxfs then calls FETCH on the
 * I/O thread whenever a log is opened. KEY is NULL for the merged log. FETCH begins the required
 * logs (output_log_begin). FETCH must call DONE(ARG) once on the I/O thread, when all output that
 * was printed before the call of FETCH is on disk, or is not available. Until then, log_has_arrived
 * is false. If a log has not begun when DONE is called, that log has ended.
 */
typedef void (*output_fetch_fn)(void *data, const char *id, const char *key, loop_fn done,
				void *arg);
void output_set_fetch(struct output *o, output_fetch_fn fetch, void *data);

/* --- I/O thread --- */

/* Start to count the bytes of output on disk. */
void output_start(struct output *o);
/*
 * Stop the output. Write waiting chunks into the merged logs, for some seconds at most. Then call
 * the functions that were passed to log_when_arrived and still wait, and call FN(DATA).
 */
void output_stop(struct output *o, loop_fn fn, void *data);

/*
 * Return the output of job ID, and create it if needed. For new output, the pool creates the folder
 * and reads the index. Logs that begin meanwhile wait until this is done. If this fails, kxfs logs
 * the error and retries every second. If ID is not a valid name, return NULL and set errno to
 * EINVAL.
 */
struct output_job *output_job_open(struct output *o, const char *id);
/*
 * Begin the log KEY of J. After a restart of kxfs, call this again as soon as the log is known.
 * Return 0, or -EINVAL if KEY or PREFIX is invalid.
 *
 * PREFIX is the text before each line of this log in the merged log, such as "trainer/0 ". If
 * PREFIX is NULL, the merged log does not contain this log, and a log_writer must write this log.
 * The pool creates the log's file if needed. ANEW is true if the log was empty before this run of
 * kxfs. A log that has ended begins again; kxfs then adds only missing output to the merged log.
 */
int output_log_begin(struct output_job *j, const char *key, const char *prefix, bool anew);
/* Call this when another process has written more of the log KEY, and of its table of lines. */
void output_log_grown(struct output_job *j, const char *key);
/*
 * If EXPECTED, announce that earlier output of the log KEY is about to arrive. The merged log then
 * delays the lines of all other logs until this function is called without EXPECTED, the log KEY
 * ends, or some seconds have passed.
 */
void output_log_expect(struct output_job *j, const char *key, bool expected);
/*
 * Record whether the cluster denies the user access to the log KEY. The merged log is denied if all
 * of its logs that have begun are denied.
 */
void output_log_deny(struct output_job *j, const char *key, bool denied);
/*
 * Call this when the log KEY is complete. kxfs then adds the rest of the log to the merged log.
 * When the rest is on disk, or can't be written, kxfs calls FN(DATA), but never within this call.
 * FN may be NULL. Readers see the end of the log as soon as all of the log can be read.
 */
void output_log_end(struct output_job *j, const char *key, loop_fn fn, void *data);
/*
 * Call this when all logs of J have ended, and no more logs will begin. The merged log ends when it
 * has all lines of the logs.
 */
void output_job_end(struct output_job *j);
/* Undo output_job_end: logs may begin again. */
void output_job_resume(struct output_job *j);
/*
 * True if an earlier kxfs ended before the merged log of job ID had all lines of its logs. The
 * caller must then begin and end all logs of the job again, and end the job. Call this on the pool.
 */
bool output_is_unmerged(const struct output *o, const char *id);
/*
 * True if kxfs is not adding output to the merged log of job ID: the job is not open, or the merged
 * log has all output of the logs that have begun. Also true after 600 retries without a write of
 * the index: otherwise a full disk could prevent the archive of the job, and thus the removal that
 * frees the disk.
 */
bool output_is_merged(const struct output *o, const char *id);
/*
 * Close J. Its files remain, and its readers can continue. Functions passed to output_log_end are
 * not called any more. J may be NULL.
 */
void output_job_close(struct output_job *j);
/*
 * Remove the directory of job ID on the pool. Then call DONE with 0, or with a negative errno if
 * the directory could not be removed. If DONE is NULL, log the error instead. The job must be
 * closed, but readers that have opened a log can continue.
 */
void output_job_remove(struct output *o, const char *id, void (*done)(void *data, int err),
		       void *data);

/* --- any thread --- */

/*
 * Open a log. If its job is not open (output_job_open), the log has the contents of its files, and
 * has ended. A job that is not open uses no memory until one of its logs is opened, because there
 * may be 10 000 such jobs.
 */
int output_log(struct output *o, const char *id, const char *key, enum log_form form,
	       struct log **ret);
/* Like output_log, but do not fetch: the log has the contents that its files have now. */
int output_log_kept(struct output *o, const char *id, const char *key, enum log_form form,
		    struct log **ret);
int output_log_stat(struct output *o, const char *id, const char *key, enum log_form form,
		    struct log_stat *ret);
/* True if a process has the merged log of job ID open. */
bool output_is_read(struct output *o, const char *id);
/* Return the number of bytes of all output on disk. It decreases when output_job_remove is done. */
uint64_t output_bytes(struct output *o);
/*
 * Get the amount of output that this mount has added to the merged logs: bytes, and complete lines.
 */
void output_captured(struct output *o, uint64_t *ret_bytes, uint64_t *ret_lines);
