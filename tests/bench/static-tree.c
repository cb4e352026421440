/* SPDX-License-Identifier: MIT */
/*
 * What kxfs is measured against: the smallest libfuse filesystem of the same kind (low-level API,
 * one thread, direct_io, attributes and names kept for 1 s) that serves fixed answers:
 *
 *	static-tree MOUNTPOINT N	one file `state` of 8 bytes, and dir/ with N directories
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

enum { FILE_INO = 2, DIR_INO = 3, FIRST_INO = 10 };

static const char text[] = "RUNNING\n";
static unsigned long n_dirs;

static int fill(fuse_ino_t ino, struct fuse_entry_param *e)
{
	memset(e, 0, sizeof(*e));
	if (ino >= FIRST_INO + n_dirs)
		return ENOENT;
	e->ino = ino;
	e->attr.st_ino = ino;
	e->attr.st_mode = ino == FILE_INO ? S_IFREG | 0644 : S_IFDIR | 0755;
	e->attr.st_size = ino == FILE_INO ? (off_t)strlen(text) : 0;
	e->attr.st_nlink = 1;
	e->attr_timeout = 1.0;
	e->entry_timeout = 1.0;
	return 0;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e;
	fuse_ino_t ino = 0;

	if (parent == FUSE_ROOT_ID && strcmp(name, "state") == 0)
		ino = FILE_INO;
	else if (parent == FUSE_ROOT_ID && strcmp(name, "dir") == 0)
		ino = DIR_INO;
	else if (parent == DIR_INO && strncmp(name, "job-", 4) == 0)
		ino = FIRST_INO + strtoul(name + 4, NULL, 10);
	if (!ino || fill(ino, &e))
		fuse_reply_err(req, ENOENT);
	else
		fuse_reply_entry(req, &e);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fuse_entry_param e;

	(void)fi;
	if (fill(ino, &e))
		fuse_reply_err(req, ENOENT);
	else
		fuse_reply_attr(req, &e.attr, 1.0);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fi->direct_io = 1;
	fi->noflush = 1;
	fuse_reply_open(req, fi);
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	size_t len = strlen(text);

	(void)ino, (void)fi;
	if ((size_t)off >= len)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, text + off,
			       size < len - (size_t)off ? size : len - (size_t)off);
}

static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fuse_reply_open(req, fi);
}

static void do_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi)
{
	char *buf = malloc(size);
	size_t used = 0;

	(void)fi;
	for (unsigned long i = (unsigned long)off; ino == DIR_INO && i < n_dirs; i++) {
		struct fuse_entry_param e;
		char name[32];
		size_t n;

		snprintf(name, sizeof(name), "job-%06lu", i);
		fill(FIRST_INO + i, &e);
		n = fuse_add_direntry_plus(req, buf + used, size - used, name, &e, (off_t)i + 1);
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
	.open = do_open,
	.read = do_read,
	.opendir = do_opendir,
	.readdirplus = do_readdirplus,
};

int main(int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct fuse_session *se;

	if (argc != 3)
		return 2;
	n_dirs = strtoul(argv[2], NULL, 10);
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
