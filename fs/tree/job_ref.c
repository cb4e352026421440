/* SPDX-License-Identifier: MIT */
/* Common code of all files in a job's directory: finding the job, times, removals. */
#include "fs/tree/job_ref.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "fs/vfs/serve.h"
#include "fs/vfs/text.h"
#include "spec/base/mem.h"

struct node *job_ref_get(struct fs *fs, struct node *dir, const struct node_class *class,
			 const char *tag, const struct job_ref *ref, const char *replica)
{
	bool fresh;
	struct node *node = node_get(fs, dir, class, tag, &fresh);
	struct job_ref *p = &container_of(node, struct job_ref_node, node)->ref;

	if (fresh) {
		*p = (struct job_ref){ref->tree, text_copy(ref->id), text_copy(ref->uid),
				      replica ? text_copy(replica) : NULL, ref->history};
		node_set_object(node, p);
	}
	return node;
}

void job_ref_free(struct node *node)
{
	struct job_ref *p = &container_of(node, struct job_ref_node, node)->ref;

	free(p->id);
	free(p->uid);
	free(p->replica);
}

bool job_ref_is_of(const char *uid, const struct spec_job *job)
{
	return streq(uid, job->uid) || (job->own && streq(uid, job->submission));
}

const struct spec_job *job_ref_job(const struct node *node)
{
	const struct job_ref *p = job_ref_of(node);

	return backend_job_by_uid(p->tree->backend, p->uid);
}

const struct spec_replica *job_ref_replica(const struct node *node, const struct spec_job *job)
{
	return job ? spec_job_replica(job, job_ref_of(node)->replica) : NULL;
}

bool job_ref_in_jobs(void *ref, struct node *dir)
{
	const struct job_ref *p = ref;

	return !p->history;
}

int job_ref_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);

	if (!job)
		return -ENOENT;
	node_set_times(st, job->changed, job->created);
	/* The times of a finished job no longer change, so the kernel may cache them. */
	node_set_live(node, !job->finished);
	return 0;
}

void job_ref_usage_opened(struct node *node)
{
	const struct job_ref *p = job_ref_of(node);

	if (!p->history)
		backend_wanted(p->tree->backend, BACKEND_USAGE);
}

bool job_ref_state_is_gone(struct tree *t)
{
	const char *dir = t->fs->config.disk;
	bool gone;

	if (serve_disk_begin(t->fs))
		return false;
	gone = disk_access(AT_FDCWD, dir, F_OK) == -ENOENT;
	serve_disk_end(t->fs);
	if (!gone)
		return false;
	if (!t->logged_loss)
		diag(DIAG_ERROR,
		     "the state directory %s is gone: captured output is lost, and nothing can "
		     "be submitted; unmount, and mount again",
		     dir);
	t->logged_loss = true;
	return true;
}

int job_ref_text_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int err = job_ref_getattr(fs, node, st);

	return err ? err : text_size(fs, node, &st->st_size);
}

void job_ref_remove(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	struct node *node = NULL;
	int err = dir->class->lookup(fs, dir, name, &node);

	if (!err) {
		/*
		 * NAME still exists, because kxfs removes nothing here. But if NAME is a directory,
		 * the kernel assumes that it was removed, and fails all lookups in its node. So the
		 * next lookup of NAME must make a new node.
		 */
		node_forget_name(fs, node);
		node_put(fs, node);
	}
	fuse_reply_err(req, -err);
}

static bool allows_end(const struct tree *t, const struct spec_job *job)
{
	return job->own ? t->may_end_own : job->mine ? t->may_end_mine : t->may_end_others;
}

unsigned job_ref_allowed(const struct tree *t, const struct spec_job *job)
{
	if (t->read_only)
		return 0;
	return allows_end(t, job) ? UINT_MAX : 1u << SPEC_RELEASE;
}

int job_ref_may_end(const struct tree *t, const struct spec_job *job)
{
	if (allows_end(t, job))
		return 0;
	if (t->may_end_own)
		diag(DIAG_WARNING,
		     "%s: refused: the job was not submitted %s; to cancel such jobs, mount with "
		     "-o cancel=%s",
		     job->id, t->may_end_mine ? "by this user" : "through this mount",
		     job->mine ? "mine" : "all");
	else
		diag(DIAG_WARNING, "%s: refused: the mount has -o cancel=none", job->id);
	return -EPERM;
}

struct job_request {
	struct fs *fs;
	uint64_t ticket;
	size_t size;
	char *what;
};

static void job_request_free(struct job_request *r)
{
	free(r->what);
	free(r);
}

struct job_request *job_request_new(struct fs *fs, fuse_req_t req, enum park_kind kind,
				    unsigned deadline_ms, size_t size, char *what)
{
	struct job_request *r = new0(struct job_request);

	*r = (struct job_request){fs, park_add(fs->park, req, kind, deadline_ms), size, what};
	if (r->ticket)
		return r;
	job_request_free(r);
	return NULL;
}

void job_request_done(void *request, const struct backend_result *result)
{
	struct job_request *r = request;
	fuse_req_t req = park_claim(r->fs->park, r->ticket);

	if (result->err && *result->text)
		diag(DIAG_WARNING, "%s: %s", r->what, result->text);
	if (req && !result->err && r->size)
		fuse_reply_write(req, r->size);
	else if (req)
		fuse_reply_err(req, -result->err);
	job_request_free(r);
}
