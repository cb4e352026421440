/* SPDX-License-Identifier: MIT */
/*
 * The objects that all operations of one FUSE session share.
 *
 * A node (node.h) is a position in the tree that the kernel has looked up; its class defines the
 * operations. A handle (handle.h) is an open file. A listing has the names of an open directory. A
 * parked request (park.h) waits for an event. A text (text.h) is rendered when its file is opened.
 * A stream (stream.h) blocks its readers.
 *
 * Nodes and listings belong to the FUSE thread, streams to the I/O thread. The tables of handles
 * and of parked requests have locks. park.c runs a thread that answers interrupts and deadlines.
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

struct fs_config {
	uid_t uid;
	gid_t gid;
	mode_t umask;
	const char *disk; /* a path on the file system whose usage statfs reports; borrowed */
};

struct fs {
	struct fs_config config;
	/* in ns since 1970; the default time of all files */
	int64_t started;
	struct loop *loop;
	struct park *park;
	struct serve *serve;
	struct node_table *nodes;
	struct handles *handles;
	struct streams *streams;
	uint64_t requests; /* FUSE thread */
	/*
	 * 0 if /proc showed every process that wrote to submit/ or dryrun/. Otherwise the reason
	 * for the last hidden one: EACCES for another user, ESRCH for another pid namespace.
	 */
	atomic_int unseen;
};

/* Make a session whose root node represents OBJECT. LOOP is borrowed and need not run yet. */
struct fs *fs_new(struct loop *loop, const struct fs_config *config, const struct node_class *root,
		  void *object);
/*
 * Wait until all serving threads have ended, then free handles, streams and nodes. Call this after
 * the I/O thread has stopped, and before freeing the objects that nodes represent.
 */
void fs_close(struct fs *fs);
void fs_free(struct fs *fs); /* after fs_close; NULL is allowed */

/* How long the kernel may cache names and attributes, in s (rule T5). */
#define FS_TIMEOUT 1.0

/* The FUSE operations (ops.c). The session's user data is the struct fs. */
extern const struct fuse_lowlevel_ops fs_ops;
