/* SPDX-License-Identifier: MIT */
/*
 * jobs/ and history/: one directory a job, and their removal: rmdir of a job cancels it, rmdir
 * of one in the history removes it for good.
 */
#include <errno.h>

#include "backend/base/diag.h"
#include "fs/tree/job.h"
#include "fs/vfs/listing.h"
#include "fs/vfs/park.h"
#include "spec/base/mem.h"

/* A rmdir blocks its directory for others, so it waits shortly; the outcome is found out anyway. */
#define JOBS_RMDIR_MS 3000

static enum backend_place jobs_place(const struct node *dir)
{
	return dir->class == &history_class ? BACKEND_HISTORY : BACKEND_JOBS;
}

static int jobs_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int64_t changed =
		max_of(backend_changed(tree_of(node)->backend, jobs_place(node)), fs->started);

	node_set_times(st, changed, changed);
	return 0;
}

static int jobs_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	enum backend_place place = jobs_place(dir);
	const struct spec_job *job cleanup_job = backend_job(tree_of(dir)->backend, place, name);

	if (!job)
		return -ENOENT;
	*ret = job_node(fs, dir, job, place == BACKEND_HISTORY);
	return 0;
}

static int jobs_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job **jobs = NULL;
	size_t n = 0;
	int err = backend_jobs(tree_of(dir)->backend, jobs_place(dir), &jobs, &n);

	(void)fs;
	for (size_t i = 0; i < n; i++) {
		listing_add(l, jobs[i]->id);
		spec_job_unref(jobs[i]);
	}
	free(jobs);
	return err;
}

/* --- removal --- */

struct jobs_removal {
	struct fs *fs;
	uint64_t ticket;
	char *id;
};

static void jobs_removal_free(struct jobs_removal *r)
{
	free(r->id);
	free(r);
}

static void jobs_removed(void *data, const struct backend_result *result)
{
	struct jobs_removal *r = data;
	fuse_req_t req = park_claim(r->fs->park, r->ticket);

	if (result->err && *result->text)
		diag(DIAG_WARNING, "%s: not removed: %s", r->id, result->text);
	if (req)
		fuse_reply_err(req, -result->err);
	jobs_removal_free(r);
}

static void jobs_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	const struct tree *t = tree_of(dir);
	enum backend_place place = jobs_place(dir);
	const struct spec_job *job cleanup_job = backend_job(t->backend, place, name);
	struct jobs_removal *r;
	int err = job ? 0 : -ENOENT;

	if (!err && place == BACKEND_JOBS)
		err = place_may_end(t, job);
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	r = new0(struct jobs_removal);
	r->fs = fs;
	r->id = text_copy(name);
	r->ticket = park_add(fs->park, req, PARK_DIR, JOBS_RMDIR_MS);
	if (!r->ticket)
		jobs_removal_free(r);
	else if (place == BACKEND_JOBS)
		backend_cancel(t->backend, job->id, job->uid, jobs_removed, r);
	else
		backend_forget(t->backend, job->id, job->uid, jobs_removed, r);
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
