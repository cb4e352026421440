/* SPDX-License-Identifier: MIT */
/*
 * The FUSE operations. Each finds the node and calls the operation of the node's class; node.h
 * describes what happens if the class has none. kxfs has no operations for extended attributes and
 * locks, so that the kernel handles these itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/statvfs.h>

#include "backend/base/loop.h"
#include "fs/vfs/fs.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/node.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "fs/vfs/stream.h"
#include "spec/base/mem.h"

/* --- the session --- */

struct fs *fs_new(struct loop *loop, const struct fs_config *config, const struct node_class *root,
		  void *object)
{
	struct fs *fs = new0(struct fs);

	fs->config = *config;
	fs->started = loop_time_ns();
	fs->loop = loop;
	fs->park = park_new();
	fs->serve = serve_new(fs);
	fs->nodes = node_table_new(root, object);
	fs->handles = handles_new();
	fs->streams = streams_new();
	return fs;
}

void fs_close(struct fs *fs)
{
	serve_finish(fs->serve);
	handles_free(take_ptr(fs->handles));
	streams_free(take_ptr(fs->streams));
	node_table_free(take_ptr(fs->nodes));
}

void fs_free(struct fs *fs)
{
	if (!fs)
		return;
	serve_free(fs->serve);
	park_free(fs->park);
	free(fs);
}

static struct fs *fs_of_request(fuse_req_t req)
{
	struct fs *fs = fuse_req_userdata(req);

	fs->requests++;
	serve_begin_request(req);
	return fs;
}

static void ops_init(void *data, struct fuse_conn_info *conn)
{
	conn->want |= conn->capable & (FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_READDIRPLUS);
	/*
	 * Always send attributes with a listing. The kernel's AUTO heuristic would stop requesting
	 * them after the first part of a long listing, because ls reads all names before the first
	 * attribute.
	 */
	conn->want &= ~(FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
			FUSE_CAP_AUTO_INVAL_DATA);
}

static int ops_find(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	return dir->class->lookup ? dir->class->lookup(fs, dir, name, ret) : -ENOENT;
}

static void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs *fs = fs_of_request(req);
	struct node *node = NULL;
	struct fuse_entry_param e;
	int err = ops_find(fs, node_of(fs, parent), name, &node);

	if (!err)
		err = node_entry(fs, node, &e);
	if (err)
		fuse_reply_err(req, -err);
	else if (fuse_reply_entry(req, &e) == -ENOENT)
		node_forget(fs, node, 1);
	node_put(fs, node);
}

static void ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	struct fs *fs = fs_of_request(req);

	if (ino != FUSE_ROOT_ID)
		node_forget(fs, node_of(fs, ino), n);
	fuse_reply_none(req);
}

static void ops_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *v)
{
	struct fs *fs = fs_of_request(req);

	for (size_t i = 0; i < count; i++)
		if (v[i].ino != FUSE_ROOT_ID)
			node_forget(fs, node_of(fs, v[i].ino), v[i].nlookup);
	fuse_reply_none(req);
}

static void ops_reply_attr(struct fs *fs, fuse_req_t req, struct node *node,
			   struct fuse_file_info *fi)
{
	struct stat st;
	int err = node_getattr(fs, node, &st);

	if (!err && fi && node->class->getattr_open)
		node->class->getattr_open(fs, node, fi, &st);
	if (err)
		fuse_reply_err(req, -err);
	else
		fuse_reply_attr(req, &st, node->live ? 0 : FS_TIMEOUT);
}

static void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of_request(req);

	ops_reply_attr(fs, req, node_of(fs, ino), fi);
}

static void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
			struct fuse_file_info *fi)
{
	struct fs *fs = fs_of_request(req);
	struct node *node = node_of(fs, ino);
	int err = 0;

