/* SPDX-License-Identifier: MIT */
/*
 * Output on disk, below the state directory, one directory a job:
 *
 *	STATE/jobs/ID/			0700
 *		job.json		the implementation's record of the job (its own business)
 *		app.yaml		the file as it was submitted
 *		logs/KEY		bytes of one container in one attempt, 0600
 *		lines/KEY		where its lines begin, and when they were printed (lines.h)
 *		merged			index of the merged log: references into logs/, never copies
 *		merged.keys		names of the logs that it refers to, and their prefixes
 *		unmerged		empty: `merged` may lack something of the logs
 *
 * Each log has one writer, which also writes its table, before the log's bytes. For a local job that is the helper
 * process, and output_log_grown is called afterwards; for a job in a cluster it is a log_writer (writer.h). This folder
 * only reads what a helper writes.
 *
 * The merged index has the lines of fetched logs in the order of their times, as far as they come within about a second
 * of each other, and those of local logs in the order in which they were seen. It never changes once it is written.
 * Whoever opens it gets what is there without waiting for that second. Each line has the prefix "ROLE/K " before it; a
 * line ends with '\n', or with a '\r' that no '\n' follows, as TorchX prints them.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/output/log.h"

struct output;
struct output_job; /* the output of one job: its logs and its merged index */

/* EVENTS is copied. *RET_TEXT is malloc'ed if this fails. */
int output_new(struct loop *loop, const char *state_dir, const struct output_events *events,
	       struct output **ret, char **ret_text);
void output_free(struct output *o); /* to be called after loop_stop; NULL is allowed */

/*
 * For output that is fetched: whenever a log is opened, FETCH(DATA, id, key (NULL: merged), done, arg) is called on the
 * I/O thread. It begins the logs that are to be begun (output_log_begin), and calls DONE(ARG) on the I/O thread, once,
 * when the output that had been printed by then is on disk, or can't be had. Until then the log has not arrived. A log
 * that nobody has begun by then has ended. Set before the loop runs.
 */
typedef void (*output_fetch_fn)(void *data, const char *id, const char *key, loop_fn done,
				void *arg);
void output_set_fetch(struct output *o, output_fetch_fn fetch, void *data);

/* --- I/O thread --- */

/* Count the output that is on disk. */
void output_start(struct output *o);
/*
 * End: pieces that wait go into the merged logs, for some seconds at most; then whoever waits for a log to arrive is
 * called, and FN(DATA).
 */
void output_stop(struct output *o, loop_fn fn, void *data);

/*
 * The output of job ID, which is found or made. In the latter case its folder is made and its index is read on the
 * pool, and logs that are begun meanwhile wait for that. If the disk refuses something, a message says so and it is
 * tried again each second. NULL with errno: -EINVAL, ID can't be a name.
 */
struct output_job *output_job_open(struct output *o, const char *id);
/*
 * A log of the job begins, or becomes known after a restart of kxfs: KEY, and the prefix of its lines in the merged log
 * ("trainer/0 "); PREFIX NULL: a writer fetches it, and it is no part of the merged log. Its file is made on the pool
 * if it is not there. A log that has ended may begin and end again: what the merged log lacks of it is added, nothing
 * twice. ANEW: no byte of it was there before this run of kxfs. -EINVAL: KEY or PREFIX can't be.
 */
int output_log_begin(struct output_job *j, const char *key, const char *prefix, bool anew);
/* Another process, which writes the log KEY and its table, has written more. */
void output_log_grown(struct output_job *j, const char *key);
/*
 * EXPECTED: the output that the program of log KEY has printed so far is on its way. So the merged log holds back the
 * lines of all other logs until this is called without EXPECTED, or the log has ended, or some seconds have passed.
 */
void output_log_expect(struct output_job *j, const char *key, bool expected);
/*
 * The user has no right to read the log KEY; or (not DENIED) has it. The merged log is denied while all of its logs
 * that have begun are.
 */
void output_log_deny(struct output_job *j, const char *key, bool denied);
/*
 * No byte of log KEY will be written any more. The rest of it is taken into the merged log; when that is done, or the
 * disk refuses it, FN(DATA) (FN may be NULL) is called, but not from here. Readers see the log end as soon as all of it
 * can be read.
 */
void output_log_end(struct output_job *j, const char *key, loop_fn fn, void *data);
/* No log of J will begin any more, and all have ended: the merged log ends when all of them are in it. */
void output_job_end(struct output_job *j);
/* Undo output_job_end: logs may begin again. */
void output_job_resume(struct output_job *j);
/*
 * Runs on the pool: did kxfs end before the merged log of job ID had everything in its logs? Then the logs have to be
 * begun and ended once more, and the job has to be ended.
 */
bool output_is_unmerged(const struct output *o, const char *id);
/*
 * Forget J in memory (its files stay, and so do its readers). No function of output_log_end is called any more. NULL is
 * allowed.
 */
void output_job_close(struct output_job *j);
/*
 * Remove the directory of job ID, which is not open, on the pool; readers that have a log open read on. DONE is told 0,
 * or a negative errno if not all of it could be removed. DONE NULL: a message says so.
 */
void output_job_remove(struct output *o, const char *id, void (*done)(void *data, int err),
		       void *data);
/* Like output_job_remove, but the directory stays as that of job TO; -ENOTEMPTY: there is one. */
void output_job_move(struct output *o, const char *id, const char *to,
		     void (*done)(void *data, int err), void *data);
/* Like output_job_remove, for the output alone: all else in the directory stays. */
void output_logs_remove(struct output *o, const char *id, void (*done)(void *data, int err),
			void *data);

/* --- any thread --- */

/*
 * Open a log. If its job is not open (output_job_open), the log is what its files hold, and has ended; there may be 10
 * 000 such jobs, and they cost nothing until somebody opens a log.
 */
int output_log(struct output *o, const char *id, const char *key, enum log_form form,
	       struct log **ret);
/* Like output_log, as its files have it now: nothing is fetched. */
int output_log_kept(struct output *o, const char *id, const char *key, struct log **ret);
/*
 * Open the merged log of a job whose folder ID still has the output of another job, which will be moved away
 * (log_is_stale).
 */
int output_log_await(struct output *o, const char *id, enum log_form form, struct log **ret);
int output_log_stat(struct output *o, const char *id, const char *key, enum log_form form,
		    struct log_stat *ret);
/* Bytes of all output on disk, as last counted; smaller as soon as output_job_remove is done. */
uint64_t output_bytes(struct output *o);
/* How much this mount has taken into the merged logs: bytes of output, and lines that have ended. */
void output_captured(struct output *o, uint64_t *ret_bytes, uint64_t *ret_lines);
