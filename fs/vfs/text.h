/* SPDX-License-Identifier: MIT */
/*
 * A file whose text is rendered when a process opens it. A reader gets one version of the text,
 * however long the reading takes. The class has TEXT_OPS, and either .render or .share.
 */
#pragma once

#include "fs/vfs/node.h"
#include "spec/base/mem.h"

struct text_class {
	struct node_class class;
	/* Set *RET to the text, malloc'ed. Return 0 or a negative errno. */
	int (*render)(struct fs *fs, struct node *node, char **ret, size_t *ret_len);
	/* called after the text was rendered for an open; may be NULL */
	void (*opened)(struct node *node);
	/* like .render, but for a large text that rarely changes: *RET becomes a new reference */
	int (*share)(struct fs *fs, struct node *node, struct spec_text **ret);
};

/* Set *RET to the size of NODE's text. Return 0 or a negative errno. */
int text_size(struct fs *fs, struct node *node, off_t *ret);
/* The getattr of a text without times of its own: mtime is now. */
int text_getattr(struct fs *fs, struct node *node, struct stat *st);
void text_open(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
void text_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
	       struct fuse_file_info *fi);

#define TEXT_OPS .mode = S_IFREG | 0644, .costly = true, .open = text_open, .read = text_read
