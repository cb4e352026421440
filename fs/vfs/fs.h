/* SPDX-License-Identifier: MIT */
/*
 * The objects of one FUSE session that every operation needs, independent of the tree that the
 * classes above show. They are made and freed here and have their own locks; fs_new sets the other
 * members, which do not change afterwards.
 *
 * Objects of this folder: a node (node.h) is a position in the tree that the kernel knows, and its
 * class has the operations. A handle (handle.h) is an open file. A listing has the names of an open
 * directory. A parked request (park.h) waits for an event. A text (text.h) is rendered when the
 * file is opened. A stream (stream.h) blocks its readers. struct fs owns the tables of all of them.
 * Nodes and listings belong to the FUSE thread, streams to the I/O thread; handles and parked
 * requests have a lock each, and parked requests also a thread, which answers interrupts and
 * deadlines. This folder does not depend on the contents of the tree: the object of a node is
 * opaque.
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
	const char *disk; /* a path; statfs reports the usage of its file system; not copied */
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
	uint64_t requests; /* requests answered or parked so far; FUSE thread */
	/*
	 * Why kxfs could not find the sender of a request in /proc: EACCES if it belongs to another
	 * user, ESRCH if it is in another pid namespace; 0 if this has not happened.
	 */
	atomic_int unseen;
};

/*
 * Make a session whose root is of class ROOT and represents OBJECT. LOOP, which need not run yet,
 * is borrowed.
 */
struct fs *fs_new(struct loop *loop, const struct fs_config *config, const struct node_class *root,
		  void *object);
/*
 * Free the remaining open handles, streams and nodes; no thread may use them any more, and the
 * objects that they refer to must still exist.
 */
void fs_close(struct fs *fs);
void fs_free(struct fs *fs); /* Call this after fs_close; NULL is allowed. */

/* How long the kernel may cache names and attributes (rule T5), seconds. */
#define FS_TIMEOUT 1.0

/* The operations of the session (ops.c); its user data is the struct fs. */
extern const struct fuse_lowlevel_ops fs_ops;
