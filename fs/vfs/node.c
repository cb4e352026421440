/* SPDX-License-Identifier: MIT */
/* The table of nodes, indexed by key; see node.h. */
#include <errno.h>
#include <utlist.h>

#include "fs/vfs/node.h"
#include "spec/base/encode.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

struct node_table {
	struct node *by_key;
	struct node *all; /* all nodes, including stale ones, which are not in BY_KEY */
	struct node *root;
};

/*
 * Two keys may get the same inode number. This hardly matters: only programs such as find -samefile
 * compare inode numbers.
 */
static uint64_t node_hash(const char *key)
{
	const uint64_t h = spec_fnv1a(SPEC_FNV1A_INIT, key, strlen(key));

	/* 0 is not a valid inode number, and the root has 1. */
	return h < 2 ? h + 2 : h;
}

static char *node_key(const struct node *parent, const char *tag)
{
	size_t len = strlen(parent->key), tag_size = strlen(tag) + 1;
	char *key = mem_grow(NULL, len + 1 + tag_size, 1);

	/* text_print would be too slow here: ls of 10 000 jobs calls this 10 000 times. */
	memcpy(key, parent->key, len);
	key[len] = '/';
	memcpy(key + len + 1, tag, tag_size);
	return key;
}

static struct node *node_ref(struct node *node)
{
	node->refs++;
	return node;
}

static struct node *node_make(struct node_table *t, struct node *parent,
			      const struct node_class *class, char *key)
{
	struct node *node = mem_zero(class->size ? class->size : sizeof(*node));

	node->class = class;
	node->live = class->live;
	node->key = key;
	node->ino = parent ? node_hash(key) : FUSE_ROOT_ID;
	node->parent = parent ? node_ref(parent) : NULL;
	node->object = parent ? parent->object : NULL;
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

	HASH_FIND_STR(fs->nodes->by_key, key, node);
	if (node && (node->class != class || node->parent != parent)) {
		/* The old node has another class, or its parent was removed and made again. */
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

void node_set_object(struct node *node, void *object)
{
	node->object = object;
}

void node_set_live(struct node *node, bool live)
{
	node->live = live;
}

const char *node_name(const struct node *node)
{
	return strrchr(node->key, '/') + 1;
}

struct node *node_of(struct fs *fs, fuse_ino_t id)
{
	return id == FUSE_ROOT_ID ? fs->nodes->root : (struct node *)(uintptr_t)id;
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

void node_set_times(struct stat *st, int64_t mtime, int64_t ctime)
{
	st->st_mtim = spec_time_spec(mtime);
	st->st_atim = st->st_mtim;
	st->st_ctim = spec_time_spec(ctime);
}

static void node_stat(struct fs *fs, const struct node *node, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = node->ino;
	st->st_mode = node->class->mode & ~fs->config.umask;
	if (S_ISLNK(node->class->mode))
		st->st_mode = node->class->mode;
	st->st_nlink = S_ISDIR(node->class->mode) ? 2 : 1;
	st->st_uid = fs->config.uid;
	st->st_gid = fs->config.gid;
	st->st_blksize = 4096;
	node_set_times(st, fs->started, fs->started);
}

int node_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	char *target cleanup_free = NULL;
	int err = 0;

	node_stat(fs, node, st);
	if (S_ISLNK(node->class->mode))
		err = node->class->readlink(fs, node, &target);
	if (target)
		st->st_size = (off_t)strlen(target);
	if (!err && node->class->getattr)
		err = node->class->getattr(fs, node, st);
	st->st_blocks = (st->st_size + 511) / 512;
	if (!err)
		node->size = st->st_size;
	return err;
}

static void *node_entry_object(const struct node_entry_def *e, const struct node *dir)
{
	return e->object ? e->object : dir->object;
}

static bool node_entry_is_there(const struct node_entry_def *e, struct node *dir)
{
	return !e->when || e->when(node_entry_object(e, dir), dir);
}

int node_lookup_in(struct fs *fs, struct node *dir, const struct node_entry_def *table,
		   const char *name, struct node **ret)
{
	for (; table->name; table++) {
		if (!streq(table->name, name) || !node_entry_is_there(table, dir))
			continue;
		*ret = node_get(fs, dir, table->class, name, NULL);
		(*ret)->object = node_entry_object(table, dir);
		return 0;
	}
	return -ENOENT;
}

void node_list_in(struct node *dir, const struct node_entry_def *table, struct listing *l)
{
	for (; table->name; table++)
		if (!table->hidden && node_entry_is_there(table, dir))
			listing_add(l, table->name);
}

static const struct node_entry_def *node_dir_entries(const struct node *dir)
{
	return container_of(dir->class, const struct node_dir_class, class)->entries;
}

int node_dir_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	return node_lookup_in(fs, dir, node_dir_entries(dir), name, ret);
}

int node_dir_list(struct fs *fs, struct node *dir, struct listing *l)
{
	node_list_in(dir, node_dir_entries(dir), l);
	return 0;
}

struct node_table *node_table_new(const struct node_class *root, void *object)
{
	struct node_table *t = new0(struct node_table);

	t->root = node_make(t, NULL, root, text_copy(""));
	t->root->object = object;
	return t;
}

/* Nodes may still have lookups, because the kernel sends no FORGETs at an unmount. */
void node_table_free(struct node_table *t)
{
	struct node *node, *next;

	if (!t)
		return;
	DL_FOREACH_SAFE(t->all, node, next)
		node_free(t, node);
	free(t);
}

/* Set nodeid and cache timeouts in E, and count the lookup. The caller has set the attributes. */
static void node_give(struct fs *fs, struct node *node, struct fuse_entry_param *e)
{
	e->ino = node == fs->nodes->root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)node;
	e->generation = 1;
	/* The times of a running job change, but its name does not. */
	e->entry_timeout = node->class->live ? 0 : FS_TIMEOUT;
	e->attr_timeout = node->live ? 0 : FS_TIMEOUT;
	node_looked_up(node);
}

