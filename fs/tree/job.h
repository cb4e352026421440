/* SPDX-License-Identifier: MIT */
/* The files and directories of a job and its replicas. */
#pragma once

#include "fs/tree/job_ref.h"
#include "fs/vfs/stream.h"
#include "fs/vfs/text.h"

/* defined in job_text.c */
extern const struct text_class job_state_text, job_status_text, job_json_text, job_why_text;
extern const struct text_class job_usage_text, job_events_text;
extern const struct text_class job_manifest_text, job_appdef_text, job_ctl_text;

/* Return a new reference to the merged log of the job's directory DIR (log_file.c). */
struct node *log_node_merged(struct fs *fs, struct node *dir, enum log_form form);
/*
 * Return a new reference to the node NAME in DIR for the log KEY. FIRST is true for a replica's
 * first log. KEY is NULL if that log has not begun: `log` can be opened before the program runs.
 */
struct node *log_node_get(struct fs *fs, struct node *dir, const char *name, const char *key,
			  bool first, enum log_form form);

/* Return a new reference to JOB's directory in DIR, which is history/ or jobs/ (job.c). */
struct node *job_node(struct fs *fs, struct node *dir, const struct spec_job *job, bool history);

/*
 * The blocking files `wait` (only of a job) and `follow` (job_live.c). They are in the directory
 * .live/, which is not listed, so that `cat *`, grep -r, cp -r and tar over a job don't block. The
 * directory live/ lists links to these files. A job's directory also has links to them that are not
 * listed, such as jobs/ID/wait.
 */
extern const struct node_class live_link_class;
extern const struct node_dir_class live_files_class; /* the directory .live/ */
extern const struct node_dir_class live_links_class; /* the directory live/ */
/* True if S is an open `wait` of JOB. I/O thread. */
bool wait_is_of(const struct stream *s, const struct spec_job *job);

/*
 * The file `follow` of a replica or a job. It begins with all output so far. A read at the end
 * blocks until there is more output, or until there can be no more (follow.c).
 */
extern const struct node_class follow_class;
/* True if S is an open `follow` of JOB or of one of its replicas. I/O thread. */
bool follow_is_of(const struct stream *s, const struct spec_job *job);
/* True if S is an open `follow` that is reading LOG. I/O thread. */
bool follow_reads(const struct stream *s, const struct log *log);
