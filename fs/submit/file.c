/* SPDX-License-Identifier: MIT */
/*
 * The class of the files of submit/ and dryrun/. Flush and release find out whether the writing
 * process has finished (writer.h). If so, they launch the file (launch.h).
 */
#include "fs/submit/save.h"

#include <errno.h>
#include <fcntl.h>

#include "backend/base/diag.h"
#include "backend/base/process.h"
#include "fs/submit/launch.h"
#include "fs/submit/writer.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"

/* deadline of an open that waits for the bytes of the file */
#define FILE_OPEN_MS 10000

struct file_node {
	struct node node;
	struct upload *upload;
	unsigned taken; /* upload_look.taken when the node was made */
};

struct open_file {
	struct handle handle;
	struct submit *s;
	struct upload *upload;
	bool writable;
	struct upload_writer writer; /* in the upload's list, if WRITABLE */
	struct file_owner owner;
	pid_t wrote_tid; /* the thread that wrote last; 0 if unknown */
	/* that thread's process; file_check_end may replace it by the process's parent */
	pid_t wrote;
	bool looked; /* true if file_look has run */
	struct holders holders;
};

static struct upload *file_upload(const struct node *node)
{
	return container_of(node, const struct file_node, node)->upload;
}

static unsigned file_taken(const struct node *node)
{
	return container_of(node, const struct file_node, node)->taken;
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

static bool is_writable(const struct fuse_file_info *fi)
{
	return (fi->flags & O_ACCMODE) != O_RDONLY;
}

/*
 * Called after a change through H. Save the change soon, unless H has contents of its own: then the
 * close of H saves them.
 */
static void file_changed(struct open_file *h)
{
	if (!h->writer.content)
		save_soon(h->s, h->upload);
}

/*
 * The kernel must not cache the attributes while the file has writers, because open files may
 * differ in size. In dryrun/, a manifest may replace the contents at any time.
 */
static void file_set_live(struct node *node)
{
	node_set_live(node,
		      file_submit(node)->dry || upload_look(file_upload(node), NULL).has_writers);
}

int submit_file_open(struct fs *fs, fuse_req_t req, struct node *node, bool made,
		     struct fuse_file_info *fi)
{
	struct submit *s = file_submit(node);
	struct upload *u = file_upload(node);
	unsigned taken = file_taken(node);
	bool empties = fi->flags & O_TRUNC;
	char name[NAME_MAX + 1];
	/* ESTALE makes the kernel repeat the lookup, which is out of date. */
	bool stale = !names_of(s->names, u, name) ||
		     (is_writable(fi) && taken != upload_look(u, NULL).taken);
	int there = stale ? -ESTALE : upload_open(u, empties);
	struct open_file *h;

	if (there && there != -EAGAIN)
		return there;
	h = new0(struct open_file);
	h->s = s;
	h->upload = upload_ref(u);
	h->writable = is_writable(fi);
	h->owner = launch_owner(s, req);
	handle_open(fs, &h->handle, file_closed, fi);
	if (h->writable)
		upload_add_writer(u, &h->writer, writer_process(fuse_req_ctx(req)->pid, NULL),
				  taken, made);
	if (empties) {
		(void)upload_truncate(u, &h->writer, 0);
		file_changed(h);
	}
	file_set_live(node);
	return there;
}

struct file_opening {
	struct fs *fs;
	struct fuse_file_info fi;
	uint64_t ticket;
};

static void file_loaded(void *data, int err)
{
	struct file_opening *o = data;
	fuse_req_t req = park_claim(o->fs->park, o->ticket);

	if (req && err)
		fuse_reply_err(req, -err);
	if (!req || err || handle_reply_open(req, &o->fi, is_writable(&o->fi)) == -ENOENT)
		handle_close(o->fs, &o->fi);
	free(o);
}

static void file_on_open(struct fs *fs, fuse_req_t req, struct node *node,
			 struct fuse_file_info *fi)
{
	struct file_opening *o;
	int err = submit_file_open(fs, req, node, false, fi);

	if (err && err != -EAGAIN) {
		fuse_reply_err(req, -err);
	} else if (err) {
		o = new0(struct file_opening);
		o->fs = fs;
		o->fi = *fi;
		o->ticket = park_add(fs->park, req, PARK_OPEN, FILE_OPEN_MS);
		save_file(file_submit(node), file_upload(node), SAVE_LOAD, NULL, file_loaded, o);
	} else if (handle_reply_open(req, fi, is_writable(fi)) == -ENOENT) {
		handle_close(fs, fi);
	}
}

/* Return TID's process, or 0 if it is unknown. TID may belong to another pid namespace. */
static pid_t file_process(const struct open_file *h, pid_t tid, bool *ret_in_exec)
{
	if (ret_in_exec)
		*ret_in_exec = false;
	return h->writer.unseen && h->writer.opener == 0 ? 0 : writer_process(tid, ret_in_exec);
}

/*
 * True if PROCESS has no descriptor of H any more. TID is one of its threads. /proc shows how many
 * descriptors of a file a process has, but not to which handle each belongs. So subtract one
 * descriptor for each other handle that PROCESS has opened.
 */
static bool file_is_left(struct open_file *h, pid_t tid, pid_t process, uint64_t ino)
{
	int held = writer_holds(tid, ino, h->s->config.mountpoint);

	return held >= 0 && (size_t)held <= upload_others(h->upload, &h->writer, process);
}

/*
 * True if the close of H by thread TID of PROCESS ends the writing. Three conditions must hold.
 * PROCESS has opened H. PROCESS has no other descriptor of H: a shell that redirects its output
 * still has one. The process that wrote last has no descriptor of H: with Popen(stdout=f), the
 * child still has one when the parent calls f.close().
 *
 * If /proc does not show the processes, decide by WHO, the number of the closing process (struct
 * holders). Read /proc/TID, not /proc/PROCESS, which shows no descriptors if the first thread has
 * ended.
 */
static bool file_is_done(struct open_file *h, pid_t tid, pid_t process, uint64_t who, uint64_t ino)
{
	bool left = holders_closed(&h->holders, who);
	int held;

	if (h->writer.unseen)
		return left && upload_look(h->upload, &h->writer).is_dirty;
	if (process == 0 || process != h->writer.opener || !file_is_left(h, tid, process, ino))
		return false;
	if (h->wrote == 0 || h->wrote == process)
		return true;
	if (serve_disk_begin(h->s->fs) < 0)
		return false;
	held = writer_holds_still(h->wrote, ino, h->s->config.mountpoint);
	serve_disk_end(h->s->fs);
	return held == -ENOENT || held == -ESRCH ||
	       (held >= 0 && (size_t)held <= upload_others(h->upload, &h->writer, h->wrote));
}

/*
 * Called when thread TID of PROCESS, which has opened or written H, closes H. If a signal has ended
 * PROCESS, mark the contents as incomplete. If kxfs can't find out whether a signal has ended it,
 * mark the contents unless they end like a complete document.
 *
 * If PROCESS has no descriptor left, but its parent (for example a shell) has one, the parent
 * becomes the writer. The parent may write more, and a signal may end it, too.
 */
static void file_check_end(struct open_file *h, pid_t tid, pid_t process, uint64_t ino)
{
	const char *mountpoint = h->s->config.mountpoint;
	struct process_stat stat;
	int held;

	if (process_stat(tid, &stat) < 0)
		return;
	if (stat.signal > 0)
		upload_set_flaw(h->upload, &h->writer, ECANCELED);
	else if (stat.signal == PROCESS_HIDDEN && !upload_look(h->upload, &h->writer).is_whole)
		upload_set_flaw(h->upload, &h->writer, EINVAL);
	if (process == h->writer.opener || writer_holds(tid, ino, mountpoint) != 0 ||
	    serve_disk_begin(h->s->fs) < 0)
		return;
	held = writer_holds_still(stat.parent, ino, mountpoint);
	serve_disk_end(h->s->fs);
	if (held > 0) {
		h->wrote = stat.parent;
		h->wrote_tid = 0;
	}
}

static void file_on_flush(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	struct open_file *h = handle_of(fi);
	pid_t tid = fuse_req_ctx(req)->pid;
	bool in_exec = false;
	pid_t process = h->writable ? file_process(h, tid, &in_exec) : 0;

	/* A process in exec may keep another descriptor, so this close does not end the writing. */
	if (!h->writable || in_exec) {
		fuse_reply_err(req, 0);
		return;
	}
	if (h->writer.dirty && process != 0 && (process == h->writer.opener || process == h->wrote))
		file_check_end(h, tid, process, node->ino);
	/* If this close does not end the writing, a later close or the release launches. */
	if (file_is_done(h, tid, process, fi->lock_owner, node->ino))
		launch_close(h->s, h->upload, &h->writer, h->owner, req);
	else if (upload_look(h->upload, &h->writer).is_lost)
		fuse_reply_err(req, EBUSY);
	else
		launch_wait(h->s, h->upload, SAVE_BYTES, req);
}

static void file_on_release(struct fs *fs, fuse_req_t req, struct node *node,
			    struct fuse_file_info *fi)
{
	struct open_file *h = handle_of(fi);
	struct upload *u cleanup_upload = upload_ref(h->upload);
	struct submit *s = h->s;

	if (h->writable && upload_look(u, &h->writer).is_dirty)
		launch_close(s, u, &h->writer, h->owner, NULL);
	handle_close(fs, fi);
	file_set_live(node);
	fuse_reply_err(req, 0);
}

/* --- bytes --- */

static void file_on_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
			 struct fuse_file_info *fi)
{
	const struct open_file *h = handle_of(fi);
	char *buf = serve_buffer(size);

