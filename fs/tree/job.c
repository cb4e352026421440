/* SPDX-License-Identifier: MIT */
/* The directory of a job, jobs/ID or history/ID: its files, and logs/. */
#include <errno.h>

#include "fs/tree/job.h"
#include "fs/tree/job_live.h"
#include "fs/vfs/listing.h"
#include "spec/base/mem.h"

/* --- logs/: a link to each replica's log, so that one folder can be copied --- */

static int logs_readlink(struct fs *fs, struct node *node, char **ret)
{
	const char *name = node_name(node);
	size_t len = strlen(name) - strlen(".log");

	*ret = text_print("../%.*s/log", (int)len, name);
	return 0;
}

static const struct node_class logs_link_class = {
	.name = "logs-link",
	.mode = S_IFLNK | 0777,
	.readlink = logs_readlink,
};

static int logs_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);
	/* "trainer-0.log" is named after its replica. */
	const char *dot = strrchr(name, '.');
	char *replica cleanup_free =
		dot && streq(dot, ".log") ? mem_copy(name, (size_t)(dot - name)) : NULL;

	if (!job || !replica || !spec_job_replica(job, replica))
		return -ENOENT;
	*ret = node_get(fs, dir, &logs_link_class, name, NULL);
	return 0;
}

static int logs_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);

	for (size_t i = 0; job && i < job->n_replicas; i++) {
		char *name cleanup_free = text_print("%s.log", job->replicas[i].name);

		listing_add(l, name);
	}
	return job ? 0 : -ENOENT;
}

static const struct node_class logs_class = {
	.name = "logs",
	.mode = S_IFDIR | 0755,
	.getattr = job_ref_getattr,
	.lookup = logs_lookup,
	.list = logs_list,
	.unlink = job_ref_unlink,
};

/* --- the directory itself --- */

static bool job_has_appdef(void *ref, struct node *dir)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);

	return job && job->has_appdef;
}

/* Local jobs have no events, and a cluster may refuse to show them. */
static bool job_has_events(void *ref, struct node *dir)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);
	char *text cleanup_free = NULL;
	int64_t changed;
	size_t len;

	return job && job_ref_in_jobs(ref, dir) &&
	       backend_events(job_ref_of(dir)->tree->backend, job, &text, &len, &changed) == 0;
}

static const struct node_entry_def job_table[] = {
	{.name = "state", .class = &job_state_text.class},
	{.name = "status", .class = &job_status_text.class},
	{.name = "status.json", .class = &job_json_text.class},
	{.name = "why", .class = &job_why_text.class},
	{.name = "usage", .class = &job_usage_text.class},
	{.name = "manifest.yaml", .class = &job_manifest_text.class},
	{.name = "app.yaml", .class = &job_appdef_text.class, .when = job_has_appdef},
	{.name = "events", .class = &job_events_text.class, .when = job_has_events},
	{.name = "ctl", .class = &job_ctl_text.class, .when = job_ref_in_jobs},
	{.name = "live", .class = &live_links_class.class},
	{.name = "wait", .class = &live_link_class, .hidden = true},
	{.name = "follow", .class = &live_link_class, .hidden = true},
	{.name = ".live", .class = &live_files_class.class, .hidden = true},
	{.name = "logs", .class = &logs_class},
	{0},
};

static int job_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = NULL;

	if (streq(name, "log") || streq(name, "stamped")) {
		*ret = log_node_merged(fs, dir, *name == 'l' ? LOG_PLAIN : LOG_STAMPED);
		return 0;
	}
	if (node_lookup_in(fs, dir, job_table, name, ret) == 0)
		return 0;
	job = job_ref_job(dir);
	if (!job || !spec_job_replica(job, name))
		return -ENOENT;
	*ret = replica_node(fs, dir, name);
	return 0;
}

static int job_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);

	if (!job)
		return -ENOENT;
	node_list_in(dir, job_table, l);
	listing_add(l, "log");
	listing_add(l, "stamped");
	for (size_t i = 0; i < job->n_replicas; i++)
		listing_add(l, job->replicas[i].name);
	return 0;
}

static const struct node_class job_class = {
	.name = "job",
	.mode = S_IFDIR | 0755,
	.size = sizeof(struct job_ref_node),
	.getattr = job_ref_getattr,
	.lookup = job_lookup,
	.list = job_list,
	.unlink = job_ref_unlink,
	.rmdir = place_rmdir,
	.free = job_ref_free,
};

struct node *job_node(struct fs *fs, struct node *dir, const struct spec_job *job, bool history)
{
	char *tag cleanup_free = text_print("%s@%s", job->id, job->uid);
	bool fresh;
	struct node *node = node_get(fs, dir, &job_class, tag, &fresh);

	if (fresh) {
		struct job_ref *p = &container_of(node, struct job_ref_node, node)->ref;

		*p = (struct job_ref){tree_of(dir), text_copy(job->id), text_copy(job->uid), NULL,
				      history};
		node_set_object(node, p);
	}
	return node;
}
