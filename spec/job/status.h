/* SPDX-License-Identifier: MIT */
/*
 * The texts of a job's files: state, status, status.json, why, usage, and a replica's state, status
 * and usage. They depend only on the snapshot, so two readers of the same snapshot get the same
 * bytes. Each text is malloc'ed and NUL-terminated; *RET_LEN is its length.
 */
#pragma once

#include "spec/job/job.h"

/* Return the text of the file state, such as "RUNNING\n". The text is static. */
const char *spec_status_state(enum spec_state state);

/*
 * Make the texts of status and status.json. status.json has all keys and the usage. status lacks
 * the usage, and for a local job also the keys that have values only in a cluster.
 */
void spec_status_yaml(const struct spec_job *job, char **ret, size_t *ret_len);
void spec_status_json(const struct spec_job *job, char **ret, size_t *ret_len);
/* Make the text of status.json, as one line. */
void spec_status_json_line(const struct spec_job *job, char **ret, size_t *ret_len);
/*
 * Make the text of why: a short paragraph and a newline, or nothing. ALLOWED is a set of actions,
 * as in spec_status_ctl; the text names no other actions.
 */
void spec_status_why(const struct spec_job *job, unsigned allowed, char **ret, size_t *ret_len);
/*
 * Return the part of `why` about the first replica that waits, malloc'ed, without a newline. "" if
 * no replica waits.
 */
char *spec_status_obstacle(const struct spec_job *job);
void spec_status_replica(const struct spec_job *job, const struct spec_replica *r, char **ret,
			 size_t *ret_len);
/*
 * Make the texts of two files named usage: of a job, and of a replica. Each always has all keys. An
 * unknown value is null.
 */
void spec_status_usage(const struct spec_job *job, char **ret, size_t *ret_len);
void spec_status_replica_usage(const struct spec_job *job, const struct spec_replica *r, char **ret,
			       size_t *ret_len);
/*
 * Make the text of ctl: the actions that ctl accepts now, one on each line. ALLOWED is a bit set
 * (1u << enum spec_action); leave out all other actions.
 */
void spec_status_ctl(const struct spec_job *job, unsigned allowed, char **ret, size_t *ret_len);

/*
 * Return a line of `changes`, with a newline: TIME, ID, STATE and REASON, separated by tabs. Tabs,
 * newlines and backslashes in a field are escaped as \t, \n and \\. The reason of a job that has
 * left jobs/ is "Removed". GONE is true if the job was deleted for good; JOB is then its last
 * snapshot.
 */
char *spec_status_change(const struct spec_job *job, bool gone, int64_t time);

/*
 * --- last_words.c: the last words of a failed program ---
 *
 * They are the error in a file that TorchElastic wrote, or the last printed lines. The input is
 * untrusted. A returned text has at most five lines of limited length, no newline at its end, and
 * no character that controls a terminal. It is malloc'ed.
 */

/*
 * Return the last lines of the N bytes at TEXT; "" if all lines are blank. PART is true if TEXT is
 * only the end of a longer text.
 */
char *spec_last_lines(const char *text, size_t n, bool part);
/*
 * Return the error in TEXT, an error file of TorchElastic. Return the end of the stack trace, which
 * ends with the error. If the error itself is long, return its first lines instead. Return NULL if
 * TEXT is not such a file.
 */
char *spec_last_error(const char *text, size_t n);
/* JOB has failed or is failing. Return the log that ends with its last words, or NULL. */
const struct spec_log *spec_last_log(const struct spec_job *job);

/*
 * --- snapshot.c: snapshots in the state directory ---
 *
 * If the cluster has deleted a job whose output was captured, kxfs shows the job from such a
 * snapshot.
 */

/* Return JOB as JSON text, with a newline at its end; malloc'ed. */
char *spec_snapshot_text(const struct spec_job *job);

/*
 * Parse TEXT. TEXT may contain anything, since the disk is untrusted. Return 0 and a packed job
 * with one reference, to be published. Return -ENOTSUP if another version of kxfs wrote TEXT, or
 * -EINVAL if TEXT is damaged.
 */
int spec_snapshot_parse(const char *text, size_t len, struct spec_job **ret);
