/* SPDX-License-Identifier: MIT */
/*
 * The directories submit/ and dryrun/: which names there are, and what making, removing and renaming
 * them means. How contents become jobs: submit_io.c (bytes), submit_launch.c (to the backend),
 * submit_verdict.c; how they become manifests: submit_replace.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <utlist.h>

#include "backend/diag.h"
#include "fs/listing.h"
#include "fs/options.h"
#include "fs/submit_impl.h"
#include "spec/name.h"

/* A file expires this long after its job has finished, ns. */
#define SUBMIT_KEEP (7 * 24 * 3600 * INT64_C(1000000000))

static int submit_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	struct submit *s = submit_of(fs, node);

	/* As /tmp: everybody makes files, only owners remove them. */
	if (fs->options->allow_other)
		st->st_mode = S_IFDIR | 01777;
	lock_scope(&s->lock);
	node_set_times(st, s->changed, s->changed);
	return 0;
}

static int submit_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	struct submit_file *f cleanup_submit_file = submit_file_find(submit_of(fs, dir), name);

	if (!f)
		return submit_verdict_lookup(fs, dir, name, ret);
	*ret = submit_file_node(fs, dir, f);
	return *ret ? 0 : -ENOMEM;
}

static int submit_list(struct fs *fs, struct node *dir, struct listing *l)
{
	struct submit *s = submit_of(fs, dir);

	{
		struct submit_file *f, *next;

		lock_scope(&s->lock);
		HASH_ITER(hh, s->files, f, next)
			if (listing_add(l, f->name) < 0)
				return -ENOMEM;
	}
	return submit_verdict_list(s, l);
}

/* The file NAME, made or (one may have come since the kernel looked) opened; held in both cases. */
static int create_file(struct submit *s, const char *name, mode_t mode, struct submit_author author,
		       int flags, struct submit_file **ret)
{
	struct submit_file *f cleanup_submit_file = NULL;
	int err = submit_name_check(name);

	if (err)
		return err;
	f = submit_file_find(s, name);
	if (!f) {
		if (!submit_verdict_room(s))
			return -ENOSPC;
		return submit_file_make(s, name, mode, author, ret);
	}
	err = flags & O_EXCL ? -EEXIST : submit_file_hold(f);
	if (!err)
		*ret = take_ptr(f);
	return err;
}

static void submit_create(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
			  mode_t mode, struct fuse_file_info *fi)
{
	struct submit_file *f cleanup_submit_file = NULL;
	struct fuse_entry_param e;
	struct node *node = NULL;
	int err = create_file(submit_of(fs, dir), name, mode, submit_author_of(fs, req), fi->flags,
			      &f);

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	node = submit_file_node(fs, dir, f);
	err = node ? node_entry(fs, node, &e) : -ENOMEM;
	if (!err) {
		err = submit_handle_open(fs, req, f, fi);
		if (err)
			node_forget(fs, node, 1);
	}
	if (err) {
		submit_file_drop(f);
		fuse_reply_err(req, -err);
	} else if (fuse_reply_create(req, &e, fi) == -ENOENT) {
		handle_close(fs, fi);
		node_forget(fs, node, 1);
	}
	node_put(fs, node);
}

static void submit_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	struct submit_file *f cleanup_submit_file = submit_file_find(submit_of(fs, dir), name);
	char base[NAME_MAX + 1];
	enum submit_name kind = submit_name_kind(name, base);
	int err = -ENOENT;

	if (f)
		err = submit_file_remove(f);
	else if (kind != SUBMIT_NAME_FILE)
		err = submit_verdict_remove(submit_of(fs, dir), base, kind);
	fuse_reply_err(req, -err);
}

/* --- rename --- */

/* Somebody still writes F, or what is in it is being launched: the verdict comes without a rename. */
static bool rename_is_busy(struct submit_file *f)
{
	const struct submit_handle *h;

	lock_scope(&f->s->lock);
	if (f->pending == f->content)
		return true;
	DL_FOREACH(f->handles, h)
		if (h->dirty)
			return true;
	return false;
}

static bool rename_is_accepted(struct submit_file *f)
{
	lock_scope(&f->s->lock);
	return f->replacing || f->accepted == f->content;
}

/* 0: F may be renamed from NAME to NEWNAME. */
static int rename_check(struct submit *s, const char *newname, unsigned flags)
{
	struct submit_file *there cleanup_submit_file = submit_file_find(s, newname);
	int err = submit_name_check(newname);

	if (err)
		return err;
	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return -EINVAL;
	return there && (flags & RENAME_NOREPLACE) ? -EEXIST : 0;
}

