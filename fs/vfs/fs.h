/* SPDX-License-Identifier: MIT */
/*
 * struct fs has the objects that all operations of one FUSE session share. These objects do not
 * depend on what the tree shows. fs_new makes them; fs_close and fs_free free them.
 *
 * The objects of this folder: A node (node.h) is a position in the tree that the kernel has looked
 * up; its class defines the operations. A handle (handle.h) is an open file. A listing has the
 * names of an open directory. A parked request (park.h) waits for an event. A text (text.h) is
 * rendered when its file is opened. A stream (stream.h) blocks its readers. struct fs owns the
 * tables of nodes, handles, parked requests and streams.
 *
 * Threads: Nodes and listings belong to the FUSE thread, streams to the I/O thread. The table of
 * handles has a lock, and so has the table of parked requests. park.c also runs a thread, which
 * answers interrupts and deadlines.
 *
 * This folder never inspects what a node represents: the node's object is an opaque pointer.
 */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "fs/vfs/fuse.h"
#include "spec/base/base.h"

struct handles;
struct loop;
struct node_class;
struct node_table;
struct park;
struct serve;
struct streams;

/* Default attributes of nodes. */
struct fs_config {
	uid_t uid;
	gid_t gid;
	mode_t umask;
	const char *disk; /* path of the file system whose usage statfs reports; borrowed */
};

struct fs {
	struct fs_config config;
	int64_t started; /* default time of all files, in ns */
	struct loop *loop;
	struct park *park;
	struct serve *serve;
	struct node_table *nodes;
	struct handles *handles;
	struct streams *streams;
	uint64_t requests; /* number of requests that have arrived; FUSE thread */
	/*
	 * 0 if /proc showed every process that wrote a file in submit/. Otherwise the reason why it
	 * did not show the last hidden one: EACCES if that process belongs to another user, ESRCH
	 * if it is in another pid namespace.
	 */
	atomic_int unseen;
};

/*
 * Make a session. Its root node has the class ROOT and represents OBJECT. LOOP is borrowed and does
 * not need to run yet.
 */
struct fs *fs_new(struct loop *loop, const struct fs_config *config, const struct node_class *root,
		  void *object);
/*
 * Wait until all serving threads have ended, then free all handles, streams and nodes. Call this
 * after the I/O thread has stopped, and before freeing the objects that the nodes represent.
 */
void fs_close(struct fs *fs);
void fs_free(struct fs *fs); /* Call this after fs_close; NULL is allowed. */

/* How long the kernel may cache names and attributes, in seconds (rule T5). */
#define FS_TIMEOUT 1.0

/* The FUSE operations of the session (ops.c). The session's user data is the struct fs. */
extern const struct fuse_lowlevel_ops fs_ops;
