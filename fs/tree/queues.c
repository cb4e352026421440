/* SPDX-License-Identifier: MIT */
/*
 * The files queues/NAME/status: what the cluster reports about a queue, and how many jobs of this
 * mount are in it. The mtime is the last change of the queue or of its jobs.
 */
#include "fs/tree/tree.h"

#include <errno.h>

#include "fs/vfs/node.h"
#include "fs/vfs/text.h"

bool queues_are_known(void *tree, struct node *dir)
{
	const struct tree *t = tree;

	return backend_has_queues(t->backend);
}

/* --- status --- */

static int queue_render(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	struct backend *b = tree_of(node)->backend;
	const char *name = node_name(node->parent);

	return backend_queue_text(b, name, ret, ret_len);
}

static int queue_times(struct backend *b, const char *name, struct stat *st)
{
	struct spec_queue_view *queue cleanup(spec_queue_view_unrefp) = backend_queue(b, name);
	struct backend_queue_jobs jobs;

	if (!queue)
		return -ENOENT;
	backend_queue_jobs(b, name, &jobs);
	node_set_times(st, max_of(queue->changed, jobs.changed), queue->meta.created);
	return 0;
}

static int queue_status_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int err = queue_times(tree_of(node)->backend, node_name(node->parent), st);

	return err ? err : text_size(fs, node, &st->st_size);
}

static const struct text_class queue_status_text = {
	.class = {.name = "queue-status", TEXT_OPS, .live = true, .getattr = queue_status_getattr},
	.render = queue_render,
};

/* --- a queue --- */

static const struct node_entry_def queue_table[] = {
	{.name = "status", .class = &queue_status_text.class},
	{0},
};

static int queue_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	return queue_times(tree_of(node)->backend, node_name(node), st);
}

static const struct node_dir_class queue_class = {
	.class = {.name = "queue", NODE_DIR_OPS, .live = true, .getattr = queue_getattr},
	.entries = queue_table,
};

/* --- queues/ --- */

static int queues_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	struct spec_queue_view *queue cleanup(spec_queue_view_unrefp) =
		backend_queue(tree_of(dir)->backend, name);

	if (!queue)
		return -ENOENT;
	*ret = node_get(fs, dir, &queue_class.class, name, NULL);
	return 0;
}

static int queues_list(struct fs *fs, struct node *dir, struct listing *l)
{
	struct spec_queue_view **queues cleanup_free = NULL;
	size_t n = 0;
	int err = backend_queues(tree_of(dir)->backend, &queues, &n);

	for (size_t i = 0; i < n; i++) {
		listing_add(l, queues[i]->meta.name);
		spec_queue_view_unref(queues[i]);
	}
	return err;
}

const struct node_class queues_class = {
	.name = "queues",
	.mode = S_IFDIR | 0755,
	.live = true,
	.lookup = queues_lookup,
	.list = queues_list,
};
