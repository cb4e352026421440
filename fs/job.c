/* SPDX-License-Identifier: MIT */
/* The directory of a job, jobs/ID or history/ID: which files it has, and logs/. */
#include <errno.h>

#include "fs/job.h"
#include "fs/listing.h"

/* --- logs/: a link to each replica's log, so that one folder can be copied --- */

static int logs_readlink(struct fs *fs, struct node *node, char **ret)
{
	const char *name = node_name(node);
	size_t len = strlen(name) - strlen(".log");

	(void)fs;
	return asprintf(ret, "../%.*s/log", (int)len, name) < 0 ? -ENOMEM : 0;
}

static int logs_link_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	st->st_size = (off_t)(strlen(node_name(node)) - strlen(".log") + strlen("..//log"));
	(void)fs;
	return 0;
}

static const struct node_class logs_link_class = {
	.name = "logs-link",
	.mode = S_IFLNK | 0777,
	.getattr = logs_link_getattr,
	.readlink = logs_readlink,
};

/* The replica's name in "trainer-0.log", malloc'ed; NULL: it is no such name. */
static char *logs_replica_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && streq(dot, ".log") ? strndup(name, (size_t)(dot - name)) : NULL;
}

static int logs_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, dir);
	char *replica cleanup_free = logs_replica_name(name);

	if (!job || !replica || !spec_job_replica(job, replica))
		return -ENOENT;
	*ret = node_get(fs, dir, &logs_link_class, name, NULL);
	return *ret ? 0 : -ENOMEM;
}

static int logs_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, dir);

	for (size_t i = 0; job && i < job->n_replicas; i++) {
		char *name cleanup_free = NULL;

		if (asprintf(&name, "%s.log", job->replicas[i].name) < 0) {
			name = NULL;
			return -ENOMEM;
		}
		if (listing_add(l, name))
			return -ENOMEM;
	}
	return job ? 0 : -ENOENT;
}

static const struct node_class logs_class = {
	.name = "logs",
	.mode = S_IFDIR | 0755,
	.getattr = job_getattr,
	.lookup = logs_lookup,
	.list = logs_list,
	.unlink = jobs_unlink_member,
};

/* --- the directory itself --- */

static bool job_in_jobs(struct fs *fs, struct node *dir)
{
	(void)fs;
	return dir->parent->class == &jobs_class;
}

static bool job_has_appdef(struct fs *fs, struct node *dir)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, dir);

	return job && job->has_appdef;
}

/* Not of local jobs, nor where the cluster does not tell. */
static bool job_has_events(struct fs *fs, struct node *dir)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, dir);
	char *text cleanup_free = NULL;
	int64_t changed;
	size_t len;

	return job && job_in_jobs(fs, dir) &&
	       backend_events(fs->backend, job, &text, &len, &changed) == 0;
}

static const struct node_entry_def job_table[] = {
	{"state", &job_state_text.class, false, NULL},
	{"status", &job_status_text.class, false, NULL},
	{"status.json", &job_json_text.class, false, NULL},
	{"why", &job_why_text.class, false, NULL},
	{"manifest.yaml", &job_manifest_text.class, false, NULL},
	{"app.yaml", &job_appdef_text.class, false, job_has_appdef},
	{"events", &job_events_text.class, false, job_has_events},
	{"ctl", &job_ctl_text.class, false, job_in_jobs},
	{"wait", &live_link_class, false, job_in_jobs},
	{"follow", &live_link_class, false, job_in_jobs},
	{".live", &job_live_class, true, job_in_jobs},
	{"logs", &logs_class, false, NULL},
	{0},
};

static int job_find_replica(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, dir);
	struct replica_node *r;
	struct node *node;
	bool fresh;

	if (!job || !spec_job_replica(job, name))
		return -ENOENT;
	node = node_get(fs, dir, &replica_class, name, &fresh);
	if (!node)
		return -ENOMEM;
	r = container_of(node, struct replica_node, node);
	if (fresh)
		r->name = strdup(name);
	if (!r->name) {
		node_put(fs, node);
		return -ENOMEM;
	}
	*ret = node;
	return 0;
}

static int job_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	int err;

	if (streq(name, "log"))
		return log_node_merged(fs, dir, ret);
	err = node_lookup_static(fs, dir, job_table, name, ret);
	return err == -ENOENT ? job_find_replica(fs, dir, name, ret) : err;
}

static int job_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job *job cleanup_job = jobs_job_of(fs, dir);
	int err = job ? node_list_static(fs, dir, job_table, l) : -ENOENT;

	if (!err)
		err = listing_add(l, "log");
	for (size_t i = 0; !err && i < job->n_replicas; i++)
		err = listing_add(l, job->replicas[i].name);
	return err;
}

const struct node_class job_class = {
	.name = "job",
	.mode = S_IFDIR | 0755,
	.size = sizeof(struct job_node),
	.getattr = job_getattr,
	.lookup = job_lookup,
	.list = job_list,
	.unlink = jobs_unlink_member,
	.rmdir = jobs_rmdir_member,
	.free = jobs_free,
};