/* Fill E with only the type and the inode number. The kernel requests the rest when needed. */
static void node_give_bare(struct fs *fs, struct node *node, struct fuse_entry_param *e)
{
	memset(e, 0, sizeof(*e));
	node_stat(fs, node, &e->attr);
	/*
	 * The kernel uses this size, so repeat the last one. With a smaller size, the kernel would
	 * truncate mappings of the file.
	 */
	e->attr.st_size = node->size;
	node_give(fs, node, e);
	e->attr_timeout = 0;
}

int node_entry(struct fs *fs, struct node *node, struct fuse_entry_param *e)
{
	int err;

	if (node->class->on_disk) {
		node_give_bare(fs, node, e);
		return 0;
	}
	memset(e, 0, sizeof(*e));
	err = node_getattr(fs, node, &e->attr);
	if (!err)
		node_give(fs, node, e);
	return err;
}

int node_listed(struct fs *fs, struct node *node, struct fuse_entry_param *e)
{
	int err;

	if (node->class->costly) {
		node_give_bare(fs, node, e);
		return 0;
	}
	err = node_entry(fs, node, e);
	/* Readers depend on the current size of a file, so cache only directories. */
	if (!err && S_ISDIR(e->attr.st_mode) && !node->class->live)
		e->attr_timeout = FS_TIMEOUT;
	return err;
}

/* --- listings --- */

struct listing *listing_new(void)
{
	struct listing *l = new0(struct listing);

	listing_add(l, ".");
	listing_add(l, "..");
	return l;
}

void listing_free(struct listing *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		free(l->names[i]);
	free(l->names);
	free(l);
}

void listing_add(struct listing *l, const char *name)
{
	l->names = mem_more(l->names, l->n, sizeof(*l->names));
	l->names[l->n++] = text_copy(name);
}

const char *listing_name(const struct listing *l, size_t i)
{
	return i < l->n ? l->names[i] : NULL;
}
