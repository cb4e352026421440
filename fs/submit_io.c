/* SPDX-License-Identifier: MIT */
/*
 * What is done with a file of submit/ once it is open: bytes go straight to and from the file in
 * STATE/submit/, on the FUSE thread, as the spool's do. Which close ends the writing is the
 * question of flush and release; fs/writer.h has the means to answer it.
 */
#include <errno.h>
#include <fcntl.h>
#include <utlist.h>

#include "fs/park.h"
#include "fs/submit_impl.h"
#include "fs/writer.h"
#include "spec/name.h"

struct file_node {
	struct node node;
	struct submit_file *file;
};

struct submit_file *submit_file_of(struct node *node)
{
	return container_of(node, struct file_node, node)->file;
}

struct node *submit_file_node(struct fs *fs, struct node *dir, struct submit_file *f)
{
	struct node *node;
	char tag[32];
	bool fresh;

	/* Not the name: it changes, and means another file in turn. */
	snprintf(tag, sizeof(tag), "i%ju", (uintmax_t)f->ino);
	node = node_get(fs, dir, &submit_file_class, tag, &fresh);
	if (node && !fresh && submit_file_of(node) != f) {
		/* A removed file had this number, and the kernel still knows it. */
		node_forget_name(fs, node);
		node_put(fs, node);
		node = node_get(fs, dir, &submit_file_class, tag, &fresh);
	}
	if (node && fresh) {
		submit_file_ref(f);
		container_of(node, struct file_node, node)->file = f;
		/* A manifest comes in place of what was written at any moment. */
		node->live = f->s->dry;
	}
	return node;
}

static void io_free_node(struct node *node)
{
	submit_file_unref(submit_file_of(node));
}

/* --- open and close --- */

static void io_free_handle(struct handle *handle)
{
	struct submit_handle *h = container_of(handle, struct submit_handle, handle);

	if (h->writable) {
		lock_scope(&h->file->s->lock);
		DL_DELETE(h->file->handles, h);
	}
	submit_file_drop(h->file);
	submit_file_unref(h->file);
	free(h);
}

int submit_handle_open(struct fs *fs, fuse_req_t req, struct submit_file *f,
		       struct fuse_file_info *fi)
{
	struct submit_handle *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	submit_file_ref(f);
	h->file = f;
	h->writable = (fi->flags & O_ACCMODE) != O_RDONLY;
	h->author = submit_author_of(fs, req);
	handle_open(fs, &h->handle, io_free_handle, fi);
	if (h->writable) {
		h->opener = writer_process(fuse_req_ctx(req)->pid);
		fi->noflush = 0;
		lock_scope(&f->s->lock);
		DL_APPEND(f->handles, h);
	}
	return 0;
}

/* The bytes have changed in a way that may end what was wrong with them. */
static void io_changed(struct submit_file *f)
{
	submit_file_refresh(f);
	if (submit_file_size(f) == 0 || f->flaw == ECANCELED)
		f->flaw = 0;
}

int submit_truncate(struct submit_file *f, off_t size)
{
	int err = submit_file_room(f, (uint64_t)size);

	if (!err)
		err = submit_file_change(f);
	if (err)
		return err;
	if (ftruncate(f->fd, size) < 0)
		return -errno;
	io_changed(f);
	return 0;
}

static void io_open(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct submit_file *f = submit_file_of(node);
	int err = submit_file_hold(f);

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	if (fi->flags & O_TRUNC)
		err = submit_truncate(f, 0);
	if (!err)
		err = submit_handle_open(fs, req, f, fi);
	if (err) {
		submit_file_drop(f);
		fuse_reply_err(req, -err);
		return;
	}
	handle_reply(fs, req, fi);
}

/*
 * The writer of H is being killed: what it wrote is only a part. A later writer makes good for it.
 */
static void io_note_killed(struct submit_handle *h, pid_t tid, pid_t process)
{
	if (h->dirty && process != 0 && (process == h->opener || process == h->wrote) &&
	    writer_killed(tid))
		h->file->flaw = ECANCELED;
}

/*
 * PROCESS, which has opened H and now closes it, was the one that writes, and it is done. It is not when
 * it has another descriptor (a shell that puts its output aside), nor while a child that wrote
 * last has one (Popen(stdout=f), and then f.close()).
 */
static bool io_is_done(struct fs *fs, const struct submit_handle *h, pid_t process, uint64_t ino)
{
	int held;

	if (process == 0 || process != h->opener || writer_holds(process, ino, fs->mountpoint) != 0)
		return false;
	if (h->wrote == 0 || h->wrote == process)
		return true;
	held = writer_holds(h->wrote, ino, fs->mountpoint);
	return held == 0 || held == -ENOENT || held == -ESRCH;
}

static void io_flush(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct submit_handle *h = handle_of(fi);
	pid_t tid = fuse_req_ctx(req)->pid;
	pid_t process;

	if (!h->writable) {
		fuse_reply_err(req, 0);
		return;
	}
	process = writer_process(tid);
	io_note_killed(h, tid, process);
	/* Whatever is left undone here is done at release. */
	if (io_is_done(fs, h, process, node->ino))
		submit_commit(h, req);
	else
		fuse_reply_err(req, 0);
}

