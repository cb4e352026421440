/* SPDX-License-Identifier: MIT */
/* The list of open handles; see handle.h. */
#include <errno.h>
#include <utlist.h>

#include "backend/base/lock.h"
#include "fs/vfs/handle.h"
#include "spec/base/mem.h"

struct handles {
	struct lock lock;
	struct handle *list;
};

struct handles *handles_new(void)
{
	struct handles *all = new0(struct handles);

	all->lock = (struct lock)LOCK_INIT;
	return all;
}

void handles_free(struct handles *all)
{
	struct handle *h, *next;

	if (!all)
		return;
	DL_FOREACH_SAFE(all->list, h, next)
		h->free(h);
	free(all);
}

void handle_open(struct fs *fs, struct handle *h, void (*free_fn)(struct handle *),
		 struct fuse_file_info *fi)
{
	h->free = free_fn;
	fi->fh = (uintptr_t)h;
	fi->direct_io = 1;
	fuse_set_noflush(fi, true);
	lock_scope(&fs->handles->lock);
	DL_APPEND(fs->handles->list, h);
}

void handle_close(struct fs *fs, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);

	{
		lock_scope(&fs->handles->lock);
		DL_DELETE(fs->handles->list, h);
	}
	h->free(h);
}

void handle_reply(struct fs *fs, fuse_req_t req, struct fuse_file_info *fi)
{
	if (fuse_reply_open(req, fi) == -ENOENT)
		handle_close(fs, fi);
}
