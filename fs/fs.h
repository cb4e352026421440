/* SPDX-License-Identifier: MIT */
/*
 * One mount: what all files of fs/ share. Made by main.c, passed everywhere; there are no
 * globals. Fields are set before the session loop starts and then only read, but for what
 * belongs to a module that guards it itself.
 */
#ifndef KXFS_FS_FS_H
#define KXFS_FS_FS_H

#include "backend/backend.h"
#include "fs/fuse.h"

struct handles;
struct node;
struct node_table;
struct options;
struct park;
struct streams;
struct submit;

struct fs {
	struct fuse_session *session;
	const struct options *options;
	struct loop *loop;
	struct backend *backend;
	struct park *park;
	struct node *root;
	struct node_table *nodes;
	struct handles *handles; /* handle.h */
	struct submit *submit;	 /* submit.h */
	struct submit *dryrun;	 /* submit.h */
	struct streams *streams; /* stream.h */
	const char *mountpoint;	 /* absolute */
	const char *state_dir;	 /* absolute */
	const char *submitter;	 /* user@host of the mount */
	int64_t started;	 /* ns */
	uint64_t requests;	 /* answered or parked so far; FUSE thread */
	char *buffer;		 /* fs_buffer; FUSE thread */
	size_t buffer_size;
};

/* SIZE bytes that stay until the next call; NULL: no memory. FUSE thread. */
char *fs_buffer(struct fs *fs, size_t size);

/* How long the kernel may keep names and attributes (rule T5), seconds. */
#define FS_TIMEOUT 1.0

/* The operations of the session (ops.c). */
extern const struct fuse_lowlevel_ops fs_ops;

#endif
