/* SPDX-License-Identifier: MIT */
/*
 * The directory of a replica, ID/ROLE-K: its state and status, its newest log, the logs of earlier
 * attempts (log.0 is the oldest), and those of other containers.
 */
#include <errno.h>

#include "fs/job.h"
#include "fs/listing.h"
#include "spec/status.h"

static int replica_render_state(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);
	const struct spec_replica *r =
		job ? spec_job_replica(job, jobs_replica_of(node)->name) : NULL;

	if (!r)
		return -ENOENT;
	*ret = strdup(spec_status_state(r->state));
	*ret_len = *ret ? strlen(*ret) : 0;
	return *ret ? 0 : -ENOMEM;
}

static int replica_render_status(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, node);
	const struct spec_replica *r =
		job ? spec_job_replica(job, jobs_replica_of(node)->name) : NULL;

	return r ? spec_status_replica(job, r, ret, ret_len) : -ENOENT;
}

static const struct text_class replica_state_text = {
	.class =
		{
			.name = "replica-state",
			.mode = S_IFREG | 0644,
			.getattr = job_text_getattr,
			TEXT_OPS,
		},
	.render = replica_render_state,
};

static const struct text_class replica_status_text = {
	.class =
		{
			.name = "replica-status",
			.mode = S_IFREG | 0644,
			.getattr = job_text_getattr,
			TEXT_OPS,
		},
	.render = replica_render_status,
};

static bool replica_in_jobs(struct fs *fs, struct node *dir)
{
	(void)fs;
	return jobs_dir_of(dir)->node.parent->class == &jobs_class;
}

static const struct node_entry_def replica_table[] = {
	{"state", &replica_state_text.class, false, NULL},
	{"status", &replica_status_text.class, false, NULL},
	{"follow", &live_link_class, false, replica_in_jobs},
	{".live", &replica_live_class, true, replica_in_jobs},
	{0},
};

/* The file name of log I of R: "log", "log.0", "CONTAINER.log", "CONTAINER.log.0". malloc'ed. */
static char *replica_log_name(const struct spec_replica *r, size_t i)
{
	const char *container = r->logs[i].container;
	const char *dot = *container ? "." : "";
	size_t first = i;
	char *name;
	int n;

	while (first > 0 && streq(r->logs[first - 1].container, container))
		first--;
	/* The newest of a container has no number. */
	if (i + 1 == r->n_logs || !streq(r->logs[i + 1].container, container))
		n = asprintf(&name, "%s%slog", container, dot);
	else
		n = asprintf(&name, "%s%slog.%zu", container, dot, i - first);
	return n < 0 ? NULL : name;
}

static int replica_find_log(struct fs *fs, struct node *dir, const struct spec_replica *r,
			    const char *name, struct node **ret)
{
	for (size_t i = 0; i < r->n_logs; i++) {
		char *log cleanup_free = replica_log_name(r, i);

		if (!log)
			return -ENOMEM;
		if (streq(log, name))
			return log_node_get(fs, dir, name, r->logs[i].key, ret);
	}
	return -ENOENT;
}

static int replica_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, dir);
	const struct spec_replica *r =
		job ? spec_job_replica(job, jobs_replica_of(dir)->name) : NULL;
	int err = r ? node_lookup_static(fs, dir, replica_table, name, ret) : -ENOENT;

	return r && err == -ENOENT ? replica_find_log(fs, dir, r, name, ret) : err;
}

static int replica_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, dir);
	const struct spec_replica *r =
		job ? spec_job_replica(job, jobs_replica_of(dir)->name) : NULL;
	int err = r ? node_list_static(fs, dir, replica_table, l) : -ENOENT;

	for (size_t i = 0; !err && i < r->n_logs; i++) {
		char *log cleanup_free = replica_log_name(r, i);

		err = log ? listing_add(l, log) : -ENOMEM;
	}
	return err;
}

static void replica_free(struct node *node)
{
	free(container_of(node, struct replica_node, node)->name);
}

const struct node_class replica_class = {
	.name = "replica",
	.mode = S_IFDIR | 0755,
	.size = sizeof(struct replica_node),
	.getattr = job_getattr,
	.lookup = replica_lookup,
	.list = replica_list,
	.unlink = jobs_unlink_member,
	.rmdir = jobs_rmdir_member,
	.free = replica_free,
};
