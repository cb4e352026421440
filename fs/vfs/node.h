/* SPDX-License-Identifier: MIT */
/*
 * Nodes: the part of the tree that the kernel knows. A node is a position in the tree that the
 * kernel has looked up. Its class defines its operations. Only the FUSE thread uses nodes, so they
 * have no lock.
 *
 * The key of a node is its parent's key, "/", and a tag. kxfs finds an existing node by its key.
 * The tag is usually the node's name. If a name can refer to different objects over time, the tag
 * distinguishes these objects. Examples are the logs of two attempts, and two jobs that had the
 * same id at different times. st_ino is a hash of the key, so it stays the same after a remount.
 * The nodeid is the node's address. A node exists while the kernel's lookup count for it is not 0,
 * or while it has children.
 *
 * A node represents an object. This folder never inspects the object; the classes of a tree agree
 * on its type. A new node gets the object of its parent, unless its class or its table entry sets
 * another one.
 *
 * An open directory has a listing of its names.
 */
#pragma once

#include <sys/stat.h>
#include <uthash.h>

#include "fs/vfs/fs.h"

struct node;

/*
 * The names that a directory contained when it was opened. The handle of the open directory has the
 * listing. So a reader neither skips nor repeats an entry, even while jobs are added and removed.
 */
struct listing {
	char **names;
	size_t n;
};

/* Make a listing that contains "." and "..". */
struct listing *listing_new(void);
void listing_free(struct listing *l);
define_cleanup(listing_freep, struct listing *, listing_free)

/* Append a copy of NAME. */
void listing_add(struct listing *l, const char *name);

/* Return name number I, counted from 0; NULL after the last name. */
const char *listing_name(const struct listing *l, size_t i);

/*
 * The operations of one kind of node. The comment of an operation also describes what kxfs does if
 * the operation is NULL. An operation with a parameter REQ must answer the request immediately, or
 * park it (fs/vfs/park.h). It never waits.
 */
struct node_class {
	const char *name;
	mode_t mode; /* file type, and permissions before the umask is applied */
	/* size of the structure that begins with struct node; 0 for struct node itself */
	size_t size;

	/*
	 * The value of node.live in new nodes. If LIVE is true, the kernel caches neither the
	 * attributes nor the name of such a node, because the name may refer to another node at any
	 * time.
	 */
	bool live;
	/*
	 * True if computing the attributes requires rendering a text. Then a directory listing
	 * returns only the type and the inode number. The kernel requests the other attributes when
	 * a process needs them. rm -r and tab completion do not need them.
	 */
	bool costly;
	/*
	 * True if the attributes are read from disk. Then even a lookup returns only the type and
	 * the inode number. The kernel does only one lookup in a directory at a time. So a lookup
	 * that waits for a hanging disk would block all others.
	 */
	bool on_disk;

	/*
	 * Set those attributes in ST that differ from the defaults. Return 0 or a negative errno.
	 * If this operation is NULL, all attributes have their defaults.
	 */
	int (*getattr)(struct fs *fs, struct node *node, struct stat *st);
	/*
	 * Called after getattr: change those attributes in ST that differ for the open file FI. May
	 * be NULL.
	 */
	void (*getattr_open)(struct fs *fs, struct node *node, struct fuse_file_info *fi,
			     struct stat *st);
	/*
	 * Find NAME in DIR, and set *RET to a node from node_get(). Return 0 or a negative errno.
	 * If this operation is NULL, every lookup returns -ENOENT.
	 */
	int (*lookup)(struct fs *fs, struct node *dir, const char *name, struct node **ret);
	/* Add all names except "." and ".." with listing_add(). Return 0 or a negative errno. */
	int (*list)(struct fs *fs, struct node *dir, struct listing *l);
	/* Set *RET to the target of a symbolic link, malloc'ed. Its length becomes st_size. */
	int (*readlink)(struct fs *fs, struct node *node, char **ret);

	/*
	 * If `open` is NULL, opening fails with EPERM. If `write` is NULL, opening for writing also
	 * fails with EPERM.
	 */
	void (*open)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
	void (*read)(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
		     struct fuse_file_info *fi);
	void (*write)(struct fs *fs, fuse_req_t req, struct node *node, const char *buf,
		      size_t size, off_t off, struct fuse_file_info *fi); /* EPERM if NULL */
	void (*flush)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
	void (*fsync)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi);
	void (*release)(struct fs *fs, fuse_req_t req, struct node *node,
			struct fuse_file_info *fi);
	void (*poll)(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi,
		     struct fuse_pollhandle *ph); /* if NULL, always ready */
	/*
	 * If this operation is NULL, changing the times succeeds without an effect. So does
	 * changing the size of a file that has a `write`. All other changes fail with EPERM.
	 */
	void (*setattr)(struct fs *fs, fuse_req_t req, struct node *node, struct stat *attr,
			int to_set, struct fuse_file_info *fi);

	/* Operations of directories. If an operation is NULL, its request fails with EPERM. */
	void (*create)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       mode_t mode, struct fuse_file_info *fi);
	void (*unlink)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
	void (*rmdir)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name);
	void (*rename)(struct fs *fs, fuse_req_t req, struct node *dir, const char *name,
		       struct node *newdir, const char *newname, unsigned flags);

	/* Free the members after struct node. May be NULL. */
	void (*free)(struct node *node);
};

