/* SPDX-License-Identifier: MIT */
/*
 * A struct job_ref names the job to which a node in jobs/ or history/ belongs. If the node belongs
 * to a replica, the job_ref also names the replica.
 *
 * The nodes in a job's directory, and the directory itself, all represent the same job_ref
 * (fs/vfs/node.h). A replica's directory has a job_ref of its own. A job_ref contains the job's
 * uid, so a node keeps belonging to its job even if another job gets the id later. FUSE thread.
 */
#pragma once

#include "fs/tree/tree.h"
#include "fs/vfs/park.h"

struct job_ref {
	struct tree *tree;
	char *id;
	char *uid;
	char *replica; /* the replica's name, ROLE-K; NULL outside of a replica's directory */
	bool history;  /* true if the directory is in history/; false if it is in jobs/ */
};

/* The node of the directory of a job or a replica. It represents REF. */
struct job_ref_node {
	struct node node;
	struct job_ref ref;
};

static inline const struct job_ref *job_ref_of(const struct node *node)
{
	return node->object;
}
/*
 * Return a new reference to the node with CLASS and TAG in DIR, which represents a copy of REF with
 * the replica REPLICA (may be NULL). CLASS has JOB_REF_OPS.
 */
struct node *job_ref_get(struct fs *fs, struct node *dir, const struct node_class *class,
			 const char *tag, const struct job_ref *ref, const char *replica);
void job_ref_free(struct node *node);

/* True if UID is the uid of JOB, or was its uid while JOB was held. */
bool job_ref_is_of(const char *uid, const struct spec_job *job);

/* Return a new reference to the current snapshot of NODE's job; NULL if the job was removed. */
const struct spec_job *job_ref_job(const struct node *node);
/*
 * Return the replica in JOB to which NODE belongs, borrowed. Return NULL if JOB is NULL, or if JOB
 * does not have this replica.
 */
const struct spec_replica *job_ref_replica(const struct node *node, const struct spec_job *job);
/* A when() for struct node_entry_def: true if the job's directory is in jobs/, not in history/. */
bool job_ref_in_jobs(void *ref, struct node *dir);

/*
 * A getattr operation: mtime is the time of the job's last change, ctime the time of its creation.
 * Return 0, or -ENOENT if the job was removed.
 */
int job_ref_getattr(struct fs *fs, struct node *node, struct stat *st);
/* Like job_ref_getattr, for a rendered text. Also set its size. */
int job_ref_text_getattr(struct fs *fs, struct node *node, struct stat *st);
/* An `opened` operation: notify the backend that somebody reads the usage of the job. */
void job_ref_usage_opened(struct node *node);

/*
 * True if the state directory was removed, and all captured output with it. The first call that
 * returns true logs an error.
 */
bool job_ref_state_is_gone(struct tree *t);

/*
 * Operations for unlink and rmdir in a job's directory. They succeed without an effect, so that `rm
 * -r` of a job continues to the rmdir of the job's directory. If DIR has no entry NAME, they fail
 * with ENOENT.
 */
void job_ref_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
void place_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);

/* Operations of the directory of a job or a replica. */
#define JOB_REF_OPS                                                                                \
	.mode = S_IFDIR | 0755, .size = sizeof(struct job_ref_node), .getattr = job_ref_getattr,   \
	.unlink = job_ref_unlink, .rmdir = place_rmdir, .free = job_ref_free

/* Return the actions on JOB that this mount allows, as a bit set of 1u << enum spec_action. */
unsigned job_ref_allowed(const struct tree *t, const struct spec_job *job);
/*
 * Return 0 if -o cancel allows this mount to end or control JOB. Otherwise log the reason and
 * return -EPERM. The kernel has already checked the permissions of the file or directory.
 */
int job_ref_may_end(const struct tree *t, const struct spec_job *job);

/* A request to the backend, with the FUSE request that waits for its result. */
struct job_request;

/*
 * Park REQ as park_add does. Later job_request_done answers REQ with the backend's error, or, if
 * the backend has succeeded and REQ is a write, with SIZE. For other requests, SIZE must be 0.
 * Messages that kxfs logs about errors begin with WHAT. Take ownership of WHAT. Return NULL if REQ
 * has already been answered.
 */
struct job_request *job_request_new(struct fs *fs, fuse_req_t req, enum park_kind kind,
				    unsigned deadline_ms, size_t size, char *what);
void job_request_done(void *request, const struct backend_result *result);
