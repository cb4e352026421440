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

/* The logs of R stand in groups, one a container: the end of the one that begins at FIRST. */
static size_t replica_logs_end(const struct spec_replica *r, size_t first)
{
	size_t end = first + 1;

	while (end < r->n_logs && streq(r->logs[end].container, r->logs[first].container))
		end++;
	return end;
}

/* The file name of log I of N of CONTAINER: "log", "log.0", "CONTAINER.log.0". malloc'ed. */
static char *replica_log_name(const char *container, size_t i, size_t n)
{
	const char *dot = *container ? "." : "";
	char *name;
	int len;

	/* The newest of a container has no number. */
	if (i + 1 == n)
		len = asprintf(&name, "%s%slog", container, dot);
	else
		len = asprintf(&name, "%s%slog.%zu", container, dot, i);
	return len < 0 ? NULL : name;
}

/* Which of N logs may be called NAME, if any: the number at its end, or else the newest. */
static size_t replica_log_number(const char *name, size_t n)
{
	const char *dot = strrchr(name, '.');

	if (!dot || dot[1] < '0' || dot[1] > '9')
		return n - 1;
	return strtoul(dot + 1, NULL, 10);
}

/* Will R have a log? It is shown already: `tail -f` right after a submission is to work. */
static bool replica_log_is_due(const struct spec_replica *r)
{
	return !r->finished && (r->n_logs == 0 || *r->logs[0].container);
}

static int replica_find_log(struct fs *fs, struct node *dir, const struct spec_replica *r,
			    const char *name, struct node **ret)
{
	size_t end;

	for (size_t first = 0; first < r->n_logs; first = end) {
		char *log cleanup_free = NULL;
		size_t i;

		end = replica_logs_end(r, first);
		i = replica_log_number(name, end - first);
		if (i >= end - first)
			continue;
		log = replica_log_name(r->logs[first].container, i, end - first);
		if (!log)
			return -ENOMEM;
		if (streq(log, name))
			return log_node_get(fs, dir, name, r->logs[first + i].key,
					    first + i == 0 && streq(name, "log"), ret);
	}
	if (streq(name, "log") && replica_log_is_due(r))
		return log_node_get(fs, dir, name, NULL, true, ret);
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

	if (!err && replica_log_is_due(r))
		err = listing_add(l, "log");
	for (size_t first = 0, end; !err && first < r->n_logs; first = end) {
		end = replica_logs_end(r, first);
		for (size_t i = first; !err && i < end; i++) {
			const char *container = r->logs[first].container;
			char *log cleanup_free =
				replica_log_name(container, i - first, end - first);

			err = log ? listing_add(l, log) : -ENOMEM;
		}
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
