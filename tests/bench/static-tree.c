/* SPDX-License-Identifier: MIT */
/*
 * The yardstick for kxfs: the smallest libfuse filesystem of the same kind (low-level API, one
 * thread, direct_io, attributes and names valid for 1 s). It keeps a tree in memory and does
 * nothing else:
 *
 *	static-tree MOUNTPOINT N
 *
 * It starts with a file `state` of 8 bytes, dir/ with N directories, and an empty submit/. Files,
 * directories and symbolic links can be created, written and removed, so that it accepts the same
 * requests as kxfs. Their cost here is the cost of FUSE on this machine. Nothing is freed before
 * the end: an inode number is the address of its node, and the kernel may use it until it forgets
 * the node. The index of an entry in its directory never changes, so a listing can continue while
 * entries are removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

struct node {
	mode_t mode;
	char *name;
	char *data; /* a file's contents, or a link's target */
	size_t size;
	struct node **entries; /* NULL: a removed entry */
	size_t n_entries;
};

static struct node root = {.mode = S_IFDIR | 0755};

static struct node *node_of(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? &root : (struct node *)ino;
}

static struct stat attributes(struct node *n)
{
	return (struct stat){
		.st_ino = n == &root ? FUSE_ROOT_ID : (ino_t)n,
		.st_mode = n->mode,
		.st_nlink = 1,
		.st_size = (off_t)n->size,
	};
}

static struct fuse_entry_param entry(struct node *n)
{
	struct stat st = attributes(n);

	return (struct fuse_entry_param){
		.ino = st.st_ino,
		.attr = st,
		.attr_timeout = 1.0,
		.entry_timeout = 1.0,
	};
}

/* Return the slot of NAME in DIR, or NULL if there is none. */
static struct node **find(struct node *dir, const char *name)
{
	for (size_t i = 0; i < dir->n_entries; i++) {
		if (dir->entries[i] && strcmp(dir->entries[i]->name, name) == 0)
			return &dir->entries[i];
	}
	return NULL;
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* Resize N's data to SIZE bytes. New bytes are 0. */
static void resize(struct node *n, size_t size)
{
	n->data = must(realloc(n->data, size + 1));
	if (size > n->size)
		memset(n->data + n->size, 0, size - n->size);
	n->size = size;
}

static struct node *add(struct node *dir, const char *name, mode_t mode, const char *text)
{
	struct node *n = must(calloc(1, sizeof(*n)));

	n->mode = mode;
	n->name = must(strdup(name));
	resize(n, strlen(text));
	memcpy(n->data, text, n->size);
	/* Grow the array whenever the number of entries is a power of two. */
	if ((dir->n_entries & (dir->n_entries - 1)) == 0)
		dir->entries = must(realloc(dir->entries, (2 * dir->n_entries + 1) * sizeof(n)));
	dir->entries[dir->n_entries++] = n;
	return n;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct node **at = find(node_of(parent), name);
	struct fuse_entry_param e;

	if (!at) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	e = entry(*at);
	fuse_reply_entry(req, &e);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st = attributes(node_of(ino));

	(void)fi;
	fuse_reply_attr(req, &st, 1.0);
}

static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int what,
		       struct fuse_file_info *fi)
{
	if (what & FUSE_SET_ATTR_SIZE)
		resize(node_of(ino), (size_t)attr->st_size);
	do_getattr(req, ino, fi);
}

static void reply_new(fuse_req_t req, struct node *n)
{
	struct fuse_entry_param e = entry(n);

	fuse_reply_entry(req, &e);
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	reply_new(req, add(node_of(parent), name, S_IFDIR | mode, ""));
}

static void do_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	reply_new(req, add(node_of(parent), name, S_IFLNK | 0777, link));
}

static void do_readlink(fuse_req_t req, fuse_ino_t ino)
{
	fuse_reply_readlink(req, node_of(ino)->data);
}

static void do_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct node **at = find(node_of(parent), name);

	if (at)
		*at = NULL;
	fuse_reply_err(req, at ? 0 : ENOENT);
}

/*
 * In kxfs a new file can be submitted, so its flushes must be handled. Existing files are only
 * read.
 */
static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct fuse_entry_param e = entry(add(node_of(parent), name, S_IFREG | mode, ""));

	fi->direct_io = 1;
	fuse_reply_create(req, &e, fi);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fi->direct_io = 1;
	fi->noflush = (fi->flags & O_ACCMODE) == O_RDONLY;
	fuse_reply_open(req, fi);
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct node *n = node_of(ino);
	size_t left = (size_t)off < n->size ? n->size - (size_t)off : 0;

	(void)fi;
	fuse_reply_buf(req, left ? n->data + off : NULL, size < left ? size : left);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct node *n = node_of(ino);

	(void)fi;
	if ((size_t)off + size > n->size)
		resize(n, (size_t)off + size);
	memcpy(n->data + off, buf, size);
	fuse_reply_write(req, size);
}

static void do_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino, (void)fi;
	fuse_reply_err(req, 0);
}

static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fuse_reply_open(req, fi);
}

static void do_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi)
{
	struct node *dir = node_of(ino);
	char *buf = must(malloc(size));
	size_t used = 0;

	(void)fi;
	for (size_t i = (size_t)off; i < dir->n_entries; i++) {
		struct fuse_entry_param e;
		size_t n;

		if (!dir->entries[i])
			continue;
		e = entry(dir->entries[i]);
		n = fuse_add_direntry_plus(req, buf + used, size - used, dir->entries[i]->name, &e,
					   (off_t)i + 1);
		if (n > size - used)
			break;
		used += n;
	}
	fuse_reply_buf(req, buf, used);
	free(buf);
}

static void do_init(void *data, struct fuse_conn_info *conn)
{
	(void)data;
	conn->want |= conn->capable & FUSE_CAP_READDIRPLUS;
	conn->want &= ~FUSE_CAP_READDIRPLUS_AUTO;
}

static const struct fuse_lowlevel_ops ops = {
	.init = do_init,
	.lookup = do_lookup,
	.getattr = do_getattr,
	.setattr = do_setattr,
	.mkdir = do_mkdir,
	.symlink = do_symlink,
	.readlink = do_readlink,
	.unlink = do_remove,
	.rmdir = do_remove,
	.create = do_create,
	.open = do_open,
	.read = do_read,
	.write = do_write,
	.flush = do_flush,
	.opendir = do_opendir,
	.readdirplus = do_readdirplus,
};

static void fill(unsigned long n)
{
	struct node *dir = add(&root, "dir", S_IFDIR | 0755, "");

	add(&root, "state", S_IFREG | 0644, "RUNNING\n");
	add(&root, "submit", S_IFDIR | 0755, "");
	for (unsigned long i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "job-%06lu", i);
		add(dir, name, S_IFDIR | 0755, "");
	}
}

int main(int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct fuse_session *se;

	if (argc != 3)
		return 2;
	fill(strtoul(argv[2], NULL, 10));
	se = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (!se || fuse_set_signal_handlers(se) || fuse_session_mount(se, argv[1]))
		return 1;
	fuse_session_loop(se);
	fuse_session_unmount(se);
	fuse_remove_signal_handlers(se);
	fuse_session_destroy(se);
	fuse_opt_free_args(&args);
	return 0;
}
