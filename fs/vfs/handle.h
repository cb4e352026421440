/* SPDX-License-Identifier: MIT */
/*
 * Handles are open files and directories, except streams (stream.h). fi->fh points to a struct that
 * begins with struct handle. After a lazy unmount the kernel may not release all handles, so a list
 * of all handles lets handles_free free the rest. Any thread may call these functions.
 */
#pragma once

#include "fs/vfs/fs.h"

struct handle {
	void (*free)(struct handle *h); /* frees the whole struct that H begins */
	struct handle *prev, *next;
};

struct handles;

struct handles *handles_new(void);
void handles_free(struct handles *all); /* also frees every handle in ALL; NULL is allowed */

/* Make H, which the caller has zeroed, the handle of FI. FREE_FN will free H. */
void handle_open(struct fs *fs, struct handle *h, void (*free_fn)(struct handle *),
		 struct fuse_file_info *fi);
static inline void *handle_of(const struct fuse_file_info *fi)
{
	return (void *)(uintptr_t)fi->fh;
}
void handle_close(struct fs *fs, struct fuse_file_info *fi);

/* Reply like fuse_reply_open, with direct_io. If FLUSHED is false, the kernel sends no FLUSH. */
int handle_reply_open(fuse_req_t req, const struct fuse_file_info *fi, bool flushed);

/* Answer an open; the kernel will send no FLUSH. If REQ was interrupted, close the handle. */
void handle_reply(struct fs *fs, fuse_req_t req, struct fuse_file_info *fi);
