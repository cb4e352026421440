/* SPDX-License-Identifier: MIT */
/*
 * history/.archive/DAY/ID: every day of an archive, and the jobs that were created on it. What is asked for may have to
 * be read from the archive, so each handler waits for that as it would for a disk.
 */
#include <errno.h>

#include "fs/tree/job.h"
#include "fs/vfs/listing.h"
#include "fs/vfs/serve.h"

bool archive_is_shown(void *tree, struct node *dir)
{
	return backend_has_archive(((struct tree *)tree)->backend);
}

static int day_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = NULL;
	int err = serve_disk_begin(fs);

	if (err)
		return err;
	err = backend_archive_job(tree_of(dir)->backend, node_name(dir), name, &job);
	serve_disk_end(fs);
	if (!err)
		*ret = job_node(fs, dir, job, true);
	return err;
}

static int day_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job **jobs cleanup_free = NULL;
	size_t n = 0;
	int err = serve_disk_begin(fs);

	if (err)
		return err;
	err = backend_archive_jobs(tree_of(dir)->backend, node_name(dir), &jobs, &n);
	serve_disk_end(fs);
	for (size_t i = 0; i < n; i++) {
		listing_add(l, jobs[i]->id);
		spec_job_unref(jobs[i]);
	}
	return err;
}

static const struct node_class day_class = {
	.name = "archive-day",
	.mode = S_IFDIR | 0755,
	.lookup = day_lookup,
	.list = day_list,
};

/* Put the names of all days into L; or, with L NULL, look for NAME alone: -ENOENT if there is no such day. */
static int find_days(struct fs *fs, struct node *dir, struct listing *l, const char *name)
{
	char **days cleanup_free = NULL;
	bool found = false;
	size_t n = 0;
	int err = serve_disk_begin(fs);

	if (err)
		return err;
	err = backend_archive_days(tree_of(dir)->backend, &days, &n);
	serve_disk_end(fs);
	for (size_t i = 0; i < n; i++) {
		if (l)
			listing_add(l, days[i]);
		else
			found |= streq(days[i], name);
		free(days[i]);
	}
	return err || l || found ? err : -ENOENT;
}

static int days_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	int err = find_days(fs, dir, NULL, name);

	if (!err)
		*ret = node_get(fs, dir, &day_class, name, NULL);
	return err;
}

static int days_list(struct fs *fs, struct node *dir, struct listing *l)
{
	return find_days(fs, dir, l, NULL);
}

const struct node_class archive_class = {
	.name = "archive",
	.mode = S_IFDIR | 0755,
	.lookup = days_lookup,
	.list = days_list,
};