	if (node->class->setattr)
		err = node->class->setattr(fs, node, fuse_req_ctx(req)->pid, attr, to_set, fi);
	else if ((to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) ||
		 ((to_set & FUSE_SET_ATTR_SIZE) && !node->class->write))
		err = -EPERM;
	if (err)
		fuse_reply_err(req, -err);
	else
		ops_reply_attr(fs, req, node, fi);
}

static void ops_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = fs_of_request(req);
	struct node *node = node_of(fs, ino);
	char *target cleanup_free = NULL;
	int err = node->class->readlink ? node->class->readlink(fs, node, &target) : -EINVAL;

	if (err)
		fuse_reply_err(req, -err);
	else
		fuse_reply_readlink(req, target);
}

/* Define ops_OP. It calls OP of the node's class, or replies ERR if the class has no OP. */
#define OPS_OF_CLASS(op, err, params, ...)                                                         \
	static void ops_##op params                                                                \
	{                                                                                          \
		struct fs *fs = fs_of_request(req);                                                \
		struct node *node = node_of(fs, ino);                                              \
		if (node->class->op)                                                               \
			node->class->op(fs, req, node, __VA_ARGS__);                               \
		else                                                                               \
			fuse_reply_err(req, err);                                                  \
	}

/* --- names --- */

OPS_OF_CLASS(create, EPERM,
	     (fuse_req_t req, fuse_ino_t ino, const char *name, mode_t mode,
	      struct fuse_file_info *fi),
	     name, mode, fi)
OPS_OF_CLASS(unlink, EPERM, (fuse_req_t req, fuse_ino_t ino, const char *name), name)
OPS_OF_CLASS(rmdir, EPERM, (fuse_req_t req, fuse_ino_t ino, const char *name), name)
OPS_OF_CLASS(rename, EPERM,
	     (fuse_req_t req, fuse_ino_t ino, const char *name, fuse_ino_t newparent,
	      const char *newname, unsigned flags),
	     name, node_of(fs, newparent), newname, flags)

static void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	fuse_reply_err(req, EPERM);
}

static void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	fuse_reply_err(req, EPERM);
}

static void ops_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, EPERM);
}

static void ops_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
	fuse_reply_err(req, EPERM);
}

/* --- files --- */

static void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of_request(req);
	struct node *node = node_of(fs, ino);

	if (!node->class->open || ((fi->flags & O_ACCMODE) != O_RDONLY && !node->class->write))
		fuse_reply_err(req, EPERM);
	else
		node->class->open(fs, req, node, fi);
}

OPS_OF_CLASS(read, EBADF,
	     (fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi),
	     size, off, fi)
OPS_OF_CLASS(write, EPERM,
	     (fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	      struct fuse_file_info *fi),
	     buf, size, off, fi)
OPS_OF_CLASS(flush, 0, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), fi)
OPS_OF_CLASS(fsync, 0, (fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi),
	     fi)

static void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of_request(req);
	struct node *node = node_of(fs, ino);

	if (node->class->release) {
		node->class->release(fs, req, node, fi);
		return;
	}
	handle_close(fs, fi);
	fuse_reply_err(req, 0);
}

static void ops_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
		     struct fuse_pollhandle *ph)
{
	struct fs *fs = fs_of_request(req);
	struct node *node = node_of(fs, ino);

	if (node->class->poll) {
		node->class->poll(fs, req, node, fi, ph);
		return;
	}
	/* Always ready. The reply ENOSYS would disable poll for the whole mount. */
	if (ph)
		fuse_pollhandle_destroy(ph);
	fuse_reply_poll(req, POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM);
}

/* --- directories: opendir lists the names, readdirplus adds the attributes --- */

struct dir_handle {
	struct handle handle;
	struct listing *listing;
	bool read; /* true after the first read; then offset 0 is a rewinddir(3) */
};

static void ops_free_dir(struct handle *h)
{
	struct dir_handle *dir = container_of(h, struct dir_handle, handle);

	listing_free(dir->listing);
	free(dir);
}

