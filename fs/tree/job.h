/* SPDX-License-Identifier: MIT */
/* The kinds of files that jobs and replicas share, and their directories. */
#pragma once

#include "fs/tree/job_ref.h"
#include "fs/vfs/text.h"

/* The texts of a job's files (job_text.c, job_ctl.c). */
extern const struct text_class job_state_text, job_status_text, job_json_text, job_why_text;
extern const struct text_class job_usage_text, job_events_text;
extern const struct text_class job_manifest_text, job_appdef_text, job_ctl_text;

/* Return the node of the merged log in DIR, a job's directory; a new reference (log_file.c). */
struct node *log_node_merged(struct fs *fs, struct node *dir, enum log_form form);
/*
 * Return the node NAME in DIR for the log KEY. FIRST: the log is the replica's first under this
 * name. KEY NULL: that log has not begun; a reader who opens `log` before the program runs then
 * continues when it does.
 */
struct node *log_node_get(struct fs *fs, struct node *dir, const char *name, const char *key,
			  bool first, enum log_form form);

/* Return the directory of the replica NAME in that of its job; a new reference (replica.c). */
struct node *replica_node(struct fs *fs, struct node *job_dir, const char *name);
/*
 * Return the directory of JOB in DIR, which is jobs/ or (HISTORY) history/; a new reference
 * (job.c).
 */
struct node *job_node(struct fs *fs, struct node *dir, const struct spec_job *job, bool history);
