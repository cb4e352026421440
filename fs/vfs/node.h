/* SPDX-License-Identifier: MIT */
/*
 * Nodes: positions in the tree that the kernel has looked up. A node's class defines its
 * operations. Only the FUSE thread uses nodes.
 *
 * The key of a node is its parent's key, "/", and a tag. The tag is usually the name. If a name can
 * refer to different objects over time, such as two jobs that had the same id, the tag
 * distinguishes them. st_ino is a hash of the key. The nodeid is the node's address. A node exists
 * while the kernel's lookup count for it is not 0, or while it has children.
 *
 * A node represents an object, which only the classes of the tree inspect. A new node gets the
 * object of its parent, unless its class or its table entry sets another one.
 */
#pragma once

#include <sys/stat.h>
#include <uthash.h>

#include "fs/vfs/fs.h"

struct node;

/* The names of a directory when it was opened. So a reader neither skips nor repeats entries. */
struct listing {
	char **names;
	size_t n;
};

/* A new listing already contains "." and "..". */
struct listing *listing_new(void);
void listing_free(struct listing *l);
define_cleanup(listing_freep, struct listing *, listing_free)

/* NAME is copied. */
void listing_add(struct listing *l, const char *name);

/* Return name I, counted from 0; NULL after the last name. */
const char *listing_name(const struct listing *l, size_t i);

/*
 * The operations of one kind of node, and what happens if an operation is NULL. Those that return
 * an int return 0 or a negative errno. Those with a parameter REQ never wait: they answer the
 * request immediately or park it (fs/vfs/park.h).
 */
struct node_class {
	const char *name;
	mode_t mode; /* file type, and permissions before the umask is applied */
	/* size of the struct that begins with struct node; 0 for struct node itself */
	size_t size;

	/*
	 * The value of node.live in new nodes: true if the kernel must not cache the attributes. If
	 * true, the kernel does not cache the name, either, because the name may refer to another
	 * node at any time.
	 */
	bool live;
	/*
	 * True if the attributes require rendering a text. Then a directory listing returns only
	 * the type and the inode number. The kernel requests the other attributes when a process
	 * needs them.
	 */
	bool costly;
	/*
	 * True if the attributes are read from disk. A lookup then returns only the type and the
	 * inode number, without reading the disk: the kernel does one lookup in a directory at a
	 * time, so one that waits for a hanging disk would block all others.
	 */
	bool on_disk;

	/* Set the attributes in ST that differ from the defaults (node_getattr). */
	int (*getattr)(struct fs *fs, struct node *node, struct stat *st);
	/* Called after getattr, to change attributes for the open file FI. May be NULL. */
	void (*getattr_open)(struct fs *fs, struct node *node, struct fuse_file_info *fi,
			     struct stat *st);
	/* *RET becomes a new reference. If `lookup` is NULL, every lookup fails with ENOENT. */
	int (*lookup)(struct fs *fs, struct node *dir, const char *name, struct node **ret);
	/* Add all names except "." and ".." to L. */
	int (*list)(struct fs *fs, struct node *dir, struct listing *l);
	/* Set *RET to the target of a symbolic link, malloc'ed. Its length becomes st_size. */
	int (*readlink)(struct fs *fs, struct node *node, char **ret);

	/* if NULL, opening fails with EPERM; if `write` is NULL, so does opening for writing */
	void (*open)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
	void (*read)(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		     struct fuse_file_info *fi);
	void (*write)(struct fs *fs, fuse_req_t req, struct node *node, const char *buf,
		      size_t size, off_t off, struct fuse_file_info *fi);
	void (*flush)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
	void (*fsync)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
	void (*release)(struct fs *fs, fuse_req_t req, struct node *node,
			struct fuse_file_info *fi);
	void (*poll)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		     struct fuse_pollhandle *ph); /* if NULL, always ready */
	/*
	 * If NULL, a change of the times succeeds without an effect, and so does a change of the
	 * size if there is a `write`. Other changes fail with EPERM. TID is the requesting thread.
	 */
	int (*setattr)(struct fs *fs, struct node *node, pid_t tid, const struct stat *attr,
		       int to_set, struct fuse_file_info *fi);

	/* Operations of directories; if NULL, the request fails with EPERM. */
	void (*create)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       mode_t mode, struct fuse_file_info *fi);
	void (*unlink)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
	void (*rmdir)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
	void (*rename)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       struct node *newdir, const char *newname, unsigned flags);

	/* Free the members after struct node, but not NODE itself. */
	void (*free)(struct node *node);
};

