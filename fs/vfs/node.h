/* SPDX-License-Identifier: MIT */
/*
 * Nodes: the kernel's view of the tree. A node is a position in the tree that has been looked up;
 * its class defines its operations. Only the FUSE thread touches nodes (no lock).
 *
 * A node is found again by its key: its parent's key, "/", and a tag. The tag is the node's name;
 * but if a name can refer to different objects over time (the log of a new attempt, a job of the
 * same id), the tag is a text that distinguishes the objects. st_ino is a hash of the key, so it is
 * the same after a remount. The nodeid is the node's address. A node exists while it has lookups in
 * the kernel, open handles, or children.
 *
 * A node has an object, which it represents. This folder never inspects it: the classes of a tree
 * agree on its type. A new node has the object of its parent, unless its class or its entry sets
 * another.
 *
 * A directory that is open has a listing.
 */
#pragma once

#include <sys/stat.h>
#include <uthash.h>

#include "fs/vfs/fs.h"

struct node;

/*
 * The names that a directory had when it was opened. Its handle stores them, so that a reader
 * neither skips nor repeats an entry while jobs are added and removed.
 */
struct listing {
	char *names; /* the names, each with its NUL, one after the other */
	size_t used, room;
	size_t *starts; /* offset of each name */
	size_t n, slots;
};

/* Make a listing that contains "." and "..". */
struct listing *listing_new(void);
void listing_free(struct listing *l);
define_cleanup(listing_freep, struct listing *, listing_free)

/* Append a copy of NAME. */
void listing_add(struct listing *l, const char *name);

/* Return the I-th name; NULL at the end. */
const char *listing_name(const struct listing *l, size_t i);

/*
 * The operations of a kind of node. If an operation is absent, the kernel gets the answer named in
 * its comment. Operations with a request must answer it, immediately or by parking it
 * (fs/vfs/park.h); they never wait.
 */
struct node_class {
	const char *name;
	mode_t mode; /* type and permissions before umask; most defaults follow from the type */
	size_t size; /* size of the structure that begins with struct node; 0 for a plain struct node */

	/*
	 * The value of node.live in a new node. If true, the kernel does not cache the name either,
	 * because it may refer to another node at any time.
	 */
	bool live;
	/*
	 * Its attributes require rendering a text. So a directory listing contains only its type
	 * and inode number; the kernel requests the other attributes if a process needs them, which
	 * rm -r and tab completion do not.
	 */
	bool costly;
	/*
	 * Its attributes are read from disk. So even a lookup returns only its type and inode
	 * number: the kernel does one lookup in a directory at a time, and a lookup that hangs
	 * would block all others.
	 */
	bool on_disk;

	/*
	 * Set the attributes that differ from the defaults of any node. Return 0 or a negative
	 * errno. If NULL, all are defaults.
	 */
	int (*getattr)(struct fs *fs, struct node *node, struct stat *st);
	/* Change in ST, which getattr has set, the members that differ for the open file FI. */
	void (*getattr_open)(struct fs *fs, struct node *node, struct fuse_file_info *fi,
			     struct stat *st);
	/* Find NAME: *RET is a node from node_get(). If NULL, every name gives -ENOENT. */
	int (*lookup)(struct fs *fs, struct node *dir, const char *name, struct node **ret);
	/* Add all names except "." and ".." with listing_add(). Return 0 or a negative errno. */
	int (*list)(struct fs *fs, struct node *dir, struct listing *l);
	/* Return the malloc'ed target of a symbolic link, whose length is the link's size. */
	int (*readlink)(struct fs *fs, struct node *node, char **ret);

	/* If NULL, the file is opened without a handle; EPERM for writing. */
	void (*open)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
	void (*read)(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		     struct fuse_file_info *fi);
	void (*write)(struct fs *fs, fuse_req_t req, struct node *node, const char *buf,
		      size_t size, off_t off, struct fuse_file_info *fi); /* absent: EPERM */
	void (*flush)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
	void (*fsync)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
	void (*release)(struct fs *fs, fuse_req_t req, struct node *node,
			struct fuse_file_info *fi);
	void (*poll)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		     struct fuse_pollhandle *ph); /* absent: it is always ready */
	/*
	 * If NULL, changes of times, and size 0 for a writable file, succeed without an effect; all
	 * other changes fail with EPERM.
	 */
	void (*setattr)(struct fs *fs, fuse_req_t req, struct node *node, struct stat *attr,
			int to_set, struct fuse_file_info *fi);

	/* For directories. If NULL, EPERM. */
	void (*create)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       mode_t mode, struct fuse_file_info *fi);
	void (*unlink)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
	void (*rmdir)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
	void (*rename)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       struct node *newdir, const char *newname, unsigned flags);

	/* Free the members beyond struct node. */
	void (*free)(struct node *node);
};

