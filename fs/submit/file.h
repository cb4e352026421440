/* SPDX-License-Identifier: MIT */
/* The files of submit/ and dryrun/ as nodes. FUSE thread. */
#pragma once

#include "fs/submit/save.h"
#include "fs/vfs/node.h"

/* The node of U in DIR, as a reference. */
struct node *submit_file_node(struct fs *fs, struct node *dir, struct upload *u);
/*
 * Make the handle in FI for U, which was MADE by the same request or was there, and empty U if FI asks for that. 0;
 * -EAGAIN: the handle is made, but SAVE_LOAD has to run before it is used; any other errno: there is no handle.
 */
int submit_file_open(struct fs *fs, fuse_req_t req, struct submit *s, struct upload *u, bool made,
		     struct fuse_file_info *fi);
