/* SPDX-License-Identifier: MIT */
/*
 * What ops.c and ops_dir.c share: the operations of one session, in two files. FUSE thread.
 */
#ifndef KXFS_FS_OPS_IMPL_H
#define KXFS_FS_OPS_IMPL_H

#include "fs/fs.h"
#include "fs/node.h"

/* The session of a request, which is counted. */
struct fs *ops_fs(fuse_req_t req);
/* Entry NAME of DIR, *RET with a reference; or a negative errno. */
int ops_find(struct fs *fs, struct node *dir, const char *name, struct node **ret);

void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi);
void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

#endif
