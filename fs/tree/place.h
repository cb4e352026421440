/* SPDX-License-Identifier: MIT */
/*
 * Where a node below jobs/ or history/ is: the object of a job's directory and of all below it. The directory of a
 * replica has another place, with the name of the replica. A job is known by its uid, so that a node stays that of
 * the same job whatever later has its id. FUSE thread.
 */
#pragma once

#include "fs/tree/tree.h"

struct place {
	struct tree *tree;
	char *id;
	char *uid;
	char *replica; /* ROLE-K; NULL: the job itself */
	bool history;  /* below history/ */
};

/* The node of such a directory; who has made it sets the place, and makes it the object of the node. */
struct place_node {
	struct node node;
	struct place place;
};

static inline const struct place *place_of(const struct node *node)
{
	return node->object;
}
/* For struct node_class.free of a struct place_node. */
void place_free(struct node *node);

/* Is JOB the one that was known as UID, perhaps as one that was held? */
bool place_is_of(const char *uid, const struct spec_job *job);

/* The snapshot of the job now; a new reference; NULL: it is gone. */
const struct spec_job *place_job(const struct node *node);
/* The same, with all that an archive has of it, as far as it can be had now. *RET_ERR (not NULL): why not; else 0. */
const struct spec_job *place_whole(const struct node *node, int *ret_err);
/* Somebody looks at PLACE: if that is the history, it has what an archive has. */
void place_look(struct fs *fs, struct tree *t, enum backend_place place);
/* The replica's part of JOB (which may be NULL); borrowed; NULL: it has none. */
const struct spec_replica *place_replica(const struct node *node, const struct spec_job *job);
/* May be tested by struct node_entry_def.when: is it below jobs/, not history/? */
bool place_in_jobs(void *place, struct node *dir);

/* getattr: mtime is the job's last change, ctime its creation. -ENOENT: it is gone. */
int place_getattr(struct fs *fs, struct node *node, struct stat *st);
/* The same of a text, with the size of what would be rendered. */
int place_text_getattr(struct fs *fs, struct node *node, struct stat *st);
/* opened: somebody reads what the job uses. */
void place_usage_opened(struct node *node);

/* Has somebody removed the state directory, where all output is? That is said once, to whom it may concern. */
bool place_state_is_gone(struct tree *t);

/*
 * unlink and rmdir below a job: accepted and without effect, so that recursive deleters come to the
 * rmdir of the job itself. -ENOENT where there is no such name.
 */
void place_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
void place_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);

/*
 * May this mount end or control JOB? 0, or -EPERM after a message that says why. Whether the caller may
 * write to the file or directory has been checked by the kernel.
 */
int place_may_end(const struct tree *t, const struct spec_job *job);
