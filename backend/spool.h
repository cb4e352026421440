/* SPDX-License-Identifier: MIT */
/*
 * The spool: output on disk, below the state directory, one directory a job:
 *
 *	STATE/jobs/ID/			0700
 *		job.json		the implementation's record of the job (its own business)
 *		app.yaml		the file as it was submitted
 *		logs/KEY		bytes of one container in one attempt, 0600
 *		positions/KEY		how far that is, if it is fetched (spec/logline.h)
 *		times/KEY		of lines that the merged log may not have yet (times.h)
 *		merged			index of the merged log: references into logs/, never copies
 *		merged.keys		names of the logs that it refers to, and their prefixes
 *
 * Who writes logs/KEY: local jobs' relays (relay.c), by the descriptor of spool_log_begin; for Kubernetes
 * the follow streams through spool_write.h. The merged index is made by the I/O thread, and written on
 * the pool. It has lines in the order of their times, as far as they come within a second of each other, or in that
 * in which they were seen if they have none, and never changes once written. Who opens it gets what
 * is there, with no such wait. Each line is prefixed with "ROLE/K ", after every
 * '\n', and after every '\r' that no '\n' follows, as TorchX prints them.
 */
#ifndef KXFS_BACKEND_SPOOL_H
#define KXFS_BACKEND_SPOOL_H

#include "backend/backend.h"

struct spool;
struct spool_job; /* the spool's part of one job: its logs and its merged index */

int spool_new(struct loop *loop, const char *state_dir, const struct backend_events *events,
	      struct spool **ret, char **ret_text);
void spool_free(struct spool *spool); /* after loop_stop; NULL is allowed */

/*
 * For output that is fetched: whenever a log is opened, FETCH(DATA, id, key (NULL: merged), done, arg)
 * is called on the I/O thread. It begins what is to be begun (spool_log_begin), and calls DONE(ARG) on
 * the I/O thread, once: what had been printed by then is in the spool, or can't be had. Until then
 * the log is not settled. A log that nobody has begun by then has ended. Set before the loop runs.
 *
 * Jobs and logs of such a spool are opened on the pool (spool_open.c): spool_job_open and spool_log_begin come back
 * at once, and what the disk refuses is said and tried again each second. Its logs have no descriptor
 * (RET_FD is NULL), and are written through spool_write.h alone.
 */
typedef void (*spool_fetch_fn)(void *data, const char *id, const char *key, loop_fn done,
			       void *arg);
void spool_set_fetch(struct spool *spool, spool_fetch_fn fetch, void *data);

/* --- I/O thread --- */

/* Count what is there. */
void spool_start(struct spool *spool);
/* Nothing of it runs any more. Whoever waits for a log to settle is called. */
void spool_stop(struct spool *spool);

/* The spool's part of job ID: made (directories too) or found. NULL with errno. */
struct spool_job *spool_job_open(struct spool *spool, const char *id);
/* Is J's folder there? That of what is fetched is made after spool_job_open. I/O thread. */
bool spool_job_is_made(const struct spool_job *j);
/*
 * A log of the job begins (or, after a restart of kxfs, is known): KEY, and the prefix of its lines
 * in the merged log ("trainer/0 "). The file is made when it is not there. *RET_FD, if wanted, is a new
 * O_APPEND|O_CLOEXEC descriptor of it, owned by the caller.
 * Growth is watched (inotify) until spool_log_end. A log that has ended before (after a restart
 * of kxfs) may begin and end again: what the merged index lacks of it is added, nothing twice.
 */
int spool_log_begin(struct spool_job *j, const char *key, const char *prefix, int *ret_fd);
/*
 * What this log's program has printed so far is on its way (HOLD), so the merged log goes on with no other
 * log's lines until it has come (not HOLD), or the log has ended, or some seconds have passed.
 */
void spool_log_hold(struct spool_job *j, const char *key, bool hold);
/*
 * No byte will be written any more. The rest is read into the merged index; when that is done the log
 * counts as ended, and FN(DATA) (may be NULL) is called.
 */
void spool_log_end(struct spool_job *j, const char *key, loop_fn fn, void *data);
/* No log will begin any more, all have ended: the merged log counts as ended. */
void spool_job_end(struct spool_job *j);
/* The other way round, for a job that comes back to life. */
void spool_job_resume(struct spool_job *j);
/* Forget it in memory (files stay; readers keep theirs). */
void spool_job_close(struct spool_job *j);
/* Remove its directory, on the pool; readers that have it open read on. */
void spool_job_remove(struct spool *spool, const char *id, loop_fn done, void *data);
/* The same for the output alone: what else is in the directory stays. */
void spool_output_remove(struct spool *spool, const char *id, loop_fn done, void *data);

/* --- any thread --- */

/*
 * A log of a job that is not open (spool_job_open) is what its files hold, and has ended; there may
 * be 10 000 such jobs, and they cost nothing until somebody opens a log.
 */
int spool_log(struct spool *spool, const char *id, const char *key, struct log **ret);
int spool_log_stat(struct spool *spool, const char *id, const char *key, struct log_stat *ret);
/* STATE/jobs/ID/NAME: malloc'ed; NULL: no memory. */
char *spool_path(struct spool *spool, const char *id, const char *name);
/* Bytes of all output on disk, as last counted; less at once when spool_job_remove is done. */
uint64_t spool_bytes(struct spool *spool);
/* What this mount has taken into the merged logs: bytes of output, and how many lines of them have ended. */
void spool_captured(struct spool *spool, uint64_t *ret_bytes, uint64_t *ret_lines);

#endif
