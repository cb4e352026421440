/* SPDX-License-Identifier: MIT */
/*
 * queues/NAME/status: what the cluster says of a queue, and how many jobs of this mount are in it. A
 * directory's mtime is the last change of either.
 */
#include "fs/queues.h"

#include <errno.h>

#include "fs/listing.h"
#include "fs/text.h"

static void queue_unrefp(struct spec_queue_view **queue)
{
	spec_queue_view_unref(*queue);
}
#define cleanup_queue cleanup(queue_unrefp)

bool queues_are_known(struct fs *fs, struct node *dir)
{
	(void)dir;
	return backend_has_queues(fs->backend);
}

/* --- status ------------------------------------------------------------------------------------ */

static int queue_render(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const char *name = node_name(node->parent);
	struct spec_queue_view *queue cleanup_queue = backend_queue(fs->backend, name);
	struct backend_queue_jobs jobs;
	int err = queue ? backend_queue_jobs(fs->backend, name, &jobs) : -ENOENT;

	return err ? err : spec_queue_view_text(queue, jobs.pending, jobs.running, ret, ret_len);
}

/* Times of the queue NAME. */
static int queue_times(struct fs *fs, const char *name, struct stat *st)
{
	struct spec_queue_view *queue cleanup_queue = backend_queue(fs->backend, name);
	struct backend_queue_jobs jobs;
	int err = queue ? backend_queue_jobs(fs->backend, name, &jobs) : -ENOENT;

	if (!err)
		node_set_times(st, max_of(queue->changed, jobs.changed), queue->meta.created);
	return err;
}

static int queue_status_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int err = queue_times(fs, node_name(node->parent), st);

	return err ? err : text_size(fs, node, &st->st_size);
}

static const struct text_class queue_status_text = {
	.class =
		{
			.name = "queue-status",
			.mode = S_IFREG | 0644,
			.live = true,
			.getattr = queue_status_getattr,
			TEXT_OPS,
		},
	.render = queue_render,
};

/* --- a queue ----------------------------------------------------------------------------------- */

static const struct node_entry_def queue_table[] = {
	{"status", &queue_status_text.class, false, NULL},
	{0},
};

static int queue_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	return queue_times(fs, node_name(node), st);
}

static int queue_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	return node_lookup_static(fs, dir, queue_table, name, ret);
}

static int queue_list(struct fs *fs, struct node *dir, struct listing *l)
{
	return node_list_static(fs, dir, queue_table, l);
}

static const struct node_class queue_class = {
	.name = "queue",
	.mode = S_IFDIR | 0755,
	.live = true,
	.getattr = queue_getattr,
	.lookup = queue_lookup,
	.list = queue_list,
};

/* --- all --------------------------------------------------------------------------------------- */

static int queues_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	struct spec_queue_view *queue cleanup_queue = backend_queue(fs->backend, name);

	if (!queue)
		return -ENOENT;
	*ret = node_get(fs, dir, &queue_class, name, NULL);
	return *ret ? 0 : -ENOMEM;
}

static int queues_list(struct fs *fs, struct node *dir, struct listing *l)
{
	struct spec_queue_view **queues cleanup_free = NULL;
	size_t n = 0;
	int err = backend_queues(fs->backend, &queues, &n);

	(void)dir;
	for (size_t i = 0; i < n; i++) {
		if (!err)
			err = listing_add(l, queues[i]->meta.name);
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
