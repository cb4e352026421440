/* SPDX-License-Identifier: MIT */
/* The root of the mount, and the link and the blocking file `changes`. */
#include <errno.h>

#include "fs/control.h"
#include "fs/jobs.h"
#include "fs/listing.h"
#include "fs/queues.h"
#include "fs/stream.h"
#include "fs/submit.h"

#define CHANGES_TARGET ".kxfs/.live/changes"

static int changes_readlink(struct fs *fs, struct node *node, char **ret)
{
	(void)fs, (void)node;
	*ret = strdup(CHANGES_TARGET);
	return *ret ? 0 : -ENOMEM;
}

static int changes_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	(void)fs, (void)node;
	st->st_size = (off_t)strlen(CHANGES_TARGET);
	return 0;
}

static const struct node_class changes_link_class = {
	.name = "changes-link",
	.mode = S_IFLNK | 0777,
	.getattr = changes_getattr,
	.readlink = changes_readlink,
};

static const struct node_entry_def root_table[] = {
	{"submit", &submit_class, false, NULL},
	{"dryrun", &dryrun_class, false, NULL},
	{"jobs", &jobs_class, false, NULL},
	{"history", &history_class, false, NULL},
	{"queues", &queues_class, false, queues_are_known},
	{"changes", &changes_link_class, false, NULL},
	{".kxfs", &control_class, false, NULL},
	{0},
};

static int root_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	return node_lookup_static(fs, dir, root_table, name, ret);
}

static int root_list(struct fs *fs, struct node *dir, struct listing *l)
{
	return node_list_static(fs, dir, root_table, l);
}

const struct node_class root_class = {
	.name = "root",
	.mode = S_IFDIR | 0755,
	.lookup = root_lookup,
	.list = root_list,
};
