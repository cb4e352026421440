/* SPDX-License-Identifier: MIT */
/* The kinds of files that jobs and replicas share, and their directories. */
#pragma once

#include "fs/tree/job_ref.h"
#include "fs/vfs/stream.h"
#include "fs/vfs/text.h"

/* The texts of a job's files (job_text.c). */
extern const struct text_class job_state_text, job_status_text, job_json_text, job_why_text;
extern const struct text_class job_usage_text, job_events_text;
extern const struct text_class job_manifest_text, job_appdef_text, job_ctl_text;

/* Return the node of the merged log in DIR, a job's directory; a new reference (log_file.c). */
struct node *log_node_merged(struct fs *fs, struct node *dir, enum log_form form);
/*
 * Return the node NAME in DIR for the log KEY. FIRST is true if KEY is the replica's first log of
 * this name. KEY is NULL if that log has not begun: a reader can open `log` before the program
 * runs, and then gets the output.
 */
struct node *log_node_get(struct fs *fs, struct node *dir, const char *name, const char *key,
			  bool first, enum log_form form);

/*
 * Return the directory of JOB in DIR, which is jobs/ or (HISTORY) history/; a new reference
 * (job.c).
 */
struct node *job_node(struct fs *fs, struct node *dir, const struct spec_job *job, bool history);

/*
 * The blocking files of a job and of a replica, wait and follow, are in a directory .live/, which
 * can be looked up but is not listed. So `cat *`, grep -r, cp -r and tar over a job don't block.
 * The directory live/, which is listed, has links to them. Links beside the other files, such as
 * jobs/ID/wait, can be looked up but are not listed. (job_live.c)
 */
/* A link to the blocking file of the same name in .live/. */
extern const struct node_class live_link_class;
extern const struct node_dir_class live_files_class; /* .live/ of a job or a replica */
extern const struct node_dir_class live_links_class; /* live/ */
/* True if S is a wait for the end of JOB. I/O thread. */
bool wait_is_of(const struct stream *s, const struct spec_job *job);

/*
 * The file `follow` of a replica and of a job: the output from its start, and all later output,
 * until no more can follow. It is a stream that reads its log on the pool (follow.c).
 */
extern const struct node_class follow_class;
/*
 * follow_is_of: true if S is a follow that waits for a change of JOB. follow_reads: true if it
 * reads LOG. I/O thread.
 */
bool follow_is_of(const struct stream *s, const struct spec_job *job);
bool follow_reads(const struct stream *s, const struct log *log);
