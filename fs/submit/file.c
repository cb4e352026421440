/* SPDX-License-Identifier: MIT */
/*
 * The class of a file of submit/ or dryrun/: bytes go straight to and from the upload. Which close ends the writing
 * is the question of flush and release; writer.h has the means to answer it, launch.h does what follows.
 */
#include "fs/submit/file.h"

#include <errno.h>
#include <fcntl.h>

#include "backend/base/loop.h"
#include "backend/base/process.h"
#include "fs/submit/launch.h"
#include "fs/submit/writer.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

/* How long an fsync is waited for. */
#define FILE_SYNC_MS 30000

struct file_node {
	struct node node;
	struct upload *upload;
};

struct open_file {
	struct handle handle;
	struct submit *s;
	struct upload *upload;
	bool writable;
	struct upload_writer writer; /* of the upload's list if WRITABLE */
	struct record_owner owner;
	pid_t wrote_tid; /* the thread that wrote last, and its process */
	pid_t wrote;
};

static struct upload *file_upload(const struct node *node)
{
	return container_of(node, const struct file_node, node)->upload;
}

static struct submit *file_submit(const struct node *node)
{
	return node->object;
}

static void file_free(struct node *node)
{
	upload_unref(file_upload(node));
}

/* --- open and close --- */

static void file_closed(struct handle *handle)
{
	struct open_file *h = container_of(handle, struct open_file, handle);

	if (h->writable)
		upload_remove_writer(h->upload, &h->writer);
	upload_close(h->upload);
	upload_unref(h->upload);
	free(h);
}

void submit_file_open(struct fs *fs, fuse_req_t req, struct submit *s, struct upload *u,
		      struct fuse_file_info *fi)
{
	struct open_file *h = new0(struct open_file);

	h->s = s;
	h->upload = upload_ref(u);
	h->writable = (fi->flags & O_ACCMODE) != O_RDONLY;
	h->owner = launch_owner(s, req);
	handle_open(fs, &h->handle, file_closed, fi);
	if (h->writable)
		upload_add_writer(u, &h->writer, writer_process(fuse_req_ctx(req)->pid));
}

static void file_on_open(struct fs *fs, fuse_req_t req, struct node *node,
			 struct fuse_file_info *fi)
{
	struct upload *u = file_upload(node);
	int err = upload_open(u);

	if (!err && (fi->flags & O_TRUNC)) {
		err = upload_truncate(u, 0);
		if (err)
			upload_close(u);
	}
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	submit_file_open(fs, req, file_submit(node), u, fi);
	if (handle_reply_open(req, fi, (fi->flags & O_ACCMODE) != O_RDONLY) == -ENOENT)
		handle_close(fs, fi);
}

/* If the writer of H is being killed, it has written only a part, until somebody writes the file again. */
static void file_note_killed(struct open_file *h, pid_t tid, pid_t process)
{
	struct process_stat stat;

	if (h->writer.dirty && process != 0 &&
	    (process == h->writer.opener || process == h->wrote) && process_stat(tid, &stat) == 0 &&
	    stat.killed)
		upload_set_flaw(h->upload, ECANCELED);
}

/*
 * PROCESS closes H. Is it the one that has opened it, and done with writing? It is not while it
 * has another descriptor (a shell that puts its output aside), nor while a child that wrote
 * last has one (Popen(stdout=f), and then f.close()).
 */
static bool file_is_done(const struct open_file *h, pid_t process, uint64_t ino)
{
	const char *mountpoint = h->s->config.mountpoint;
	int held;

	if (process == 0 || process != h->writer.opener ||
	    writer_holds(process, ino, mountpoint) != 0)
		return false;
	if (h->wrote == 0 || h->wrote == process)
		return true;
	held = writer_holds(h->wrote, ino, mountpoint);
	return held == 0 || held == -ENOENT || held == -ESRCH;
}

static void file_on_flush(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	struct open_file *h = handle_of(fi);
	pid_t tid = fuse_req_ctx(req)->pid;
	pid_t process;

	(void)fs;
	if (!h->writable) {
		fuse_reply_err(req, 0);
		return;
	}
	process = writer_process(tid);
	file_note_killed(h, tid, process);
	/* If the writing is not over here, the release submits. */
	if (file_is_done(h, process, node->ino))
		launch_close(h->s, h->upload, &h->writer, h->owner, req);
	else
		fuse_reply_err(req, 0);
}

/*
 * The record of U says whether somebody writes it, in case that this mount ends before the writer is done.
 * That of a scratch file may say that it was launched, which is over when it is written again, even with the
 * same bytes.
 */
static void file_save(struct submit *s, struct upload *u)
{
	char name[NAME_MAX + 1];

	if (upload_name(u, name) && (spec_name_submits(name) || upload_has_digest(u)))
		save_name(s, name);
}

static void file_on_release(struct fs *fs, fuse_req_t req, struct node *node,
			    struct fuse_file_info *fi)
{
	struct open_file *h = handle_of(fi);
	/* Another open file of the process that opened H will be the one that ends the writing. */
	struct upload_writer *sibling =
		h->writer.dirty ? upload_sibling(h->upload, &h->writer) : NULL;

	struct upload *u cleanup_upload = upload_ref(h->upload);
	struct submit *s = h->s;

