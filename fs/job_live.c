/* SPDX-License-Identifier: MIT */
/*
 * The blocking files of a job and of a replica, in a directory .live/ that is found by its name
 * but not listed, and the links that lead there: so grep -r, cp -r and tar over a job end.
 */
#include <errno.h>

#include "fs/job.h"
#include "fs/listing.h"
#include "fs/stream.h"

static int live_readlink(struct fs *fs, struct node *node, char **ret)
{
	(void)fs;
	return asprintf(ret, ".live/%s", node_name(node)) < 0 ? -ENOMEM : 0;
}

static int live_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	(void)fs;
	st->st_size = (off_t)(strlen(".live/") + strlen(node_name(node)));
	return 0;
}

const struct node_class live_link_class = {
	.name = "live-link",
	.mode = S_IFLNK | 0777,
	.getattr = live_getattr,
	.readlink = live_readlink,
};

static void job_wait_open(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	stream_open(fs, req, &wait_stream, jobs_dir_of(node)->uid, "", fi);
}

static void job_follow_open(struct fs *fs, fuse_req_t req, struct node *node,
			    struct fuse_file_info *fi)
{
	const struct replica_node *r = jobs_replica_of(node);

	stream_open(fs, req, &follow_stream, jobs_dir_of(node)->uid, r ? r->name : "", fi);
}

static const struct node_class job_wait_class = {
	.name = "wait",
	.mode = S_IFREG | 0644,
	.getattr = job_getattr,
	.open = job_wait_open,
	STREAM_OPS,
};

static const struct node_class job_follow_class = {
	.name = "follow",
	.mode = S_IFREG | 0644,
	.getattr = job_getattr,
	.open = job_follow_open,
	STREAM_OPS,
};

static const struct node_entry_def job_live_table[] = {
	{"wait", &job_wait_class, false, NULL},
	{"follow", &job_follow_class, false, NULL},
	{0},
};

static int job_live_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	return node_lookup_static(fs, dir, job_live_table, name, ret);
}

static int job_live_list(struct fs *fs, struct node *dir, struct listing *l)
{
	return node_list_static(fs, dir, job_live_table, l);
}

const struct node_class job_live_class = {
	.name = "job-live",
	.mode = S_IFDIR | 0755,
	.getattr = job_getattr,
	.lookup = job_live_lookup,
	.list = job_live_list,
	.unlink = jobs_unlink_member,
};

static const struct node_entry_def replica_live_table[] = {
	{"follow", &job_follow_class, false, NULL},
	{0},
};

static int replica_live_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	return node_lookup_static(fs, dir, replica_live_table, name, ret);
}

static int replica_live_list(struct fs *fs, struct node *dir, struct listing *l)
{
	return node_list_static(fs, dir, replica_live_table, l);
}

const struct node_class replica_live_class = {
	.name = "replica-live",
	.mode = S_IFDIR | 0755,
	.getattr = job_getattr,
	.lookup = replica_live_lookup,
	.list = replica_live_list,
	.unlink = jobs_unlink_member,
};
