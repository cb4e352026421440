/* SPDX-License-Identifier: MIT */
/*
 * Files that are texts rendered when they are opened: one reader reads one version, however long
 * it takes. A class gives .render or .share (struct text_class) and these operations.
 */
#pragma once

#include "fs/vfs/node.h"
#include "spec/base/shared.h"

struct text_class {
	struct node_class class;
	/* Render the text as it is now; malloc'ed. 0 or a negative errno. */
	int (*render)(struct fs *fs, struct node *node, char **ret, size_t *ret_len);
	/* Somebody has opened the file, and reads the text that was rendered. NULL: the class need not know. */
	void (*opened)(struct node *node);
	/* In place of .render, for a large text that stays the same for long: a new reference. */
	int (*share)(struct fs *fs, struct node *node, struct spec_text **ret);
};

/* The size that the text would have now. */
int text_size(struct fs *fs, struct node *node, off_t *ret);
/* The getattr of a text that has no times of its own: they are those of this moment. */
int text_getattr(struct fs *fs, struct node *node, struct stat *st);
void text_open(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
void text_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
	       struct fuse_file_info *fi);

#define TEXT_OPS .costly = true, .open = text_open, .read = text_read
