/* SPDX-License-Identifier: MIT */
/* Common code of all files below a job: the job, its times, and the meaning of a removal. */
#include "fs/tree/place.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "fs/vfs/serve.h"
#include "fs/vfs/text.h"

void place_free(struct node *node)
{
	struct place *p = &container_of(node, struct place_node, node)->place;

	free(p->id);
	free(p->uid);
	free(p->replica);
}

bool place_is_of(const char *uid, const struct spec_job *job)
{
	return streq(uid, job->uid) || (job->own && streq(uid, job->submission));
}

const struct spec_job *place_job(const struct node *node)
{
	const struct place *p = place_of(node);

	return backend_job_by_uid(p->tree->backend, p->uid);
}

const struct spec_replica *place_replica(const struct node *node, const struct spec_job *job)
{
	return job ? spec_job_replica(job, place_of(node)->replica) : NULL;
}

bool place_in_jobs(void *place, struct node *dir)
{
	const struct place *p = place;

	return !p->history;
}

int place_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct spec_job *job cleanup_job = place_job(node);

	if (!job)
		return -ENOENT;
	node_set_times(st, job->changed, job->created);
	/* A process that has read that a job has ended must find its times changed, too. */
	node_set_live(node, !job->finished);
	return 0;
}

void place_usage_opened(struct node *node)
{
	const struct place *p = place_of(node);

	if (!p->history)
		backend_usage_wanted(p->tree->backend);
}

bool place_state_is_gone(struct tree *t)
{
	const char *dir = t->fs->config.disk;
	bool gone;

	if (serve_disk_begin(t->fs))
		return false;
	gone = disk_access(AT_FDCWD, dir, F_OK) == -ENOENT;
	serve_disk_end(t->fs);
	if (!gone)
		return false;
	if (!t->told_loss)
		diag(DIAG_ERROR,
		     "%s, the state directory, is gone: what was captured is lost, and nothing can be submitted; "
		     "unmount, and mount again",
		     dir);
	t->told_loss = true;
	return true;
}

int place_text_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int err = place_getattr(fs, node, st);

	return err ? err : text_size(fs, node, &st->st_size);
}

void place_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	struct node *node = NULL;
	int err = dir->class->lookup(fs, dir, name, &node);

	if (!err)
		node_put(fs, node);
	fuse_reply_err(req, -err);
}

void place_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	struct node *node = NULL;
	int err = dir->class->lookup(fs, dir, name, &node);

	if (!err) {
		/*
		 * The kernel marks the inode of a removed directory dead: if the job remained,
		 * nothing could be looked up in it any more. A new node replaces it.
		 */
		node_forget_name(fs, node);
		node_put(fs, node);
	}
	fuse_reply_err(req, -err);
}

bool place_allows_end(const struct tree *t, const struct spec_job *job)
{
	return job->own ? t->may_end_own : job->mine ? t->may_end_mine : t->may_end_others;
}

unsigned place_allowed(const struct tree *t, const struct spec_job *job)
{
	if (t->read_only)
		return 0;
	return place_allows_end(t, job) ? UINT_MAX : 1u << SPEC_RELEASE;
}

int place_may_end(const struct tree *t, const struct spec_job *job)
{
	if (place_allows_end(t, job))
		return 0;
	if (t->may_end_own)
		diag(DIAG_WARNING,
		     "%s: not removed: it was not submitted %s (-o cancel=%s allows it)", job->id,
		     t->may_end_mine ? "by this user" : "through this mount",
		     job->mine ? "mine" : "all");
	else
		diag(DIAG_WARNING, "%s: not removed: the mount has -o cancel=none", job->id);
	return -EPERM;
}
