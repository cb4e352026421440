/* SPDX-License-Identifier: MIT */
/*
 * A place is the job, and perhaps the replica, of a node below jobs/ or history/. It is the object
 * of a job's directory and of all nodes below that; the directory of a replica has a place of its
 * own. A place has the job's uid, so that its nodes remain those of the same job, even if another
 * job gets the id later. FUSE thread.
 */
#pragma once

#include "fs/tree/tree.h"

struct place {
	struct tree *tree;
	char *id;
	char *uid;
	char *replica; /* the replica, as ROLE-K; NULL for the job itself */
	bool history;  /* it is below history/ */
};

/* The node of such a directory. Its creator sets the place, and makes that the node's object. */
struct place_node {
	struct node node;
	struct place place;
};

static inline const struct place *place_of(const struct node *node)
{
	return node->object;
}
/* The free() of a class whose nodes are struct place_node. */
void place_free(struct node *node);

/* True if JOB is the job with UID, perhaps an earlier uid from while it was held. */
bool place_is_of(const char *uid, const struct spec_job *job);

/* Return the present snapshot of NODE's job, a new reference; NULL if the job was deleted. */
const struct spec_job *place_job(const struct node *node);
/* Return NODE's replica in JOB (which may be NULL), borrowed; or NULL. */
const struct spec_replica *place_replica(const struct node *node, const struct spec_job *job);
/* A when() for struct node_entry_def: true if the directory is below jobs/, not history/. */
bool place_in_jobs(void *place, struct node *dir);

/* A getattr: mtime is the job's last change, ctime its creation. -ENOENT if the job was deleted. */
int place_getattr(struct fs *fs, struct node *node, struct stat *st);
/* Like place_getattr, for a text, with the size of its rendering. */
int place_text_getattr(struct fs *fs, struct node *node, struct stat *st);
/* An opened(): note that the job's usage is being read. */
void place_usage_opened(struct node *node);

/*
 * True if the state directory, with all output, was removed. The first call that finds that logs
 * it.
 */
bool place_state_is_gone(struct tree *t);

/*
 * An unlink and rmdir for names below a job: accepted and without effect, so that recursive
 * deletion reaches the rmdir of the job itself. -ENOENT if there is no such name.
 */
void place_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
void place_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);

/* True if -o cancel lets this mount end or control JOB. */
bool place_allows_end(const struct tree *t, const struct spec_job *job);
/* Bit set of 1u << enum spec_action: the actions on JOB that this mount does not refuse. */
unsigned place_allowed(const struct tree *t, const struct spec_job *job);
/*
 * Check if this mount may end or control JOB. Return 0, or -EPERM after a message with the reason.
 * The kernel has checked whether the caller may write to the file or directory.
 */
int place_may_end(const struct tree *t, const struct spec_job *job);
