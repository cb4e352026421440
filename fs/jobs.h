/* SPDX-License-Identifier: MIT */
/*
 * jobs/ and history/, and what a node below them belongs to. A job's directory node knows the job
 * by its uid, so it stays the same job whatever later has its id.
 */
#ifndef KXFS_FS_JOBS_H
#define KXFS_FS_JOBS_H

#include "fs/node.h"

struct job_node {
	struct node node;
	char *id;
	char *uid;
};

struct replica_node {
	struct node node;
	char *name; /* ROLE-K */
};

/* The current snapshot of the job that NODE lies below (or is); a new reference; NULL: gone. */
const struct spec_job *jobs_job_of(struct fs *fs, const struct node *node);
/* The job's directory that NODE lies below or is. */
const struct job_node *jobs_dir_of(const struct node *node);
/* The replica's directory that NODE lies below or is; NULL: it belongs to the job itself. */
const struct replica_node *jobs_replica_of(const struct node *node);

/*
 * unlink and rmdir below a job: accepted and without effect, so that recursive deleters come to the
 * rmdir of the job itself. -ENOENT where there is no such name.
 */
void jobs_unlink_member(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
void jobs_rmdir_member(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);

/*
 * May this mount end or control JOB (-o cancel)? 0, or -EPERM after saying why. Whether the caller may
 * write to the file or directory has been checked by the kernel.
 */
int jobs_may_cancel(struct fs *fs, const struct spec_job *job);

/* Release a struct job_node's own. */
void jobs_free(struct node *node);

extern const struct node_class jobs_class;    /* MOUNT/jobs */
extern const struct node_class history_class; /* MOUNT/history */
extern const struct node_class job_class;     /* jobs/ID and history/ID (job.c) */
extern const struct node_class replica_class; /* jobs/ID/ROLE-K (replica.c) */
extern const struct node_class root_class;    /* MOUNT (root.c) */

#endif
