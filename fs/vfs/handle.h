/* SPDX-License-Identifier: MIT */
/*
 * Open files and directories: every structure that fi->fh points at begins with struct handle, and
 * all are in one list. So handles_free can free a handle that the kernel never releases because its
 * mount was detached. Streams have a list of their own, on the I/O thread (stream.h). Any thread.
 */
#pragma once

#include "fs/vfs/fs.h"

struct handle {
	void (*free)(struct handle *h); /* frees the whole structure */
	struct handle *prev, *next;
};

struct handles;

struct handles *handles_new(void);
void handles_free(struct handles *all); /* Free every remaining handle, too. NULL is allowed. */

/* Make H, which is zeroed, the handle of FI. */
void handle_open(struct fs *fs, struct handle *h, void (*free_fn)(struct handle *),
		 struct fuse_file_info *fi);
static inline void *handle_of(const struct fuse_file_info *fi)
{
	return (void *)(uintptr_t)fi->fh;
}
/* Remove the handle of FI from the list and free it. */
void handle_close(struct fs *fs, struct fuse_file_info *fi);

/*
 * Like fuse_reply_open, with direct_io. If FLUSHED, the kernel sends a flush at each close (struct
 * node_class, flush).
 */
int handle_reply_open(fuse_req_t req, const struct fuse_file_info *fi, bool flushed);

/*
 * Answer an open with the handle in FI, which is not flushed; if the request was interrupted, close
 * the handle.
 */
void handle_reply(struct fs *fs, fuse_req_t req, struct fuse_file_info *fi);
