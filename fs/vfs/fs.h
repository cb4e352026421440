/* SPDX-License-Identifier: MIT */
/*
 * One FUSE session below its classes: what every operation needs, whatever the tree above shows. The objects in it are
 * made and freed here and guard themselves; fs_new sets the other members, and nobody changes them afterwards.
 *
 * Objects of this folder: a node is a place that the kernel knows (node.h), a class says how such a place behaves; a
 * handle is an open file (handle.h), a listing the names of an open directory; a parked request waits (park.h); a text
 * is rendered at open (text.h), a stream blocks its readers (stream.h). struct fs owns the tables of all of them. Nodes
 * and listings belong to the FUSE thread, streams to the I/O thread; handles and parked requests have a lock each, and
 * parked requests also a thread, which answers interrupts and deadlines. Nothing here knows what the tree means: a node
 * carries its meaning as an opaque object.
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

/* Attributes of nodes whose class does not say otherwise. */
struct fs_config {
	uid_t uid;
	gid_t gid;
	mode_t umask;
	const char *disk; /* a path; statfs shows how full its file system is; not copied */
};

struct fs {
	struct fs_config config;
	int64_t started; /* time, in ns, of everything that has none of its own */
	struct loop *loop;
	struct park *park;
	struct serve *serve;
	struct node_table *nodes;
	struct handles *handles;
	struct streams *streams;
	uint64_t requests; /* requests that were answered or parked so far; FUSE thread */
	/*
	 * Why a process that sent a request could not be looked at in /proc: EACCES: it is another user's; ESRCH: it is
	 * not there, being in another pid namespace. 0: no process was needed that could not be looked at.
	 */
	atomic_int unseen;
};

/* Make a session whose root is of class ROOT and stands for OBJECT. LOOP, which need not run yet, is borrowed. */
struct fs *fs_new(struct loop *loop, const struct fs_config *config, const struct node_class *root,
		  void *object);
/*
 * Free the open handles, streams and nodes that are left; no thread may use them any more, and what they refer to must
 * still be there.
 */
void fs_close(struct fs *fs);
void fs_free(struct fs *fs); /* after fs_close; NULL is allowed */

/* The session of REQ, which is counted by this. FUSE thread. */
struct fs *fs_of_request(fuse_req_t req);

/* How long the kernel may keep names and attributes (rule T5), seconds. */
#define FS_TIMEOUT 1.0

/* The operations of the session (ops.c); its user data is the struct fs. */
extern const struct fuse_lowlevel_ops fs_ops;
