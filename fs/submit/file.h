/* SPDX-License-Identifier: MIT */
/* The files of submit/ and dryrun/ as nodes. FUSE thread. */
#pragma once

#include "fs/submit/save.h"
#include "fs/vfs/node.h"

/* Return the node of U in DIR, as a reference. */
struct node *submit_file_node(struct fs *fs, struct node *dir, struct upload *u);
/*
 * Make the handle in FI for U. MADE: this request has made U. Empty U if FI requests that. Return
 * 0; -EAGAIN if the handle was made but SAVE_LOAD must run before it is used; or another negative
 * errno without a handle.
 */
int submit_file_open(struct fs *fs, fuse_req_t req, struct submit *s, struct upload *u, bool made,
		     struct fuse_file_info *fi);
