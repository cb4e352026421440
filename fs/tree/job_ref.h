/* SPDX-License-Identifier: MIT */
/*
 * A struct job_ref is the object (fs/vfs/node.h) of a job's directory, and of all nodes in it. The
 * directory of a replica has a struct job_ref of its own. A struct job_ref identifies its job by
 * the uid, because another job may get the same id later. FUSE thread.
 */
#pragma once

#include "fs/tree/tree.h"
#include "fs/vfs/park.h"

struct job_ref {
	struct tree *tree;
	char *id;
	char *uid;
	char *replica; /* ROLE-K; NULL outside of a replica's directory */
	bool history;  /* true in history/, false in jobs/ */
};

/* A directory of a job or of a replica. NODE.object points to REF. */
struct job_ref_node {
	struct node node;
	struct job_ref ref;
};

static inline const struct job_ref *job_ref_of(const struct node *node)
{
	return node->object;
}
/*
 * Return a new reference to the node with CLASS and TAG in DIR. Its object is a copy of REF with
 * the replica REPLICA, which may be NULL. CLASS has JOB_REF_OPS.
 */
struct node *job_ref_get(struct fs *fs, struct node *dir, const struct node_class *class,
			 const char *tag, const struct job_ref *ref, const char *replica);
void job_ref_free(struct node *node);

/* True if UID is JOB's uid, or was JOB's uid while JOB was held (not launched yet). */
bool job_ref_is_of(const char *uid, const struct spec_job *job);

/* Return a reference to the current snapshot of NODE's job; NULL if the job was removed. */
const struct spec_job *job_ref_job(const struct node *node);
/* Return NODE's replica in JOB, borrowed. Return NULL if JOB is NULL or lacks this replica. */
const struct spec_replica *job_ref_replica(const struct node *node, const struct spec_job *job);
/* For node_entry_def.when: true if the job's directory is in jobs/. */
bool job_ref_in_jobs(void *ref, struct node *dir);

/* mtime is the job's last change, ctime its creation. Return -ENOENT if the job was removed. */
int job_ref_getattr(struct fs *fs, struct node *node, struct stat *st);
/* Like job_ref_getattr, and set the size of a rendered text. */
int job_ref_text_getattr(struct fs *fs, struct node *node, struct stat *st);
/* For text_class.opened: notify the backend that a process reads the usage. */
void job_ref_usage_opened(struct node *node);

/* True if the state directory was removed, and captured output with it. Log an error once. */
bool job_ref_state_is_gone(struct tree *t);

/*
 * The operation for unlink and rmdir in a job's directory. It does nothing and succeeds, so that
 * `rm -r` of a job reaches the rmdir of the job's directory. If DIR has no entry NAME, it fails
 * with ENOENT.
 */
void job_ref_remove(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);

#define JOB_REF_OPS                                                                                \
	.mode = S_IFDIR | 0755, .size = sizeof(struct job_ref_node), .getattr = job_ref_getattr,   \
	.unlink = job_ref_remove, .rmdir = job_ref_remove, .free = job_ref_free

/* Return the actions on JOB that this mount allows, as bits 1u << enum spec_action. */
unsigned job_ref_allowed(const struct tree *t, const struct spec_job *job);
/*
 * Return 0 if -o cancel allows this mount to end or control JOB, else log the reason and return
 * -EPERM. The kernel has already checked file permissions.
 */
int job_ref_may_end(const struct tree *t, const struct spec_job *job);

/* A request to the backend, and the FUSE request that waits for its result. */
struct job_request;

/*
 * Park REQ (park_add) until job_request_done answers it with the backend's result. SIZE is the size
 * of a write, 0 for other requests. WHAT begins the log message of an error; take ownership of
 * WHAT. Return NULL if REQ has already been answered.
 */
struct job_request *job_request_new(struct fs *fs, fuse_req_t req, enum park_kind kind,
				    unsigned deadline_ms, size_t size, char *what);
void job_request_done(void *request, const struct backend_result *result);