/* Another open handle of the process that opened H: it will be the one that ends the writing. */
static struct submit_handle *io_sibling(struct submit_handle *h)
{
	struct submit_handle *other;

	lock_scope(&h->file->s->lock);
	DL_FOREACH(h->file->handles, other)
		if (other != h && h->opener != 0 && other->opener == h->opener)
			return other;
	return NULL;
}

static void io_release(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct submit_handle *h = handle_of(fi);
	struct submit_handle *sibling = h->dirty ? io_sibling(h) : NULL;

	(void)node;
	if (sibling)
		sibling->dirty = true;
	else if (h->dirty)
		submit_commit(h, NULL);
	handle_close(fs, fi);
	fuse_reply_err(req, 0);
}

/* --- bytes --- */

static void io_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	const struct submit_handle *h = handle_of(fi);
	char *buf = fs_buffer(fs, size);
	ssize_t n = buf ? pread(h->file->fd, buf, size, off) : -1;

	(void)node;
	if (n < 0)
		fuse_reply_err(req, buf ? errno : ENOMEM);
	else
		fuse_reply_buf(req, buf, (size_t)n);
}

/* What H's writing has become can't be changed through H any more, or not now. */
bool submit_handle_is_spent(struct submit_handle *h)
{
	lock_scope(&h->file->s->lock);
	return h->spent || h->seq != 0;
}

int submit_read(struct submit_file *f, char **ret, size_t *ret_len)
{
	size_t len = (size_t)submit_file_size(f);
	char *text cleanup_free = malloc(len + 1);

	if (!text)
		return -ENOMEM;
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(f->fd, text + done, len - done, (off_t)done);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	text[len] = '\0';
	*ret = take_ptr(text);
	*ret_len = len;
	return 0;
}

int submit_pwrite(int fd, const char *buf, size_t size, off_t off)
{
	while (size > 0) {
		ssize_t n = pwrite(fd, buf, size, off);

		if (n < 0)
			return -errno;
		buf += n;
		off += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Part of what should be in F is not. */
static void io_flawed(struct submit_handle *h, int err)
{
	char name[NAME_MAX + 1];

	h->file->flaw = -err;
	if (submit_file_name(h->file, name) && spec_name_submits(name))
		submit_say_flaw(h->file, name, -err, h->author);
}

static void io_note_writer(struct submit_handle *h, pid_t tid)
{
	if (tid != h->wrote_tid)
		h->wrote = writer_process(tid);
	h->wrote_tid = tid;
	h->dirty = true;
}

static void io_write(struct fs *fs, fuse_req_t req, struct node *node, const char *buf, size_t size,
		     off_t off, struct fuse_file_info *fi)
{
	struct submit_handle *h = handle_of(fi);
	struct submit_file *f = h->file;
	int err;

	(void)fs, (void)node;
	if (submit_handle_is_spent(h)) {
		fuse_reply_err(req, EBUSY);
		return;
	}
	if (fi->flags & O_APPEND)
		off = (off_t)submit_file_size(f);
	io_note_writer(h, fuse_req_ctx(req)->pid);
	err = submit_file_room(f, (uint64_t)off + size);
	if (!err)
		err = submit_file_change(f);
	if (!err) {
		err = submit_pwrite(f->fd, buf, size, off);
		io_changed(f);
	}
	if (err) {
		io_flawed(h, err);
		fuse_reply_err(req, -err);
	} else {
		fuse_reply_write(req, size);
	}
}

struct io_sync {
	struct submit_file *file; /* a reference and a hold */
	struct park *park;
	uint64_t ticket;
	int err;
};

static void io_sync_work(void *data)
{
	struct io_sync *sync = data;

	sync->err = fdatasync(sync->file->fd) < 0 ? errno : 0;
}

static void io_sync_done(void *data)
{
	struct io_sync *sync = data;
	fuse_req_t req = park_claim(sync->park, sync->ticket);

	if (req)
		fuse_reply_err(req, sync->err);
	submit_file_drop(sync->file);
	submit_file_unref(sync->file);
	free(sync);
}

static void io_start_sync(void *data)
{
	const struct io_sync *sync = data;

	loop_work(sync->file->s->fs->loop, io_sync_work, io_sync_done, data);
}

static void io_fsync(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct submit_file *f = submit_file_of(node);
	struct io_sync *sync = calloc(1, sizeof(*sync));

	(void)fi;
	if (!sync || submit_file_hold(f) < 0) {
		free(sync);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	submit_file_ref(f);
	sync->file = f;
	sync->park = fs->park;
	sync->ticket = park_add(fs->park, req, PARK_CLOSE, SUBMIT_CLOSE_MS);
	loop_post(fs->loop, io_start_sync, sync);
}

const struct node_class submit_file_class = {
	.name = "submit-file",
	.mode = S_IFREG | 0644,
	.size = sizeof(struct file_node),
	.getattr = submit_getattr_file,
	.open = io_open,
	.read = io_read,
	.write = io_write,
	.flush = io_flush,
	.fsync = io_fsync,
	.release = io_release,
	.setattr = submit_setattr_file,
	.free = io_free_node,
};
