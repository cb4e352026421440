/* SPDX-License-Identifier: MIT */
/*
 * The job, and perhaps the replica, that a node below jobs/ or history/ belongs to. A struct
 * job_ref is the object of a job's directory and of all nodes below that; a replica's directory has
 * one of its own. It has the job's uid, so that its nodes remain those of the same job, even if
 * another job gets the id later. FUSE thread.
 */
#pragma once

#include "fs/tree/tree.h"
#include "fs/vfs/park.h"

struct job_ref {
	struct tree *tree;
	char *id;
	char *uid;
	char *replica; /* the replica, as ROLE-K; NULL for the job itself */
	bool history;  /* true if the node is below history/ */
};

/*
 * The node of a job's or a replica's directory. Its creator sets REF, and makes it the node's
 * object.
 */
struct job_ref_node {
	struct node node;
	struct job_ref ref;
};

static inline const struct job_ref *job_ref_of(const struct node *node)
{
	return node->object;
}
/* The free() of a class whose nodes are struct job_ref_node. */
void job_ref_free(struct node *node);

/* True if UID is the uid of JOB, or was its uid while it was held. */
bool job_ref_is_of(const char *uid, const struct spec_job *job);

/* Return the present snapshot of NODE's job, a new reference; NULL if the job was deleted. */
const struct spec_job *job_ref_job(const struct node *node);
/* Return NODE's replica in JOB (which may be NULL), borrowed; or NULL. */
const struct spec_replica *job_ref_replica(const struct node *node, const struct spec_job *job);
/* A when() for struct node_entry_def: true if the directory is below jobs/, not history/. */
bool job_ref_in_jobs(void *ref, struct node *dir);

/* A getattr: mtime is the job's last change, ctime its creation. -ENOENT if the job was deleted. */
int job_ref_getattr(struct fs *fs, struct node *node, struct stat *st);
/* Like job_ref_getattr, for a text, with the size of its rendering. */
int job_ref_text_getattr(struct fs *fs, struct node *node, struct stat *st);
/* An opened(): report to the backend that the job's usage is being read. */
void job_ref_usage_opened(struct node *node);

/*
 * True if the state directory, with all output, was removed. The first call that returns true logs
 * an error.
 */
bool job_ref_state_is_gone(struct tree *t);

/*
 * Answer unlink and rmdir of names below a job: with success but without an effect, so that a
 * recursive deletion reaches the rmdir of the job itself; or with ENOENT if there is no such name.
 */
void job_ref_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
void place_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);

/* Bit set of 1u << enum spec_action: the actions on JOB that this mount does not refuse. */
unsigned job_ref_allowed(const struct tree *t, const struct spec_job *job);
/*
 * Check if this mount may end or control JOB. Return 0, or -EPERM after a message with the reason.
 * The kernel has checked whether the caller may write to the file or directory.
 */
int job_ref_may_end(const struct tree *t, const struct spec_job *job);

/* A request for the backend, and the kernel's request that waits for it. */
struct job_request;

/*
 * Park REQ, as park_add does, until job_request_done answers it: with the error, or with the SIZE
 * bytes of a write (0 if REQ is not a write). NULL if REQ was answered already. A message about an
 * error begins with WHAT, which is taken over.
 */
struct job_request *job_request_new(struct fs *fs, fuse_req_t req, enum park_kind kind,
				    unsigned deadline_ms, size_t size, char *what);
void job_request_done(void *request, const struct backend_result *result);
