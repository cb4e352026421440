/* SPDX-License-Identifier: MIT */
/*
 * The texts of a job's files: state, status, status.json, why, usage, and a replica's state, status
 * and usage. They depend only on the snapshot, so two readers of one snapshot read the same bytes.
 * Each text is malloc'ed and NUL-terminated; *RET_LEN is its length.
 */
#pragma once

#include "spec/job/job.h"

/* "RUNNING\n"; static. */
const char *spec_status_state(enum spec_state state);

/*
 * Print status and status.json. For a local job, status (also a replica's) lacks the keys that only
 * a cluster fills; status.json has all keys, and usage too.
 */
void spec_status_yaml(const struct spec_job *job, char **ret, size_t *ret_len);
void spec_status_json(const struct spec_job *job, char **ret, size_t *ret_len);
/* Print status.json on one line. */
void spec_status_json_line(const struct spec_job *job, char **ret, size_t *ret_len);
/*
 * Print why: one short paragraph and a newline, or nothing. It names only actions of ALLOWED, as
 * spec_status_ctl does.
 */
void spec_status_why(const struct spec_job *job, unsigned allowed, char **ret, size_t *ret_len);
/*
 * Return the text of `why` about the first waiting replica, malloc'ed, without a newline; "" if no
 * replica waits.
 */
char *spec_status_obstacle(const struct spec_job *job);
void spec_status_replica(const struct spec_job *job, const struct spec_replica *r, char **ret,
			 size_t *ret_len);
/*
 * Print the file usage of a job, and of a replica: it always has all keys; an unknown value is
 * null.
 */
void spec_status_usage(const struct spec_job *job, char **ret, size_t *ret_len);
void spec_status_replica_usage(const struct spec_job *job, const struct spec_replica *r, char **ret,
			       size_t *ret_len);
/* Print the words that ctl accepts now, one a line: those of ALLOWED, a set of enum spec_action. */
void spec_status_ctl(const struct spec_job *job, unsigned allowed, char **ret, size_t *ret_len);

/*
 * Print a line of `changes`: TIME ID STATE REASON, tab-separated, newline at the end; tabs,
 * newlines and backslashes in a field are escaped as \t, \n, \\. The reason of a job that has left
 * jobs/ is "Removed"; if it was deleted for good (GONE), JOB is its last snapshot.
 */
char *spec_status_change(const struct spec_job *job, bool gone, int64_t time);

/*
 * --- last_words.c: the last words of a failed program: the error in a file that TorchElastic
 * wrote, or the last printed lines. The input is untrusted. Each function that returns text returns
 * at most five lines of limited length, without a newline after the last, clean for a terminal;
 * malloc'ed. ---
 */

/*
 * Return the last lines of the N bytes at TEXT; "" if they are blank. PART: TEXT is only the end of
 * a longer text.
 */
char *spec_last_lines(const char *text, size_t n, bool part);
/*
 * Return the words of an error file of TorchElastic: the end of the stack trace, which ends with
 * the error; or, if the error itself is long, its first lines. NULL if it is not such a file.
 */
char *spec_last_error(const char *text, size_t n);
/* Return the log whose end has the last words of JOB, which has FAILED; or NULL. */
const struct spec_log *spec_last_log(const struct spec_job *job);

/*
 * --- snapshot.c: a snapshot of a job as text for the state directory, and back: thus a job with
 * captured output is known after the cluster has deleted it ---
 */

/* Return the text of JOB: JSON with a newline at its end; malloc'ed. */
char *spec_snapshot_text(const struct spec_job *job);

/*
 * Parse TEXT, which may be anything (the disk is untrusted). Return 0 and a packed job with one
 * reference, to be published; -ENOTSUP: another version of kxfs wrote it; -EINVAL: it is damaged.
 */
int spec_snapshot_parse(const char *text, size_t len, struct spec_job **ret);