	fuse_reply_buf(req, buf,
		       upload_read(h->upload, h->writable ? &h->writer : NULL, buf, size, off));
}

/*
 * Called before the first change through H, which thread TID makes. Check whether /proc shows the
 * process that writes. Return -EINTR if the request was answered meanwhile.
 */
static int file_look(struct open_file *h, pid_t tid, uint64_t ino)
{
	struct submit *s = h->s;
	int err, answered;

	if (serve_disk_begin(s->fs) < 0)
		return 0;
	err = writer_look(h->writer.opener, tid, ino, s->config.mountpoint);
	answered = serve_disk_end(s->fs);
	h->looked = true;
	if (!err)
		return answered;
	upload_set_unseen(h->upload, &h->writer, err == -ESRCH);
	if (atomic_exchange(&s->fs->unseen, -err) != -err)
		diag(DIAG_INFO,
		     "%s/: kxfs can't see a process that writes here, so each close by this "
		     "process may launch the file; see .kxfs/info",
		     s->name);
	return answered;
}

/*
 * Called before a change of H by thread TID of process WHO. Return -EBUSY if H must not write, and
 * -EINTR if park has answered the request meanwhile.
 */
static int file_begin(struct open_file *h, pid_t tid, uint64_t who, uint64_t ino)
{
	int err = h->looked ? 0 : file_look(h, tid, ino);

	if (err)
		return err;
	holders_wrote(&h->holders, who);
	return upload_look(h->upload, &h->writer).may_write ? 0 : -EBUSY;
}

