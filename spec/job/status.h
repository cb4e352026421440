/* SPDX-License-Identifier: MIT */
/*
 * The texts of the files of a job and of its replicas. They depend only on the snapshot. Each text
 * is malloc'ed and NUL-terminated; *RET_LEN is its length.
 */
#pragma once

#include "spec/job/job.h"

/* Return the text of state, such as "RUNNING\n" (static). */
const char *spec_status_state(enum spec_state state);

/*
 * Unlike status.json, status lacks the usage. For a local job, it also lacks keys without a value
 * that only have a meaning in clusters.
 */
void spec_status_yaml(const struct spec_job *job, char **ret, size_t *ret_len);
void spec_status_json(const struct spec_job *job, char **ret, size_t *ret_len);
/* Make the text of status.json, as one line. */
void spec_status_json_line(const struct spec_job *job, char **ret, size_t *ret_len);
/*
 * Make the text of why: a short paragraph and a newline; "" if there is nothing to explain. The
 * text suggests only actions in ALLOWED, a bit set as in spec_status_ctl.
 */
void spec_status_why(const struct spec_job *job, unsigned allowed, char **ret, size_t *ret_len);
/*
 * Return the sentences of `why` about the first replica that waits, without a newline; "" if no
 * replica waits.
 */
char *spec_status_obstacle(const struct spec_job *job);
void spec_status_replica(const struct spec_job *job, const struct spec_replica *r, char **ret,
			 size_t *ret_len);
/* The text has all keys; an unknown value is null. */
void spec_status_usage(const struct spec_job *job, char **ret, size_t *ret_len);
void spec_status_replica_usage(const struct spec_job *job, const struct spec_replica *r, char **ret,
			       size_t *ret_len);
/*
 * Make the text of ctl: the actions that JOB accepts now, and that are in the bit set ALLOWED (1u
 * << enum spec_action).
 */
void spec_status_ctl(const struct spec_job *job, unsigned allowed, char **ret, size_t *ret_len);

/*
 * Return a line of `changes`: TIME, ID, STATE and REASON, separated by tabs, and a newline. Fields
 * are escaped. GONE is true if the job was removed and is not in history/; JOB is then its last
 * snapshot. If the job is GONE or in history/, the REASON is "Removed". If the job was removed
 * before its end, the STATE is "CANCELLED".
 */
char *spec_status_change(const struct spec_job *job, bool gone, int64_t time);

/*
 * --- last_words.c: the last words of a failed program ---
 *
 * Last words are the error in TorchElastic's error file, or the last printed lines. The input is
 * untrusted. A returned text is malloc'ed. It has at most five lines of limited length, no newline
 * at its end, and no character that controls a terminal.
 */

/*
 * Return the last lines of TEXT; "" if all lines are blank. PART is true if TEXT is only the end of
 * a longer text.
 */
char *spec_last_lines(const char *text, size_t n, bool part);
/*
 * TEXT is an error file of TorchElastic. Return the last lines of its stack trace, which usually
 * end with the error message. If the message is long, or not at the end of the stack trace, return
 * the first lines of the message instead. Return NULL if TEXT is not such a file.
 */
char *spec_last_error(const char *text, size_t n);
/* Return the log whose last lines are the last words of JOB; NULL if no replica has failed. */
const struct spec_log *spec_last_log(const struct spec_job *job);

/* --- snapshot.c: snapshots on disk --- */

/* Return JOB as JSON text, with a newline at its end; malloc'ed. */
char *spec_snapshot_text(const struct spec_job *job);

/*
 * Parse TEXT, which is untrusted. Return 0 and a packed job with one reference; -ENOTSUP if another
 * version of kxfs wrote TEXT; -EINVAL if TEXT is damaged.
 */
int spec_snapshot_parse(const char *text, size_t len, struct spec_job **ret);