static int ops_list(struct fs *fs, struct node *node, struct listing **ret)
{
	struct listing *l cleanup(listing_freep) = listing_new();
	int err = node->class->list ? node->class->list(fs, node, l) : 0;

	if (!err)
		*ret = take_ptr(l);
	return err;
}

static void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of_request(req);
	struct listing *l = NULL;
	struct dir_handle *dir;
	int err = ops_list(fs, node_of(fs, ino), &l);

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	dir = new0(struct dir_handle);
	dir->listing = l;
	handle_open(fs, &dir->handle, ops_free_dir, fi);
	handle_reply(fs, req, fi);
}

/*
 * Append entry I of DIR, called NAME, to BUF, which has ROOM bytes. Return its size, or 0 if it
 * does not fit. If the entry was removed since the listing was made, return 0 and set *GONE.
 */
static size_t ops_add_entry(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
			    size_t i, char *buf, size_t room, bool *gone)
{
	struct fuse_entry_param e = {0};
	struct node *node = NULL;
	size_t need = fuse_add_direntry_plus(req, NULL, 0, name, NULL, 0);

	*gone = false;
	if (need > room)
		return 0;
	if (i < 2) { /* "." and "..": the kernel uses only these attributes */
		e.attr.st_ino = i == 1 && dir->parent ? dir->parent->ino : dir->ino;
		e.attr.st_mode = S_IFDIR;
		return fuse_add_direntry_plus(req, buf, room, name, &e, i + 1);
	}
	*gone = ops_find(fs, dir, name, &node) || node_listed(fs, node, &e);
	node_put(fs, node);
	return *gone ? 0 : fuse_add_direntry_plus(req, buf, room, name, &e, i + 1);
}

static void ops_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			    struct fuse_file_info *fi)
{
	struct fs *fs = fs_of_request(req);
	struct dir_handle *dir = handle_of(fi);
	char *buf = serve_buffer(size);
	struct listing *again = NULL;
	const char *name;
	size_t used = 0;

	/* For rewinddir(3), list again; if the directory was removed, keep the old names. */
	if (off == 0 && dir->read && ops_list(fs, node_of(fs, ino), &again) == 0) {
		listing_free(dir->listing);
		dir->listing = again;
	}
	dir->read = true;
	for (size_t i = (size_t)off; (name = listing_name(dir->listing, i)); i++) {
		bool gone;
		size_t n = ops_add_entry(fs, req, node_of(fs, ino), name, i, buf + used,
					 size - used, &gone);

		if (n == 0 && !gone)
			break;
		used += n;
	}
	fuse_reply_buf(req, buf, used);
}

static void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	handle_close(fs_of_request(req), fi);
	fuse_reply_err(req, 0);
}

static void ops_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = fs_of_request(req);
	struct statvfs st;
	int err = serve_disk_begin(fs);

	if (!err) {
		err = statvfs(fs->config.disk, &st) < 0 ? -errno : 0;
		serve_disk_end(fs);
	}
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	st.f_namemax = NAME_MAX;
	fuse_reply_statfs(req, &st);
}

const struct fuse_lowlevel_ops fs_ops = {
	.init = ops_init,
	.lookup = ops_lookup,
	.forget = ops_forget,
	.forget_multi = ops_forget_multi,
	.getattr = ops_getattr,
	.setattr = ops_setattr,
	.readlink = ops_readlink,
	.opendir = ops_opendir,
	.readdirplus = ops_readdirplus,
	.releasedir = ops_releasedir,
	.create = ops_create,
	.unlink = ops_unlink,
	.rmdir = ops_rmdir,
	.rename = ops_rename,
	.mkdir = ops_mkdir,
	.mknod = ops_mknod,
	.symlink = ops_symlink,
	.link = ops_link,
	.open = ops_open,
	.read = ops_read,
	.write = ops_write,
	.flush = ops_flush,
	.fsync = ops_fsync,
	.release = ops_release,
	.poll = ops_poll,
	.statfs = ops_statfs,
};
