/* SPDX-License-Identifier: MIT */
/*
 * The table of nodes: found by key, kept while the kernel, a handle or a child needs them. All of
 * this runs on the FUSE thread, so there is no lock.
 */
#include <errno.h>
#include <utlist.h>

#include "fs/listing.h"
#include "fs/node.h"
#include "fs/options.h"

struct node_table {
	struct node *by_key;
	struct node *all; /* also those that are out of the table */
};

/* FNV-1a: short keys, no adversary gains by a collision of numbers that only find -samefile reads. */
static uint64_t node_hash(const char *key)
{
	uint64_t h = 14695981039346656037u;

	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 1099511628211u;
	/* 0 is no inode number, and 1 is the root's. */
	return h < 2 ? h + 2 : h;
}

static char *node_key(const struct node *parent, const char *tag)
{
	size_t len = strlen(parent->key), tag_size = strlen(tag) + 1;
	char *key = malloc(len + 1 + tag_size);

	/* Not asprintf: ls of 10 000 jobs comes here 10 000 times. */
	if (key) {
		memcpy(key, parent->key, len);
		key[len] = '/';
		memcpy(key + len + 1, tag, tag_size);
	}
	return key;
}

static struct node *node_find(struct node_table *t, const char *key)
{
	struct node *node;

	HASH_FIND_STR(t->by_key, key, node);
	return node;
}

static struct node *node_make(struct node_table *t, struct node *parent,
			      const struct node_class *class, char *key)
{
	struct node *node = calloc(1, class->size ? class->size : sizeof(*node));

	if (!node) {
		free(key);
		return NULL;
	}
	node->class = class;
	node->live = class->live;
	node->key = key;
	node->ino = parent ? node_hash(key) : FUSE_ROOT_ID;
	node->parent = parent ? node_ref(parent) : NULL;
	node->refs = 1;
	HASH_ADD_KEYPTR(hh, t->by_key, node->key, strlen(node->key), node);
	DL_APPEND(t->all, node);
	return node;
}

struct node *node_get(struct fs *fs, struct node *parent, const struct node_class *class,
		      const char *tag, bool *fresh)
{
	char *key = node_key(parent, tag);
	struct node *node;

	if (!key)
		return NULL;
	node = node_find(fs->nodes, key);
	if (node && node->class != class) {
		/* The name means another kind of thing now; who holds the old one keeps it. */
		node_forget_name(fs, node);
		node = NULL;
	}
	if (fresh)
		*fresh = !node;
	if (!node)
		return node_make(fs->nodes, parent, class, key);
	free(key);
	return node_ref(node);
}

struct node *node_ref(struct node *node)
{
	node->refs++;
	return node;
}

static void node_free(struct node_table *t, struct node *node)
{
	if (!node->stale)
		HASH_DEL(t->by_key, node);
	DL_DELETE(t->all, node);
	if (node->class->free)
		node->class->free(node);
	free(node->key);
	free(node);
}

void node_put(struct fs *fs, struct node *node)
{
	while (node && --node->refs == 0) {
		struct node *parent = node->parent;

		node_free(fs->nodes, node);
		node = parent;
	}
}

void node_forget_name(struct fs *fs, struct node *node)
{
	if (!node->stale)
		HASH_DEL(fs->nodes->by_key, node);
	node->stale = true;
}

const char *node_name(const struct node *node)
{
	return strrchr(node->key, '/') + 1;
}

struct node *node_known(struct fs *fs, const struct node *parent, const char *tag)
{
	char *key cleanup_free = node_key(parent, tag);

	return key ? node_find(fs->nodes, key) : NULL;
}

fuse_ino_t node_id(struct fs *fs, const struct node *node)
{
	return node == fs->root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)node;
}

struct node *node_of(struct fs *fs, fuse_ino_t id)
{
	return id == FUSE_ROOT_ID ? fs->root : (struct node *)(uintptr_t)id;
}

void node_looked_up(struct node *node)
{
	if (node->lookups++ == 0)
		node_ref(node);
}

void node_forget(struct fs *fs, struct node *node, uint64_t n)
{
	assert(node->lookups >= n);
	node->lookups -= n;
	if (node->lookups == 0 && n > 0)
		node_put(fs, node);
}

static struct timespec node_time(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

void node_set_times(struct stat *st, int64_t mtime, int64_t ctime)
{
	st->st_mtim = node_time(mtime);
	st->st_atim = st->st_mtim;
	st->st_ctim = node_time(ctime);
}

void node_stat(struct fs *fs, const struct node *node, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = node->ino;
	st->st_mode = node->class->mode & ~fs->options->umask;
	if (S_ISLNK(node->class->mode))
		st->st_mode = node->class->mode;
	st->st_nlink = S_ISDIR(node->class->mode) ? 2 : 1;
	st->st_uid = fs->options->uid;
	st->st_gid = fs->options->gid;
	st->st_blksize = 4096;
	node_set_times(st, fs->started, fs->started);
}

int node_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int err;

	node_stat(fs, node, st);
	err = node->class->getattr ? node->class->getattr(fs, node, st) : 0;
	st->st_blocks = (st->st_size + 511) / 512;
	return err;
}

int node_lookup_static(struct fs *fs, struct node *dir, const struct node_entry_def *table,
		       const char *name, struct node **ret)
{
	for (; table->name; table++) {
		if (!streq(table->name, name) || (table->when && !table->when(fs, dir)))
			continue;
		*ret = node_get(fs, dir, table->class, name, NULL);
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

int node_list_static(struct fs *fs, struct node *dir, const struct node_entry_def *table,
		     struct listing *l)
{
	for (; table->name; table++) {
		int err;

		if (table->hidden || (table->when && !table->when(fs, dir)))
			continue;
		err = listing_add(l, table->name);
		if (err)
			return err;
	}
	return 0;
}

int node_init(struct fs *fs, const struct node_class *root)
{
	char *key = strdup("");

	fs->nodes = calloc(1, sizeof(*fs->nodes));
	if (!fs->nodes || !key) {
		free(key);
		free(take_ptr(fs->nodes));
		return -ENOMEM;
	}
	fs->root = node_make(fs->nodes, NULL, root, key);
	if (!fs->root)
		free(take_ptr(fs->nodes));
	return fs->root ? 0 : -ENOMEM;
}

/* The kernel forgets nothing when it unmounts, so what it still counts goes here. */
void node_fini(struct fs *fs)
{
	struct node *node, *next;

	if (!fs->nodes)
		return;
	DL_FOREACH_SAFE(fs->nodes->all, node, next)
		node_free(fs->nodes, node);
	free(take_ptr(fs->nodes));
}

int node_entry(struct fs *fs, struct node *node, struct fuse_entry_param *e)
{
	int err;

	memset(e, 0, sizeof(*e));
	err = node_getattr(fs, node, &e->attr);
	if (err)
		return err;
	e->ino = node_id(fs, node);
	e->generation = 1;
	/* Of a job that runs only the times are news; its name may stand for a second. */
	e->entry_timeout = node->class->live ? 0 : FS_TIMEOUT;
	e->attr_timeout = node->live ? 0 : FS_TIMEOUT;
	node_looked_up(node);
	return 0;
}
