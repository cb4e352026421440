/* SPDX-License-Identifier: MIT */
/*
 * Output on disk, below the state directory, with one directory for each job. In this folder of the
 * source, ID is the job's key (spec_job_key):
 *
 *	STATE/output/ID/		0700
 *		logs/KEY		bytes of one container in one attempt, 0600
 *		lines/KEY		where its lines begin, and when they were printed (lines.h)
 *		merged			index of the merged log: references into logs/, never copies
 *		merged.keys		names of the logs that it refers to, and their prefixes
 *		unmerged		empty: `merged` may lack something of the logs
 *
 * Each log has one writer, which also writes its table, before the log's bytes. For a local job
 * that is the helper process, and output_log_grown is called afterwards; for a job in a cluster it
 * is a log_writer (writer.h). This folder only reads a helper's files.
 *
 * The merged index has the lines of fetched logs in the order of their times, provided that they
 * arrive within about a second of each other. It has the lines of local logs in the order in which
 * kxfs saw them. Written records never change. A reader that opens the merged log gets its present
 * contents without waiting for that second. Each line has the prefix "ROLE/K "; a line ends with
 * '\n', or with a '\r' that is not followed by '\n', as TorchX prints them.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/output/log.h"

struct output;
struct output_job; /* the output of one job: its logs and its merged index */

/* EVENTS is copied. *RET_TEXT is malloc'ed on failure. */
int output_new(struct loop *loop, const char *state_dir, const struct output_events *events,
	       struct output **ret, char **ret_text);
void output_free(struct output *o); /* Call this after loop_stop; NULL is allowed. */

/*
 * For output that is fetched: whenever a log is opened, FETCH(DATA, id, key, done, arg) is called
 * on the I/O thread; KEY is NULL for the merged log. FETCH begins the required logs
 * (output_log_begin), and calls DONE(ARG) once on the I/O thread when all output printed before
 * this call is on disk, or unavailable. Until then log_has_arrived is false. If a log has not begun
 * by then, it has ended. Set FETCH before the loop runs.
 */
typedef void (*output_fetch_fn)(void *data, const char *id, const char *key, loop_fn done,
				void *arg);
void output_set_fetch(struct output *o, output_fetch_fn fetch, void *data);

/* --- I/O thread --- */

/* Count the output that is on disk. */
void output_start(struct output *o);
/*
 * Stop: write waiting chunks into the merged logs, for some seconds at most; then call the
 * functions that wait for a log to arrive, and FN(DATA).
 */
void output_stop(struct output *o, loop_fn fn, void *data);

/*
 * Return the output of job ID, creating it if needed. A new one's folder is made and its index is
 * read on the pool, and logs that begin meanwhile wait for that. If the disk refuses either, log
 * that and retry each second. NULL with errno: -EINVAL if ID is not valid as a name.
 */
struct output_job *output_job_open(struct output *o, const char *id);
/*
 * Begin a log of the job, also when it becomes known after a restart of kxfs: KEY, and the prefix
 * of its lines in the merged log ("trainer/0 "); If PREFIX is NULL, a writer fetches the log, and
 * the log is not part of the merged log. Its file is created on the pool if needed. A log that has
 * ended may begin and end again: only missing output is added to the merged log. ANEW: the log was
 * empty before this run of kxfs. Return 0, or -EINVAL if KEY or PREFIX is invalid.
 */
int output_log_begin(struct output_job *j, const char *key, const char *prefix, bool anew);
/* Another process, which writes the log KEY and its table, has written more. */
void output_log_grown(struct output_job *j, const char *key);
/*
 * EXPECTED: the output that the program of log KEY has printed so far is about to arrive. So the
 * merged log holds back the lines of all other logs until this is called without EXPECTED, or the
 * log has ended, or some seconds have passed.
 */
void output_log_expect(struct output_job *j, const char *key, bool expected);
/*
 * Record whether the cluster denies the user access to the log KEY. The merged log is denied while
 * all of its logs that have begun are.
 */
void output_log_deny(struct output_job *j, const char *key, bool denied);
/*
 * Log KEY is complete: add the rest of it to the merged log. When that is done, or the disk has
 * refused it, call FN(DATA), but not from within this call. FN may be NULL. Readers see the end of
 * the log as soon as all of it can be read.
 */
void output_log_end(struct output_job *j, const char *key, loop_fn fn, void *data);
/*
 * All logs of J have ended, and no more will begin: end the merged log when it has all of their
 * lines.
 */
void output_job_end(struct output_job *j);
/* Undo output_job_end: logs may begin again. */
void output_job_resume(struct output_job *j);
/*
 * Runs on the pool: true if kxfs ended before the merged log of job ID had all of its logs. Then
 * the logs must be begun and ended once more, and the job must be ended.
 */
bool output_is_unmerged(const struct output *o, const char *id);
/*
 * Free J; its files and its readers remain. Functions passed to output_log_end are not called any
 * more. NULL is allowed.
 */
void output_job_close(struct output_job *j);
/*
 * Remove the directory of job ID, which is not open, on the pool; readers of an open log can
 * continue. DONE gets 0, or a negative errno if some of it remains. If DONE is NULL, log the error.
 */
void output_job_remove(struct output *o, const char *id, void (*done)(void *data, int err),
		       void *data);

/* --- any thread --- */

/*
 * Open a log. If its job is not open (output_job_open), the log has the contents of its files, and
 * has ended. There may be 10 000 jobs that are not open; they use no memory until a log is opened.
 */
int output_log(struct output *o, const char *id, const char *key, enum log_form form,
	       struct log **ret);
/* Like output_log, but do not fetch: the log has the present contents of its files. */
int output_log_kept(struct output *o, const char *id, const char *key, enum log_form form,
		    struct log **ret);
int output_log_stat(struct output *o, const char *id, const char *key, enum log_form form,
		    struct log_stat *ret);
/*
 * Return the bytes of all output on disk, as last counted; smaller as soon as output_job_remove is
 * done.
 */
uint64_t output_bytes(struct output *o);
/*
 * Return the amount that this mount has added to the merged logs: bytes of output, and lines that
 * have ended.
 */
void output_captured(struct output *o, uint64_t *ret_bytes, uint64_t *ret_lines);
