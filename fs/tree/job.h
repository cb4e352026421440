/* SPDX-License-Identifier: MIT */
/* Declares the files in the directories of jobs and replicas, and these directories themselves. */
#pragma once

#include "fs/tree/job_ref.h"
#include "fs/vfs/stream.h"
#include "fs/vfs/text.h"

/* The texts of a job's files (job_text.c). */
extern const struct text_class job_state_text, job_status_text, job_json_text, job_why_text;
extern const struct text_class job_usage_text, job_events_text;
extern const struct text_class job_manifest_text, job_appdef_text, job_ctl_text;

/* Return a new reference to the node of the merged log in the job's directory DIR (log_file.c). */
struct node *log_node_merged(struct fs *fs, struct node *dir, enum log_form form);
/*
 * Return a new reference to the node NAME in DIR for the log KEY. FIRST is true if NAME shows the
 * replica's first log. KEY is NULL if that log has not begun. A reader can open `log` even before
 * the program runs, and gets the output later.
 */
struct node *log_node_get(struct fs *fs, struct node *dir, const char *name, const char *key,
			  bool first, enum log_form form);

/*
 * Return a new reference to the node of JOB's directory in DIR. DIR is history/ if HISTORY is true,
 * otherwise jobs/. (job.c)
 */
struct node *job_node(struct fs *fs, struct node *dir, const struct spec_job *job, bool history);

/*
 * The blocking files `wait` and `follow`. A job has both; a replica has only `follow`. These files
 * are in the directory .live/, which can be looked up but is not listed. So `cat *`, grep -r, cp -r
 * and tar over a job don't block.
 *
 * Links lead to these files. The links in the directory live/ are listed. The links beside the
 * other files, such as jobs/ID/wait, can only be looked up. (job_live.c)
 */
/* A link to the file of the same name in .live/. */
extern const struct node_class live_link_class;
extern const struct node_dir_class live_files_class; /* the directory .live/ */
extern const struct node_dir_class live_links_class; /* the directory live/ */
/* True if S is an open `wait` of JOB. I/O thread. */
bool wait_is_of(const struct stream *s, const struct spec_job *job);

/*
 * The file `follow` of a replica or a job. It begins with all output so far. A read at the end
 * blocks until there is more output, or until there can be no more. The file is a stream that reads
 * its log on the pool (follow.c).
 */
extern const struct node_class follow_class;
/*
 * follow_is_of: true if S is an open `follow` of JOB or of one of its replicas. follow_reads: true
 * if S is an open `follow` that is reading LOG. I/O thread.
 */
bool follow_is_of(const struct stream *s, const struct spec_job *job);
bool follow_reads(const struct stream *s, const struct log *log);
