/* SPDX-License-Identifier: MIT */
/* Attributes of a file of submit/: as memory has them, and changed on disk. FUSE thread. */
#include <errno.h>
#include <fcntl.h>

#include "fs/options.h"
#include "fs/submit_impl.h"

int submit_getattr_file(struct fs *fs, struct node *node, struct stat *st)
{
	const struct submit_file *f = submit_file_of(node);

	lock_scope(&f->s->lock);
	st->st_mode = S_IFREG | (f->mode & ~fs->options->umask) | S_IRUSR | S_IWUSR;
	st->st_uid = f->author.uid;
	st->st_gid = f->author.gid;
	st->st_size = f->st.st_size;
	st->st_atim = f->st.st_atim;
	st->st_mtim = f->st.st_mtim;
	st->st_ctim = f->st.st_ctim;
	return 0;
}

static struct timespec attr_time(const struct timespec *t, int to_set, int set, int set_now)
{
	if (to_set & set_now)
		return (struct timespec){.tv_nsec = UTIME_NOW};
	if (to_set & set)
		return *t;
	return (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int attr_set_times(const struct submit_file *f, const struct stat *attr, int to_set)
{
	const struct timespec times[2] = {
		attr_time(&attr->st_atim, to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW),
		attr_time(&attr->st_mtim, to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW),
	};

	return futimens(f->fd, times) < 0 ? -errno : 0;
}

static int attr_set_owner(struct submit_file *f, const struct stat *attr, int to_set)
{
	struct submit_author want = f->author;

	if (to_set & FUSE_SET_ATTR_UID)
		want.uid = attr->st_uid;
	if (to_set & FUSE_SET_ATTR_GID)
		want.gid = attr->st_gid;
	if (want.uid == f->author.uid && want.gid == f->author.gid)
		return 0;
	if (fchown(f->fd, want.uid, want.gid) < 0)
		return -errno;
	f->author = want;
	/* chown may have cleared the mark of accepted content. */
	submit_file_save_mode(f);
	return 0;
}

static void attr_set_mode(struct submit_file *f, mode_t mode)
{
	{
		lock_scope(&f->s->lock);
		f->mode = mode & 0777;
		f->modes++;
	}
	submit_file_save_mode(f);
}

/* F is held. */
static int attr_set(struct submit_file *f, const struct stat *attr, int to_set,
		    struct submit_handle *h)
{
	const int owner = FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
	const int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME |
			  FUSE_SET_ATTR_MTIME_NOW;
	int err = 0;

	if (to_set & FUSE_SET_ATTR_SIZE) {
		if (h && submit_handle_is_spent(h))
			return -EBUSY;
		err = submit_truncate(f, attr->st_size);
		if (!err && h)
			h->dirty = true;
	}
	if (!err && (to_set & owner))
		err = attr_set_owner(f, attr, to_set);
	if (!err && (to_set & FUSE_SET_ATTR_MODE))
		attr_set_mode(f, attr->st_mode);
	if (!err && (to_set & times))
		err = attr_set_times(f, attr, to_set);
	submit_file_refresh(f);
	return err;
}

void submit_setattr_file(struct fs *fs, fuse_req_t req, struct node *node, struct stat *attr,
			 int to_set, struct fuse_file_info *fi)
{
	struct submit_file *f = submit_file_of(node);
	struct stat st;
	int err = submit_file_hold(f);

	if (!err) {
		err = attr_set(f, attr, to_set, fi ? handle_of(fi) : NULL);
		submit_file_drop(f);
	}
	if (!err)
		err = node_getattr(fs, node, &st);
	if (err)
		fuse_reply_err(req, -err);
	else
		fuse_reply_attr(req, &st, node->live ? 0 : FS_TIMEOUT);
}
