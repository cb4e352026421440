/* SPDX-License-Identifier: MIT */
/*
 * The place of a node below jobs/ or history/ says of which job, and of which replica, it is. It is the object of a
 * job's directory and of all nodes below that; the directory of a replica has a place of its own. A place has the job's
 * uid, so that its nodes stay those of the same job, even if another job later has the id. FUSE thread.
 */
#pragma once

#include "fs/tree/tree.h"

struct place {
	struct tree *tree;
	char *id;
	char *uid;
	char *replica; /* the replica, as ROLE-K; NULL: the job itself */
	bool history;  /* it is below history/ */
};

/* The node of such a directory. Whoever makes it sets the place, and makes that the node's object. */
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

/* Is JOB the job that was known as UID, perhaps while it was held? */
bool place_is_of(const char *uid, const struct spec_job *job);

/* The present snapshot of NODE's job, a new reference; NULL: the job is gone. */
const struct spec_job *place_job(const struct node *node);
/* The part of JOB (which may be NULL) that is about NODE's replica; borrowed; NULL: there is none. */
const struct spec_replica *place_replica(const struct node *node, const struct spec_job *job);
/* A when() for struct node_entry_def: is the directory below jobs/, not history/? */
bool place_in_jobs(void *place, struct node *dir);

/* A getattr: mtime is the job's last change, ctime its creation. -ENOENT: the job is gone. */
int place_getattr(struct fs *fs, struct node *node, struct stat *st);
/* Like place_getattr, for a text, with the size that it would be rendered with. */
int place_text_getattr(struct fs *fs, struct node *node, struct stat *st);
/* An opened(): somebody reads what the job uses. */
void place_usage_opened(struct node *node);

/* Has somebody removed the state directory, with all output? The first call that finds that logs it. */
bool place_state_is_gone(struct tree *t);

/*
 * An unlink and rmdir for names below a job: accepted and without effect, so that recursive deleters come to the rmdir
 * of the job itself. -ENOENT if there is no such name.
 */
void place_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
void place_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);

/* True if -o cancel lets this mount end or control JOB. */
bool place_allows_end(const struct tree *t, const struct spec_job *job);
/* Bit set of 1u << enum spec_action: the actions on JOB that this mount does not refuse. */
unsigned place_allowed(const struct tree *t, const struct spec_job *job);
/*
 * May this mount end or control JOB? 0, or -EPERM after a message that says why. The kernel has checked whether the
 * caller may write to the file or directory.
 */
int place_may_end(const struct tree *t, const struct spec_job *job);