struct node {
	const struct node_class *class;
	struct node *parent; /* a reference; NULL for the root */
	void *object;	     /* the object that it represents; borrowed */
	char *key;
	uint64_t ino;	  /* st_ino */
	uint64_t lookups; /* number of lookups in the kernel */
	/* References: one for LOOKUPS if it is not 0, and one for each child and each handle */
	unsigned refs;
	/*
	 * Its attributes may change at any time, so the kernel caches them only after a directory
	 * listing (node_listed).
	 */
	bool live;
	bool stale; /* not in the table any more: the next lookup of the name makes a new node */
	off_t size; /* the size last reported to the kernel */
	UT_hash_handle hh;
	struct node *prev, *next; /* the list of all nodes */
};

/* Make a table with a root of class ROOT, which represents OBJECT. */
struct node_table *node_table_new(const struct node_class *root, void *object);
/* Free all remaining nodes; after the session. NULL is allowed. */
void node_table_free(struct node_table *t);

/*
 * Return the node of CLASS under PARENT with TAG, as a new reference that the caller passes to the
 * kernel (ops.c) or drops (node_put). If there is none yet, make it, and set *FRESH (FRESH may be
 * NULL): the caller then sets the members beyond struct node, which are zero.
 */
struct node *node_get(struct fs *fs, struct node *parent, const struct node_class *class,
		      const char *tag, bool *fresh);
void node_put(struct fs *fs, struct node *node);
/* Make the next lookup of this position create a new node, with the same st_ino. */
void node_forget_name(struct fs *fs, struct node *node);

/* Make NODE represent OBJECT from now on. */
void node_set_object(struct node *node, void *object);
void node_set_live(struct node *node, bool live);

/* Return the last part of a node's key: its name, if the tag is the name. */
const char *node_name(const struct node *node);

/* Return the node with the kernel's nodeid; the root is FUSE_ROOT_ID. */
struct node *node_of(struct fs *fs, fuse_ino_t id);

/* Count one more lookup in the kernel, or N fewer. */
void node_looked_up(struct node *node);
void node_forget(struct fs *fs, struct node *node, uint64_t n);

/*
 * Return the common attributes of nodes (type, mode, owner, st_ino, times of the mount), then those
 * that the class's getattr sets.
 */
int node_getattr(struct fs *fs, struct node *node, struct stat *st);

/* Set the times of ST, given in ns since 1970; atime is mtime. */
void node_set_times(struct stat *st, int64_t mtime, int64_t ctime);

/*
 * Fill E with the answer to a lookup or create. On success the kernel's lookup is counted; if the
 * reply can't be sent, the caller calls node_forget(..., 1). The caller still owns its own
 * reference.
 */
int node_entry(struct fs *fs, struct node *node, struct fuse_entry_param *e);
/*
 * Like node_entry, for an entry of a directory that is read: without the attributes of a costly
 * node. The kernel caches the attributes of a live directory, too, since a process that lists a
 * directory usually requests them next.
 */
int node_listed(struct fs *fs, struct node *node, struct fuse_entry_param *e);

/*
 * A row of a table of fixed entries of a directory; the last row has a NULL name. A HIDDEN entry
 * can be looked up but is not listed. If WHEN is not NULL, it returns whether the entry exists.
 * OBJECT is the object of the entry's node, or NULL for the directory's object.
 */
struct node_entry_def {
	const char *name;
	const struct node_class *class;
	bool hidden;
	bool (*when)(void *object, struct node *dir); /* OBJECT is the object of the entry's node */
	void *object;
};
int node_lookup_in(struct fs *fs, struct node *dir, const struct node_entry_def *table,
		   const char *name, struct node **ret);
void node_list_in(struct node *dir, const struct node_entry_def *table, struct listing *l);

/*
 * The root of a mount. Its object is the table of its entries, which represent the parts of the
 * mount.
 */
extern const struct node_class node_root_class;

/*
 * A class of a directory that has only entries of a table: struct node_dir_class { .class = { ...,
 * NODE_DIR_OPS }, .entries }.
 */
struct node_dir_class {
	struct node_class class;
	const struct node_entry_def *entries;
};
int node_dir_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret);
int node_dir_list(struct fs *fs, struct node *dir, struct listing *l);

#define NODE_DIR_OPS .mode = S_IFDIR | 0755, .lookup = node_dir_lookup, .list = node_dir_list
