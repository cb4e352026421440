/* SPDX-License-Identifier: MIT */
/*
 * Reading directories: the names are listed when one is opened, so that a reader sees each once; the
 * attributes are those of the moment in which an entry is handed over.
 */
#include <errno.h>

#include "fs/fs.h"
#include "fs/handle.h"
#include "fs/listing.h"
#include "fs/node.h"
#include "fs/ops_impl.h"

struct dir_handle {
	struct handle handle;
	struct listing *listing;
	bool read; /* once begun, reading from the start again is rewinddir(3) */
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
	int err = !l ? -ENOMEM : node->class->list ? node->class->list(fs, node, l) : 0;

	if (!err)
		*ret = take_ptr(l);
	return err;
}

void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = ops_fs(req);
	struct listing *l cleanup(listing_freep) = NULL;
	struct dir_handle *dir;
	int err = ops_list(fs, node_of(fs, ino), &l);

	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	dir = calloc(1, sizeof(*dir));
	if (!dir) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	dir->listing = take_ptr(l);
	handle_open(fs, &dir->handle, ops_free_dir, fi);
	handle_reply(fs, req, fi);
}

/*
 * Add entry I of a directory to BUF. The bytes it took; 0: it does not fit. An entry that has gone
 * meanwhile takes none and *GONE is set.
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
	if (i < 2) { /* "." and "..": the kernel takes only the number and the type */
		e.attr.st_ino = i == 1 && dir->parent ? dir->parent->ino : dir->ino;
		e.attr.st_mode = S_IFDIR;
		return fuse_add_direntry_plus(req, buf, room, name, &e, i + 1);
	}
	*gone = ops_find(fs, dir, name, &node) || node_entry(fs, node, &e);
	node_put(fs, node);
	return *gone ? 0 : fuse_add_direntry_plus(req, buf, room, name, &e, i + 1);
}

/* Names that have come and gone since the directory was opened. */
static void ops_rewind(struct fs *fs, struct node *node, struct dir_handle *dir)
{
	struct listing *l = NULL;

	/* A directory that has gone meanwhile is read as it was. */
	if (ops_list(fs, node, &l))
		return;
	listing_free(dir->listing);
	dir->listing = l;
}

void ops_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct fs *fs = ops_fs(req);
	struct dir_handle *dir = handle_of(fi);
	char *buf = fs_buffer(fs, size);
	const char *name;
	size_t used = 0;

	if (!buf) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (off == 0 && dir->read)
		ops_rewind(fs, node_of(fs, ino), dir);
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

void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	handle_close(ops_fs(req), fi);
	fuse_reply_err(req, 0);
}