	(void)node;
	if (sibling)
		upload_set_dirty(sibling);
	else if (h->writer.dirty)
		launch_close(s, u, &h->writer, h->owner, NULL);
	handle_close(fs, fi);
	if (upload_end_writing(u))
		file_save(s, u);
	fuse_reply_err(req, 0);
}

/* --- bytes --- */

static void file_on_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
			 struct fuse_file_info *fi)
{
	const struct open_file *h = handle_of(fi);
	char *buf = serve_buffer(size);
	ssize_t n = upload_read(h->upload, buf, size, off);

	(void)fs, (void)node;
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_buf(req, buf, (size_t)n);
}

static void file_on_write(struct fs *fs, fuse_req_t req, struct node *node, const char *buf,
			  size_t size, off_t off, struct fuse_file_info *fi)
{
	struct open_file *h = handle_of(fi);
	pid_t tid = fuse_req_ctx(req)->pid;
	int err;

	(void)fs, (void)node;
	if (upload_is_spent(h->upload, &h->writer)) {
		fuse_reply_err(req, EBUSY);
		return;
	}
	if (fi->flags & O_APPEND)
		off = (off_t)upload_size(h->upload);
	if (tid != h->wrote_tid)
		h->wrote = writer_process(tid);
	h->wrote_tid = tid;
	upload_set_dirty(&h->writer);
	if (upload_begin_writing(h->upload))
		file_save(h->s, h->upload);
	err = upload_write(h->upload, buf, size, off);
	if (err) {
		launch_show_flaw(h->s, h->upload, h->owner);
		fuse_reply_err(req, -err);
	} else {
		fuse_reply_write(req, size);
	}
}

struct file_sync {
	struct submit *s;
	struct upload *upload; /* a reference, and open */
	uint64_t ticket;
	int err;
};

static void file_sync_work(void *data)
{
	struct file_sync *sync = data;

	sync->err = upload_sync(sync->upload);
}

static void file_sync_done(void *data)
{
	struct file_sync *sync = data;
	fuse_req_t req = park_claim(sync->s->fs->park, sync->ticket);

	if (req)
		fuse_reply_err(req, -sync->err);
	upload_close(sync->upload);
	upload_unref(sync->upload);
	free(sync);
}

static void file_sync_start(void *data)
{
	const struct file_sync *sync = data;

	loop_work(sync->s->fs->loop, file_sync_work, file_sync_done, data);
}

static void file_on_fsync(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	struct upload *u = file_upload(node);
	struct file_sync *sync;
	int err = upload_open(u);

	(void)fi;
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	sync = new0(struct file_sync);
	sync->s = file_submit(node);
	sync->upload = upload_ref(u);
	sync->ticket = park_add(fs->park, req, PARK_CLOSE, FILE_SYNC_MS);
	loop_post(fs->loop, file_sync_start, sync);
}

/* --- attributes --- */

static int file_on_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	upload_stat(file_upload(node), st);
	st->st_mode = (st->st_mode & ~fs->config.umask) | S_IRUSR | S_IWUSR;
	return 0;
}

/* U is open; H is the handle, or NULL. */
static int file_set_attr(struct upload *u, const struct stat *attr, int to_set, struct open_file *h)
{
	int err = 0;

	if (to_set & FUSE_SET_ATTR_SIZE) {
		if (h && upload_is_spent(u, &h->writer))
			return -EBUSY;
		err = upload_truncate(u, attr->st_size);
		if (!err && h)
			upload_set_dirty(&h->writer);
	}
	return err ? err : upload_set_attr(u, attr, to_set);
}

static void file_on_setattr(struct fs *fs, fuse_req_t req, struct node *node, struct stat *attr,
			    int to_set, struct fuse_file_info *fi)
{
	struct upload *u = file_upload(node);
	struct stat st;
	int err = upload_open(u);

	if (!err) {
		err = file_set_attr(u, attr, to_set, fi ? handle_of(fi) : NULL);
		upload_close(u);
	}
	if (!err)
		err = node_getattr(fs, node, &st);
	if (err)
		fuse_reply_err(req, -err);
	else
		fuse_reply_attr(req, &st, node->live ? 0 : FS_TIMEOUT);
}

static const struct node_class file_class = {
	.name = "submit-file",
	.mode = S_IFREG | 0644,
	.size = sizeof(struct file_node),
	.getattr = file_on_getattr,
	.open = file_on_open,
	.read = file_on_read,
	.write = file_on_write,
	.flush = file_on_flush,
	.fsync = file_on_fsync,
	.release = file_on_release,
	.setattr = file_on_setattr,
	.free = file_free,
};

struct node *submit_file_node(struct fs *fs, struct node *dir, struct upload *u)
{
	/* The tag is not the name, which changes and then means another file. */
	char *tag cleanup_free = text_print("i%ju", (uintmax_t)upload_ino(u));
	bool fresh;
	struct node *node = node_get(fs, dir, &file_class, tag, &fresh);

	if (!fresh && file_upload(node) != u) {
		/* A file that was removed had this inode number, and the kernel still knows it. */
		node_forget_name(fs, node);
		node_put(fs, node);
		node = node_get(fs, dir, &file_class, tag, &fresh);
	}
	if (fresh) {
		container_of(node, struct file_node, node)->upload = upload_ref(u);
		/* In dryrun/ a manifest may replace the content at any moment. */
		node_set_live(node, file_submit(dir)->dry);
	}
	return node;
}
