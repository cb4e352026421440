/* SPDX-License-Identifier: MIT */
/*
 * Files whose text is rendered at open, so that a reader sees one version, however long the reading
 * takes. A class has .render or .share (struct text_class) and these operations.
 */
#pragma once

#include "fs/vfs/node.h"
#include "spec/base/mem.h"

struct text_class {
	struct node_class class;
	/* Render the present text; malloc'ed. Return 0 or a negative errno. */
	int (*render)(struct fs *fs, struct node *node, char **ret, size_t *ret_len);
	/* Called when the file was opened and its text rendered. May be NULL. */
	void (*opened)(struct node *node);
	/* In place of .render, for a large text that rarely changes: return a new reference. */
	int (*share)(struct fs *fs, struct node *node, struct spec_text **ret);
};

/* Return the present size of the text. */
int text_size(struct fs *fs, struct node *node, off_t *ret);
/* The getattr of a text without times of its own: they are the present time. */
int text_getattr(struct fs *fs, struct node *node, struct stat *st);
void text_open(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
void text_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
	       struct fuse_file_info *fi);

#define TEXT_OPS .mode = S_IFREG | 0644, .costly = true, .open = text_open, .read = text_read
