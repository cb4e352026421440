/* SPDX-License-Identifier: MIT */
/*
 * Handles are open files and directories. fi->fh points to a structure that begins with struct
 * handle. All handles are in one list, so that handles_free also frees those that the kernel never
 * released (after a lazy unmount). Streams are not handles: the I/O thread has a list of them
 * (stream.h). Any thread may call the functions of this file.
 */
#pragma once

#include "fs/vfs/fs.h"

struct handle {
	void (*free)(struct handle *h); /* frees the structure that begins with H */
	struct handle *prev, *next;
};

struct handles;

struct handles *handles_new(void);
void handles_free(struct handles *all); /* Also frees every handle in ALL. NULL is allowed. */

/* Add H to the list, and make it the handle of FI. The caller has zeroed H. FREE_FN will free H. */
void handle_open(struct fs *fs, struct handle *h, void (*free_fn)(struct handle *),
		 struct fuse_file_info *fi);
static inline void *handle_of(const struct fuse_file_info *fi)
{
	return (void *)(uintptr_t)fi->fh;
}
/* Remove the handle of FI from the list and free it. */
void handle_close(struct fs *fs, struct fuse_file_info *fi);

/*
 * Reply like fuse_reply_open, with direct_io. If FLUSHED is true, the kernel sends a FLUSH at each
 * close (see `flush` in struct node_class). Otherwise it sends no FLUSH.
 */
int handle_reply_open(fuse_req_t req, const struct fuse_file_info *fi, bool flushed);

/*
 * Answer the open request REQ with the handle in FI. The kernel will send no FLUSH for this handle.
 * If the request was interrupted, close the handle.
 */
void handle_reply(struct fs *fs, fuse_req_t req, struct fuse_file_info *fi);
