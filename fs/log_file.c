/* SPDX-License-Identifier: MIT */
/*
 * A log as a file: it grows, its size is true, a read at its end returns nothing. Opening a merged
 * log waits until what had been printed by then is in it.
 */
#include <errno.h>

#include "fs/handle.h"
#include "fs/job.h"
#include "fs/park.h"

/* How long an open waits for output that is on its way. */
#define LOG_OPEN_MS 10000

struct log_handle {
	struct handle handle;
	struct log *log;
};

static void log_handle_free(struct handle *h)
{
	struct log_handle *lh = container_of(h, struct log_handle, handle);

	log_unref(lh->log);
	free(lh);
}

/* Has what NODE shows begun by now? Finds its key when it has. FUSE thread. */
static int log_file_begun(struct log_node *ln, const struct spec_job *job, bool *ret)
{
	const struct spec_replica *r;

	*ret = ln->merged || ln->key;
	if (*ret)
		return 0;
	r = spec_job_replica(job, jobs_replica_of(&ln->node)->name);
	if (!r || r->n_logs == 0 || *r->logs[0].container)
		return 0;
	ln->key = strdup(r->logs[0].key);
	*ret = ln->key;
	return *ret ? 0 : -ENOMEM;
}

/* Open what NODE shows. *RET is NULL when it has not begun. */
static int log_file_find(struct fs *fs, struct node *node, struct log **ret)
{
	struct log_node *ln = container_of(node, struct log_node, node);
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);
	bool begun;
	int err = job ? log_file_begun(ln, job, &begun) : -ENOENT;

	*ret = NULL;
	return err || !begun ? err : backend_log(fs->backend, job, ln->key, ret);
}

static int log_file_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	struct log_node *ln = container_of(node, struct log_node, node);
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);
	struct log_stat ls = {0};
	bool begun;
	int err = job ? log_file_begun(ln, job, &begun) : -ENOENT;

	if (!err && begun)
		err = backend_log_stat(fs->backend, job, ln->key, &ls);
	if (err)
		return err;
	node_set_times(st, ls.mtime ? ls.mtime : job->created, job->created);
	st->st_size = (off_t)ls.size;
	return 0;
}

/* An open that waits for its log to settle. */
struct log_open {
	struct fs *fs;
	uint64_t ticket;
	struct fuse_file_info fi;
};

static void log_file_settled(void *data)
{
	struct log_open *o = data;
	fuse_req_t req = park_claim(o->fs->park, o->ticket);

	/* Interrupted or too late: the open has failed, so its handle goes. */
	if (req)
		handle_reply(o->fs, req, &o->fi);
	else
		handle_close(o->fs, &o->fi);
	free(o);
}

static void log_file_wait(struct fs *fs, fuse_req_t req, struct log *log, struct fuse_file_info *fi)
{
	struct log_open *o = calloc(1, sizeof(*o));

	if (!o) {
		handle_close(fs, fi);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	o->fs = fs;
	o->fi = *fi;
	o->ticket = park_add(fs->park, req, PARK_OPEN, LOG_OPEN_MS);
	log_settle(log, log_file_settled, o);
}

static void log_file_open(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	struct log_handle *lh = calloc(1, sizeof(*lh));
	int err = lh ? log_file_find(fs, node, &lh->log) : -ENOMEM;

	if (err) {
		free(lh);
		fuse_reply_err(req, -err);
		return;
	}
	handle_open(fs, &lh->handle, log_handle_free, fi);
	if (!lh->log || log_settled(lh->log))
		handle_reply(fs, req, fi);
	else
		log_file_wait(fs, req, lh->log, fi);
}

static void log_file_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
			  struct fuse_file_info *fi)
{
	struct log_handle *lh = handle_of(fi);
	char *buf = fs_buffer(fs, size);
	ssize_t n = buf ? 0 : -ENOMEM;

	/* What had not begun at the open may have begun since. */
	if (!lh->log && n == 0)
		n = log_file_find(fs, node, &lh->log);
	if (lh->log && n == 0)
		n = log_read(lh->log, buf, size, (uint64_t)off);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_buf(req, buf, (size_t)n);
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
	.getattr = log_file_getattr,
	.open = log_file_open,
	.read = log_file_read,
	.free = log_node_free,
};

static int log_node_new(struct fs *fs, struct node *dir, const char *tag, const char *key,
			bool merged, struct node **ret)
{
	struct log_node *ln;
	struct node *node;
	bool fresh;

	node = node_get(fs, dir, &log_file_class, tag, &fresh);
	if (!node)
		return -ENOMEM;
	ln = container_of(node, struct log_node, node);
	ln->merged = merged;
	if (key && !ln->key)
		ln->key = strdup(key);
	if (key && !ln->key) {
		node_put(fs, node);
		return -ENOMEM;
	}
	*ret = node;
	return 0;
}

int log_node_merged(struct fs *fs, struct node *dir, struct node **ret)
{
	return log_node_new(fs, dir, "log@", NULL, true, ret);
}

int log_node_get(struct fs *fs, struct node *dir, const char *name, const char *key, bool first,
		 struct node **ret)
{
	char *tag cleanup_free = NULL;

	if (first)
		return log_node_new(fs, dir, "log@first", key, false, ret);
	/* The key is in the tag: a new attempt's "log" is a new file, the old one stays as it was. */
	if (asprintf(&tag, "%s@%s", name, key) < 0) {
		tag = NULL;
		return -ENOMEM;
	}
	return log_node_new(fs, dir, tag, key, false, ret);
}