static void file_on_write(struct fs *fs, fuse_req_t req, struct node *node, const char *buf,
			  size_t size, off_t off, struct fuse_file_info *fi)
{
	struct open_file *h = handle_of(fi);
	pid_t tid = fuse_req_ctx(req)->pid;
	int err;

	if (tid != h->wrote_tid)
		h->wrote = file_process(h, tid, NULL);
	h->wrote_tid = tid;
	err = file_begin(h, tid, fi->lock_owner, node->ino);
	if (err == -EINTR)
		upload_fail(h->upload, &h->writer, err);
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	if (fi->flags & O_APPEND)
		off = (off_t)upload_look(h->upload, &h->writer).size;
	err = upload_write(h->upload, &h->writer, buf, size, off);
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	file_changed(h);
	fuse_reply_write(req, size);
}

static void file_on_fsync(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	struct open_file *h = handle_of(fi);

	/* The file now shows these contents, but only a close launches them. */
	if (h->writable)
		(void)upload_show(h->upload, &h->writer);
	launch_wait(h->s, h->upload, SAVE_SYNC, req);
}

/* --- attributes --- */

static void file_fill(struct fs *fs, struct upload *u, const struct upload_writer *w,
		      struct stat *st)
{
	upload_stat(u, w, st);
	st->st_mode = (st->st_mode & ~fs->config.umask) | S_IRUSR | S_IWUSR;
}

static int file_on_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	file_fill(fs, file_upload(node), NULL, st);
	return 0;
}

/* Report the size of the handle's contents, because its process may append to them. */
static void file_on_getattr_open(struct fs *fs, struct node *node, struct fuse_file_info *fi,
				 struct stat *st)
{
	const struct open_file *h = handle_of(fi);

	if (h->writable)
		file_fill(fs, h->upload, &h->writer, st);
}

/*
 * A truncate launches nothing: only a close does. Without a handle, the bytes may not be in memory,
 * so allow only size 0.
 */
static int file_on_setattr(struct fs *fs, struct node *node, pid_t tid, const struct stat *attr,
			   int to_set, struct fuse_file_info *fi)
{
	struct upload *u = file_upload(node);
	struct open_file *h = fi ? handle_of(fi) : NULL;
	const bool sizes = to_set & FUSE_SET_ATTR_SIZE;
	int err = 0;

	if (sizes && h)
		err = file_begin(h, tid, 0, node->ino);
	else if (sizes && attr->st_size > 0)
		err = -EPERM;
	if (!err && sizes)
		err = upload_truncate(u, h ? &h->writer : NULL, attr->st_size);
	if (!err && (to_set & ~FUSE_SET_ATTR_SIZE))
		err = upload_set_attr(u, attr, to_set);
	save_soon(file_submit(node), u);
	return err;
}

static const struct node_class file_class = {
	.name = "submit-file",
	.mode = S_IFREG | 0644,
	.size = sizeof(struct file_node),
	.getattr = file_on_getattr,
	.getattr_open = file_on_getattr_open,
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
	/* Don't use the name: a renamed file keeps its node; a new file may get the old name. */
	char *tag cleanup_free = text_print("%ju", (uintmax_t)upload_id(u));
	unsigned taken = upload_look(u, NULL).taken;
	bool fresh;
	struct node *node = node_get(fs, dir, &file_class, tag, &fresh);

	/* a node that was made before the file was taken from its writers is out of date */
	if (!fresh && file_taken(node) != taken) {
		node_forget_name(fs, node);
		node_put(fs, node);
		node = node_get(fs, dir, &file_class, tag, &fresh);
	}
	if (fresh) {
		container_of(node, struct file_node, node)->upload = upload_ref(u);
		container_of(node, struct file_node, node)->taken = taken;
		file_set_live(node);
	}
	return node;
}