static void submit_rename(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
			  struct node *newdir, const char *newname, unsigned flags)
{
	struct submit_file *f cleanup_submit_file = submit_file_find(submit_of(fs, dir), name);
	int err = newdir == dir ? rename_check(submit_of(fs, dir), newname, flags) : -EPERM;
	bool accepted = f && rename_is_accepted(f);
	char base[NAME_MAX + 1];

	if (!f && !err)
		err = submit_name_kind(name, base) == SUBMIT_NAME_FILE ? -ENOENT : -EPERM;
	if (!err && spec_name_submits(newname) && submit_file_size(f) > 0 && !accepted &&
	    !rename_is_busy(f)) {
		submit_commit_rename(f, newname, req);
		return;
	}
	if (!err)
		err = submit_file_rename(f, newname);
	/* What was launched once is not launched again by another name: its verdict goes along. */
	if (!err && accepted && spec_name_submits(name) && spec_name_submits(newname))
		submit_verdict_move(submit_of(fs, dir), name, newname);
	fuse_reply_err(req, -err);
}

/* What both are. */
#define SUBMIT_OPS                                                                                 \
	.mode = S_IFDIR | 0755, .getattr = submit_getattr, .lookup = submit_lookup,                \
	.list = submit_list, .create = submit_create, .unlink = submit_unlink,                     \
	.rename = submit_rename

const struct node_class submit_class = {.name = "submit", SUBMIT_OPS};
const struct node_class dryrun_class = {.name = "dryrun", SUBMIT_OPS};

/* --- life --- */

static int submit_open_dirs(struct submit *s)
{
	s->state_fd = open(s->fs->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->state_fd < 0)
		return -errno;
	if (mkdirat(s->state_fd, s->name, 0700) < 0 && errno != EEXIST)
		return -errno;
	s->dir_fd = openat(s->state_fd, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return s->dir_fd < 0 ? -errno : 0;
}

int submit_new(struct fs *fs, const struct node_class *class, struct submit **ret, char **ret_text)
{
	struct submit *s = calloc(1, sizeof(*s));
	int err = s ? 0 : -ENOMEM;

	if (s) {
		s->fs = fs;
		s->state_fd = s->dir_fd = -1;
		s->lock = (struct lock)LOCK_INIT;
		s->changed = fs->started;
		s->name = class->name;
		s->dry = class == &dryrun_class;
		err = submit_open_dirs(s);
	}
	if (!err)
		err = submit_scan(s);
	if (err) {
		submit_free(s);
		if (asprintf(ret_text, "%s/%s: %s", fs->state_dir, class->name, strerror(-err)) < 0)
			*ret_text = NULL;
		return err;
	}
	*ret = s;
	return 0;
}

/* Handles and nodes have gone before. */
void submit_free(struct submit *s)
{
	if (!s)
		return;
	submit_file_forget_all(s);
	submit_verdict_free_all(s);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	if (s->state_fd >= 0)
		close(s->state_fd);
	free(s);
}

/* --- expiry, I/O thread --- */

/* When the job of V was over; INT64_MAX: it is not. A job that is gone was over when it began. */
static int64_t expire_finished(struct submit *s, const struct submit_verdict *v)
{
	const enum backend_place places[] = {BACKEND_JOBS, BACKEND_HISTORY};

	for (size_t i = 0; i < array_size(places); i++) {
		const struct spec_job *job cleanup_job =
			backend_job(s->fs->backend, places[i], v->job);

		if (job)
			return job->finished ? job->finished : INT64_MAX;
	}
	return v->job_time;
}

static void expire_one(struct submit *s, const char *name)
{
	struct submit_file *f cleanup_submit_file = submit_file_find(s, name);

	/* Open, or changed since: it is not the file of that job any more. */
	if (f && submit_file_expire(f) < 0)
		return;
	submit_verdict_remove(s, name, SUBMIT_NAME_JOB);
	submit_verdict_remove(s, name, SUBMIT_NAME_ERROR);
	diag(DIAG_DEBUG, "%s/%s: removed, its job is long over", s->name, name);
}

void submit_expire(struct submit *s, int64_t now)
{
	struct submit_verdict *v = submit_verdict_copy_jobs(s);

	if (s->dry)
		submit_expire_made(s, now - SUBMIT_KEEP);
	while (v) {
		struct submit_verdict *next = v->next;
		int64_t finished = expire_finished(s, v);

		if (finished <= now && now - finished > SUBMIT_KEEP)
			expire_one(s, v->name);
		submit_verdict_free(v);
		v = next;
	}
}