struct node {
	const struct node_class *class;
	struct node *parent; /* a reference; NULL for the root */
	void *object;	     /* borrowed */
	char *key;
	uint64_t ino;
	uint64_t lookups;
	/* one if LOOKUPS is not 0, one for each child, one for each node_get until node_put */
	unsigned refs;
	/* true if the kernel must not cache the attributes; for an exception see node_listed */
	bool live;
	/* true if the node is no longer in the table */
	bool stale;
	off_t size; /* the st_size that the kernel got last */
	UT_hash_handle hh;
	struct node *prev, *next; /* the list of all nodes */
};

struct node_table *node_table_new(const struct node_class *root, void *object);
/* Call this after the session has ended. NULL is allowed. */
void node_table_free(struct node_table *t);

/*
 * Return a new reference to the node with CLASS and TAG under PARENT. Make the node if it does not
 * exist yet. If FRESH is not NULL, *FRESH shows whether the node is new. The caller then sets the
 * members after struct node, which are zero.
 */
struct node *node_get(struct fs *fs, struct node *parent, const struct node_class *class,
		      const char *tag, bool *fresh);
void node_put(struct fs *fs, struct node *node);
/* Remove NODE from the table. The next lookup of its name makes a new node with the same st_ino. */
void node_forget_name(struct fs *fs, struct node *node);

void node_set_object(struct node *node, void *object);
void node_set_live(struct node *node, bool live);

/* Return the tag of NODE, which is the name unless the class uses other tags. */
const char *node_name(const struct node *node);

struct node *node_of(struct fs *fs, fuse_ino_t id);

/* Increase the kernel's lookup count by 1, or decrease it by N. */
void node_looked_up(struct node *node);
void node_forget(struct fs *fs, struct node *node, uint64_t n);

/*
 * Set ST to the default attributes, then call the class's getattr. The defaults are type, mode,
 * owner, st_ino, and the start of the mount as all times. Return 0 or a negative errno.
 */
int node_getattr(struct fs *fs, struct node *node, struct stat *st);

/* Set the times in ST, in ns since 1970. MTIME is also the atime. */
void node_set_times(struct stat *st, int64_t mtime, int64_t ctime);

/*
 * Fill E with the answer to a lookup or create of NODE, and count the lookup. If the reply can't be
 * sent, the caller undoes the count with node_forget(..., 1). The caller keeps its own reference.
 * Return 0, or a negative errno without counting the lookup.
 */
int node_entry(struct fs *fs, struct node *node, struct fuse_entry_param *e);
/*
 * Like node_entry, for a directory listing. Omit the attributes of a costly node. Let the kernel
 * cache the attributes of a directory, because a process that lists usually needs them next. Do
 * this even if the node is live, unless its class is live.
 */
int node_listed(struct fs *fs, struct node *node, struct fuse_entry_param *e);

/* A fixed directory entry. The last one of a table has a NULL name. */
struct node_entry_def {
	const char *name;
	const struct node_class *class;
	bool hidden; /* true if the entry can be looked up but is not listed */
	/* if not NULL, the entry exists only while this returns true for the entry's object */
	bool (*when)(void *object, struct node *dir);
	/* the object of the entry's node; NULL for the directory's object */
	void *object;
};
int node_lookup_in(struct fs *fs, struct node *dir, const struct node_entry_def *table,
		   const char *name, struct node **ret);
void node_list_in(struct node *dir, const struct node_entry_def *table, struct listing *l);

/* The class of a directory whose entries are one table; .class needs NODE_DIR_OPS. */
struct node_dir_class {
	struct node_class class;
	const struct node_entry_def *entries;
};
int node_dir_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret);
int node_dir_list(struct fs *fs, struct node *dir, struct listing *l);

#define NODE_DIR_OPS .mode = S_IFDIR | 0755, .lookup = node_dir_lookup, .list = node_dir_list
