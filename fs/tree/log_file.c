/* SPDX-License-Identifier: MIT */
/*
 * A log as a file, as it was printed or with timestamps: it grows, its size is exact, and a read at
 * its end returns nothing. Opening a log waits until all earlier output is in it. A log that the
 * user may not read returns EACCES.
 */
#include <errno.h>

#include "fs/tree/ahead.h"
#include "fs/tree/job.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"

/* How long an open waits for output that is on its way. */
#define LOG_OPEN_MS 10000
/* The reported preferred I/O size: cat, cp and others then need few reads for a large log. */
#define LOG_READ (1 << 20)

struct log_node {
	struct node node;
	bool merged;
	enum log_form form;
	/* NULL for the merged log; or for the replica's first log, if it has not begun */
	char *key;
};

struct log_handle {
	struct handle handle;
	struct ahead *ahead; /* reads the log; NULL if the log has not begun */
};

static void log_handle_free(struct handle *h)
{
	struct log_handle *lh = container_of(h, struct log_handle, handle);

	ahead_close(lh->ahead);
	free(lh);
}

/* True if the log of LN has begun and still exists; this sets LN's key. FUSE thread. */
static bool log_file_begun(struct log_node *ln, const struct spec_job *job)
{
	const struct spec_replica *r;

	if (job->dropped)
		return false;
	if (ln->merged || ln->key)
		return true;
	r = job_ref_replica(&ln->node, job);
	if (!r || r->n_logs == 0 || *r->logs[0].container)
		return false;
	ln->key = text_copy(r->logs[0].key);
	return true;
}

/* Open the log of NODE. *RET does not change if the log has not begun. */
static int log_file_find(struct node *node, struct ahead **ret)
{
	struct log_node *ln = container_of(node, struct log_node, node);
	const struct spec_job *job cleanup_job = job_ref_job(node);
	struct tree *t = job_ref_of(node)->tree;
	struct log *log;
	int err;

	if (!job)
		return -ENOENT;
	if (!log_file_begun(ln, job))
		return 0;
	err = serve_disk_begin(t->fs);
	if (err)
		return err;
	err = backend_log(t->backend, job, ln->key, ln->form, &log);
	serve_disk_end(t->fs);
	if (err)
		return err;
	if (*ret) /* another read of the same open file has done this meanwhile */
		log_unref(log);
	else
		*ret = ahead_new(t, log);
	return 0;
}

/*
 * Return the size and time of the log. A log that is unreadable or was removed keeps its name, so
 * that rm -r can remove it; opening it returns the error.
 */
static int log_file_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	struct log_node *ln = container_of(node, struct log_node, node);
	const struct spec_job *job cleanup_job = job_ref_job(node);
	struct log_stat ls = {0};

	if (!job)
		return -ENOENT;
	if (log_file_begun(ln, job)) {
		int err = serve_disk_begin(fs);

		if (err)
			return err;
		if (backend_log_stat(job_ref_of(node)->tree->backend, job, ln->key, ln->form, &ls))
			ls = (struct log_stat){0};
		serve_disk_end(fs);
	}
	node_set_times(st, ls.mtime ? ls.mtime : job->created, job->created);
	st->st_size = (off_t)ls.size;
	st->st_blksize = LOG_READ;
	return 0;
}

/* An open that waits until all output printed so far has arrived. */
struct log_open {
	struct fs *fs;
	uint64_t ticket;
	struct fuse_file_info fi;
};

static void log_file_arrived(void *data)
{
	struct log_open *o = data;
	const struct log_handle *lh = handle_of(&o->fi);
	int err = log_is_denied(ahead_log(lh->ahead)) ? EACCES : 0;
	fuse_req_t req = park_claim(o->fs->park, o->ticket);

	if (req && err)
		fuse_reply_err(req, err);
	/* Refused, interrupted or timed out: the open has failed, so free its handle. */
	if (req && !err)
		handle_reply(o->fs, req, &o->fi);
	else
		handle_close(o->fs, &o->fi);
	free(o);
}

static void log_file_open(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	struct log_handle *lh = new0(struct log_handle);
	struct log_open *o;
	int err = job_ref_state_is_gone(job_ref_of(node)->tree) ? -EIO
								: log_file_find(node, &lh->ahead);

	if (err) {
		free(lh);
		fuse_reply_err(req, -err);
		return;
	}
	handle_open(fs, &lh->handle, log_handle_free, fi);
	if (!lh->ahead || log_has_arrived(ahead_log(lh->ahead))) {
		handle_reply(fs, req, fi);
		return;
	}
	o = new0(struct log_open);
	o->fs = fs;
	o->fi = *fi;
	o->ticket = park_add(fs->park, req, PARK_OPEN, LOG_OPEN_MS);
	log_when_arrived(ahead_log(lh->ahead), log_file_arrived, o);
}

static void log_file_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
			  struct fuse_file_info *fi)
{
	struct log_handle *lh = handle_of(fi);
	int err = 0;

	/* A log that had not begun at the open may have begun since. */
	if (!lh->ahead)
		err = log_file_find(node, &lh->ahead);
	if (!err && lh->ahead && log_is_denied(ahead_log(lh->ahead)))
		err = -EACCES;
	if (err)
		fuse_reply_err(req, -err);
	else if (!lh->ahead)
		fuse_reply_buf(req, NULL, 0);
	else
		ahead_read(lh->ahead, req, size, (uint64_t)off);
}

static void log_node_free(struct node *node)
{
	free(container_of(node, struct log_node, node)->key);
}

static const struct node_class log_file_class = {
	.name = "log",
	.mode = S_IFREG | 0644,
	.size = sizeof(struct log_node),
	.live = true,
	.costly = true,
	.on_disk = true,
	.getattr = log_file_getattr,
	.open = log_file_open,
	.read = log_file_read,
	.free = log_node_free,
};

static struct node *log_node_new(struct fs *fs, struct node *dir, const char *tag, const char *key,
				 bool merged, enum log_form form)
{
	bool fresh;
	struct node *node = node_get(fs, dir, &log_file_class, tag, &fresh);
	struct log_node *ln = container_of(node, struct log_node, node);

	/* A node that is known already may be in use by a handler that waits for a disk. */
	if (fresh) {
		ln->merged = merged;
		ln->form = form;
	}
	if (key && !ln->key)
		ln->key = text_copy(key);
	return node;
}

struct node *log_node_merged(struct fs *fs, struct node *dir, enum log_form form)
{
	return log_node_new(fs, dir, form == LOG_PLAIN ? "log@" : "stamped@", NULL, true, form);
}

struct node *log_node_get(struct fs *fs, struct node *dir, const char *name, const char *key,
			  bool first, enum log_form form)
{
	char *tag cleanup_free = NULL;

	if (first)
		return log_node_new(fs, dir, form == LOG_PLAIN ? "log@first" : "stamped@first", key,
				    false, form);
	/*
	 * The tag contains the key, so the "log" of a new attempt is a new file, and the old file
	 * remains unchanged.
	 */
	tag = text_print("%s@%s", name, key);
	return log_node_new(fs, dir, tag, key, false, form);
}
