/* SPDX-License-Identifier: MIT */
/* The kinds of files that jobs and replicas have in common: job.c and replica.c put them together. */
#ifndef KXFS_FS_JOB_H
#define KXFS_FS_JOB_H

#include "fs/jobs.h"
#include "fs/text.h"

/* A name that is a link to the blocking file of the same name in .live/. */
extern const struct node_class live_link_class;

/* A log: the replica's own, of an attempt, of a container, or the merged one (log_file.c). */
struct log_node {
	struct node node;
	bool merged;
	char *key; /* NULL: merged; or the replica's first attempt, which has not begun */
};
/* The node of the merged log in DIR. 0 or -ENOMEM. */
int log_node_merged(struct fs *fs, struct node *dir, struct node **ret);
/*
 * The node NAME in DIR for the log KEY. FIRST: it is the first that the replica has under this name; KEY
 * NULL: it will be. So a reader who opens `log` before the program runs reads on when it does. 0 or
 * -ENOMEM.
 */
int log_node_get(struct fs *fs, struct node *dir, const char *name, const char *key, bool first,
		 struct node **ret);

/* getattr of a file of a job: times of the job, and the size of a rendered text. */
int job_text_getattr(struct fs *fs, struct node *node, struct stat *st);
/* Times only: mtime is the job's last change, ctime its creation. -ENOENT: it is gone. */
int job_getattr(struct fs *fs, struct node *node, struct stat *st);

/* What a job's files show (job_text.c, job_ctl.c). */
extern const struct text_class job_state_text, job_status_text, job_json_text, job_why_text;
extern const struct text_class job_events_text;
extern const struct text_class job_manifest_text, job_appdef_text, job_ctl_text;

extern const struct node_class job_live_class;	   /* ID/.live */
extern const struct node_class replica_live_class; /* ID/ROLE-K/.live */

#endif