struct node {
	const struct node_class *class;
	struct node *parent; /* a reference; NULL for the root */
	void *object;	     /* the object that the node represents; borrowed */
	char *key;
	uint64_t ino;	  /* st_ino */
	uint64_t lookups; /* the kernel's lookup count */
	/*
	 * References: one if LOOKUPS is not 0, one for each child, and one for each node_get until
	 * its node_put.
	 */
	unsigned refs;
	/*
	 * True if the attributes may change at any time, so that the kernel must not cache them.
	 * Exception: a directory in a directory listing (node_listed).
	 */
	bool live;
	/* true if the node was removed from the table; a lookup of its name makes a new node */
	bool stale;
	off_t size; /* the st_size that kxfs last reported to the kernel */
	UT_hash_handle hh;
	struct node *prev, *next; /* the list of all nodes */
};

/* Make a table of nodes. Its root has the class ROOT and represents OBJECT. */
struct node_table *node_table_new(const struct node_class *root, void *object);
/* Free T and all its nodes. Call this after the session has ended. NULL is allowed. */
void node_table_free(struct node_table *t);

/*
 * Return a new reference to the node with CLASS and TAG under PARENT. The caller drops it with
 * node_put. If the node does not exist yet, make it, and set *FRESH to true. The caller then sets
 * the members after struct node, which are zero. FRESH may be NULL.
 */
struct node *node_get(struct fs *fs, struct node *parent, const struct node_class *class,
		      const char *tag, bool *fresh);
void node_put(struct fs *fs, struct node *node);
/* Remove NODE from the table. The next lookup of its name makes a new node with the same st_ino. */
void node_forget_name(struct fs *fs, struct node *node);

/* Set the object that NODE represents. */
void node_set_object(struct node *node, void *object);
void node_set_live(struct node *node, bool live);

/* Return the tag of NODE. It is the node's name, unless the class uses other tags. */
const char *node_name(const struct node *node);

/* Return the node whose nodeid is ID. FUSE_ROOT_ID is the root. */
struct node *node_of(struct fs *fs, fuse_ino_t id);

/* Increase the kernel's lookup count of NODE by 1, or decrease it by N. */
void node_looked_up(struct node *node);
void node_forget(struct fs *fs, struct node *node, uint64_t n);

/*
 * Set ST to the default attributes, then let the class's getattr change them. The defaults are
 * type, mode, owner, st_ino, and the time at which the mount began. Return 0 or a negative errno.
 */
int node_getattr(struct fs *fs, struct node *node, struct stat *st);

/* Set the times in ST, given in ns since 1970. MTIME is also the atime. */
void node_set_times(struct stat *st, int64_t mtime, int64_t ctime);

/*
 * Fill E with the answer to a lookup or create that has found NODE. Return 0 or a negative errno.
 * On success, the kernel's lookup count increases. If the reply then can't be sent, the caller
 * decreases the count with node_forget(..., 1). The caller keeps its own reference.
 */
int node_entry(struct fs *fs, struct node *node, struct fuse_entry_param *e);
/*
 * Like node_entry, for an entry of a directory listing. Leave out the attributes of a costly node.
 * Let the kernel cache the attributes of a directory, because a process that lists a directory
 * usually requests them next. This applies even if the node's LIVE is true, but not if its class's
 * LIVE is true.
 */
int node_listed(struct fs *fs, struct node *node, struct fuse_entry_param *e);

/*
 * A row of the table that lists the fixed entries of a directory. The last row has a NULL name. A
 * HIDDEN entry can be looked up but is not listed. If WHEN is not NULL, the entry exists only while
 * WHEN returns true. The node of the entry represents OBJECT, or, if OBJECT is NULL, the
 * directory's object.
 */
struct node_entry_def {
	const char *name;
	const struct node_class *class;
	bool hidden;
	/* the argument OBJECT is the object that the entry's node represents */
	bool (*when)(void *object, struct node *dir);
	void *object;
};
int node_lookup_in(struct fs *fs, struct node *dir, const struct node_entry_def *table,
		   const char *name, struct node **ret);
void node_list_in(struct node *dir, const struct node_entry_def *table, struct listing *l);

/*
 * The class of a directory whose entries are all in one table. Define it with .class = {...,
 * NODE_DIR_OPS} and .entries.
 */
struct node_dir_class {
	struct node_class class;
	const struct node_entry_def *entries;
};
int node_dir_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret);
int node_dir_list(struct fs *fs, struct node *dir, struct listing *l);

#define NODE_DIR_OPS .mode = S_IFDIR | 0755, .lookup = node_dir_lookup, .list = node_dir_list
