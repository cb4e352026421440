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
 * Return the words of `why` about the first waiting replica, malloc'ed, without a newline; "" if
 * none waits.
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
