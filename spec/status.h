/* SPDX-License-Identifier: MIT */
/*
 * The texts of a job's files: state, status, status.json, why, and a replica's state and status.
 * They depend on the snapshot alone, so two readers of one snapshot read the same bytes.
 * Each returns 0 and a malloc'ed, NUL-terminated text with its length, or -ENOMEM.
 */
#ifndef KXFS_SPEC_STATUS_H
#define KXFS_SPEC_STATUS_H

#include "spec/job.h"

/* "RUNNING\n": static, no memory needed. */
const char *spec_status_state(enum spec_state state);

int spec_status_yaml(const struct spec_job *job, char **ret, size_t *ret_len);
int spec_status_json(const struct spec_job *job, char **ret, size_t *ret_len);
/* One short paragraph and a newline; empty when there is nothing to say. */
int spec_status_why(const struct spec_job *job, char **ret, size_t *ret_len);
int spec_status_replica(const struct spec_job *job, const struct spec_replica *r, char **ret,
			size_t *ret_len);
/* The words that ctl would take now, one a line. */
int spec_status_ctl(const struct spec_job *job, char **ret, size_t *ret_len);

/*
 * A line of `changes`: TIME ID STATE REASON, tab-separated, newline at the end; tabs, newlines
 * and backslashes in a field are escaped as \t, \n, \\. The reason of a job that has left jobs/
 * is "Removed".
 */
char *spec_status_change(const struct spec_job *job, int64_t time);

/* "2026-11-21T09:08:40Z" of a time in ns (seconds are cut), "" for 0. RET has room for 32 bytes. */
void spec_time_text(int64_t ns, char ret[32]);

#endif
