/* SPDX-License-Identifier: MIT */
/*
 * jobs/ and history/: one directory a job, and their removal: rmdir of a job cancels it, rmdir
 * of one in the history removes it for good.
 */
#include <errno.h>
#include <limits.h>

#include "backend/diag.h"
#include "fs/jobs.h"
#include "fs/listing.h"
#include "fs/options.h"
#include "fs/park.h"

/* A rmdir blocks its directory for others, so it waits shortly; the outcome is found out anyway. */
#define JOBS_RMDIR_MS 3000

const struct job_node *jobs_dir_of(const struct node *node)
{
	while (node->class != &job_class)
		node = node->parent;
	return container_of(node, const struct job_node, node);
}

const struct replica_node *jobs_replica_of(const struct node *node)
{
	while (node->class != &job_class && node->class != &replica_class)
		node = node->parent;
	return node->class == &replica_class ? container_of(node, const struct replica_node, node)
					     : NULL;
}

const struct spec_job *jobs_job_of(struct fs *fs, const struct node *node)
{
	return backend_job_by_uid(fs->backend, jobs_dir_of(node)->uid);
}

static enum backend_place jobs_place(const struct node *dir)
{
	return dir->class == &history_class ? BACKEND_HISTORY : BACKEND_JOBS;
}

static int jobs_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int64_t changed = max_of(backend_changed(fs->backend, jobs_place(node)), fs->started);

	node_set_times(st, changed, changed);
	return 0;
}

static int jobs_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = backend_job(fs->backend, jobs_place(dir), name);
	char tag[2 * NAME_MAX + 2];
	struct job_node *jn;
	struct node *node;
	bool fresh;

	if (!job)
		return -ENOENT;
	if (strlen(job->id) + strlen(job->uid) + 2 > sizeof(tag))
		return -ENAMETOOLONG;
	stpcpy(stpcpy(stpcpy(tag, job->id), "@"), job->uid);
	node = node_get(fs, dir, &job_class, tag, &fresh);
	if (!node)
		return -ENOMEM;
	jn = container_of(node, struct job_node, node);
	if (fresh) {
		jn->id = strdup(job->id);
		jn->uid = strdup(job->uid);
	}
	if (!jn->id || !jn->uid) {
		node_put(fs, node);
		return -ENOMEM;
	}
	*ret = node;
	return 0;
}

static int jobs_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job **jobs = NULL;
	size_t n = 0;
	int err = backend_jobs(fs->backend, jobs_place(dir), &jobs, &n);

	for (size_t i = 0; i < n; i++) {
		if (!err)
			err = listing_add(l, jobs[i]->id);
		spec_job_unref(jobs[i]);
	}
	free(jobs);
	return err;
}

/* --- removal --- */

struct jobs_removal {
	struct fs *fs;
	uint64_t ticket;
	char id[];
};

static void jobs_removed(void *data, const struct backend_result *result)
{
	struct jobs_removal *r = data;
	fuse_req_t req = park_claim(r->fs->park, r->ticket);

	if (result->err && *result->text)
		diag(DIAG_WARNING, "%s: not removed: %s", r->id, result->text);
	if (req)
		fuse_reply_err(req, -result->err);
	free(r);
}

int jobs_may_cancel(struct fs *fs, const struct spec_job *job)
{
	switch (fs->options->cancel) {
	case OPTIONS_CANCEL_ALL:
		return 0;
	case OPTIONS_CANCEL_OWN:
		if (job->own)
			return 0;
		diag(DIAG_WARNING,
		     "%s: left alone: it was not submitted through this mount (-o cancel=all "
		     "allows it)",
		     job->id);
		return -EPERM;
	case OPTIONS_CANCEL_NONE:
		break;
	}
	diag(DIAG_WARNING, "%s: left alone: the mount has -o cancel=none", job->id);
	return -EPERM;
}

static void jobs_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	enum backend_place place = jobs_place(dir);
	const struct spec_job *job cleanup_job = backend_job(fs->backend, place, name);
	struct jobs_removal *r cleanup_free = calloc(1, sizeof(*r) + strlen(name) + 1);
	int err = !r ? -ENOMEM : !job ? -ENOENT : 0;

	if (!err && place == BACKEND_JOBS)
		err = jobs_may_cancel(fs, job);
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	r->fs = fs;
	memcpy(r->id, name, strlen(name) + 1);
	r->ticket = park_add(fs->park, req, PARK_DIR, JOBS_RMDIR_MS);
	if (!r->ticket)
		return;
	if (place == BACKEND_JOBS)
		backend_cancel(fs->backend, job->id, job->uid, jobs_removed, r);
	else
		backend_forget(fs->backend, job->id, job->uid, jobs_removed, r);
	r = NULL; /* jobs_removed frees it */
}

void jobs_unlink_member(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	struct node *node = NULL;
	int err = dir->class->lookup(fs, dir, name, &node);

	if (!err)
		node_put(fs, node);
	fuse_reply_err(req, -err);
}

void jobs_rmdir_member(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	struct node *node = NULL;
	int err = dir->class->lookup(fs, dir, name, &node);

	if (!err) {
		/*
		 * The kernel marks the inode of a removed directory dead: were the job to stay,
		 * nothing could be found in it any more. A new node takes its place.
		 */
		node_forget_name(fs, node);
		node_put(fs, node);
	}
	fuse_reply_err(req, -err);
}

void jobs_free(struct node *node)
{
	struct job_node *jn = container_of(node, struct job_node, node);

	free(jn->id);
	free(jn->uid);
}

const struct node_class jobs_class = {
	.name = "jobs",
	.mode = S_IFDIR | 0755,
	.getattr = jobs_getattr,
	.lookup = jobs_lookup,
	.list = jobs_list,
	.rmdir = jobs_rmdir,
};

const struct node_class history_class = {
	.name = "history",
	.mode = S_IFDIR | 0755,
	.getattr = jobs_getattr,
	.lookup = jobs_lookup,
	.list = jobs_list,
	.rmdir = jobs_rmdir,
};
