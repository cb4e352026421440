/* SPDX-License-Identifier: MIT */
/* The directory of a job, jobs/ID or history/ID, and those of its replicas, ROLE-K. */
#include <errno.h>

#include "fs/tree/job.h"
#include "fs/vfs/node.h"
#include "spec/base/mem.h"
#include "spec/job/status.h"

/* --- logs/: links to the logs of all replicas --- */

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
	/* the link to the log of trainer-0 is trainer-0.log */
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
	.unlink = job_ref_remove,
};

/* --- a replica --- */

typedef void (*replica_text_fn)(const struct spec_job *job, const struct spec_replica *r,
				char **ret, size_t *ret_len);

static int replica_render(const struct node *node, replica_text_fn text, char **ret,
			  size_t *ret_len)
{
	const struct spec_job *job cleanup_job = job_ref_job(node);
	const struct spec_replica *r = job_ref_replica(node, job);

	if (!r)
		return -ENOENT;
	text(job, r, ret, ret_len);
	return 0;
}

static void replica_state(const struct spec_job *job, const struct spec_replica *r, char **ret,
			  size_t *ret_len)
{
	*ret = text_copy(spec_status_state(r->state));
	*ret_len = strlen(*ret);
}

/* The text of `pod`, as used in: kubectl exec -it $(cat .../pod) -- sh */
static void replica_pod(const struct spec_job *job, const struct spec_replica *r, char **ret,
			size_t *ret_len)
{
	*ret = text_print("%s\n", r->pod);
	*ret_len = strlen(*ret);
}

static bool replica_has_pod(void *ref, struct node *dir)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);
	const struct spec_replica *r = job_ref_replica(dir, job);

	return r && *r->pod;
}

#define REPLICA_TEXT(file, fn, opened_fn)                                                          \
	static int file##_render(struct fs *fs, struct node *node, char **ret, size_t *ret_len)    \
	{                                                                                          \
		(void)fs;                                                                          \
		return replica_render(node, fn, ret, ret_len);                                     \
	}                                                                                          \
	static const struct text_class file = {                                                    \
		.class = {.name = #file, TEXT_OPS, .getattr = job_ref_text_getattr},               \
		.render = file##_render,                                                           \
		.opened = opened_fn,                                                               \
	}

REPLICA_TEXT(replica_state_text, replica_state, NULL);
REPLICA_TEXT(replica_status_text, spec_status_replica, NULL);
REPLICA_TEXT(replica_usage_text, spec_status_replica_usage, job_ref_usage_opened);
REPLICA_TEXT(replica_pod_text, replica_pod, NULL);

static const struct node_entry_def replica_table[] = {
	{.name = "state", .class = &replica_state_text.class},
	{.name = "status", .class = &replica_status_text.class},
	{.name = "usage", .class = &replica_usage_text.class},
	{.name = "pod", .class = &replica_pod_text.class, .when = replica_has_pod},
	{.name = "live", .class = &live_links_class.class},
	{.name = "follow", .class = &live_link_class, .hidden = true},
	{.name = ".live", .class = &live_files_class.class, .hidden = true},
	{0},
};

/*
 * True if R's main container has no log yet, but may get one. kxfs then shows an empty file `log`,
 * so that `tail -f` can wait for the output.
 */
static bool replica_log_is_due(const struct spec_replica *r)
{
	return !r->finished && (r->n_logs == 0 || *r->logs[0].container);
}

/* Return a new reference to R's log file NAME, or NULL. `stamped` is `log` with timestamps. */
static struct node *replica_find_log(struct fs *fs, struct node *dir, const struct spec_replica *r,
				     const char *name)
{
	enum log_form form = streq(name, "stamped") ? LOG_STAMPED : LOG_PLAIN;
	const char *wanted = form == LOG_STAMPED ? "log" : name;
	const char *dot = strrchr(wanted, '.');
	size_t end;

	for (size_t first = 0; first < r->n_logs; first = end) {
		char *log cleanup_free = NULL;
		size_t i;

		end = spec_replica_logs_end(r, first);
		/* a number at the end of NAME is an attempt; otherwise, use the newest attempt */
		i = dot && dot[1] >= '0' && dot[1] <= '9' ? strtoul(dot + 1, NULL, 10)
							  : end - first - 1;
		if (i >= end - first)
			continue;
		log = spec_log_file(r->logs[first].container, i, end - first);
		if (streq(log, wanted))
			return log_node_get(fs, dir, name, r->logs[first + i].key,
					    first + i == 0 && streq(wanted, "log"), form);
	}
	return streq(wanted, "log") && replica_log_is_due(r)
		       ? log_node_get(fs, dir, name, NULL, true, form)
		       : NULL;
}

static int replica_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);
	const struct spec_replica *r = job_ref_replica(dir, job);

	if (!r)
		return -ENOENT;
	if (node_lookup_in(fs, dir, replica_table, name, ret) == 0)
		return 0;
	*ret = replica_find_log(fs, dir, r, name);
	return *ret ? 0 : -ENOENT;
}

static int replica_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);
	const struct spec_replica *r = job_ref_replica(dir, job);

	if (!r)
		return -ENOENT;
	node_list_in(dir, replica_table, l);
	if (replica_log_is_due(r))
		listing_add(l, "log");
	if (replica_log_is_due(r) || (r->n_logs > 0 && !*r->logs[0].container))
		listing_add(l, "stamped");
	for (size_t first = 0, end; first < r->n_logs; first = end) {
		end = spec_replica_logs_end(r, first);
		for (size_t i = first; i < end; i++) {
			const char *container = r->logs[first].container;
			char *log cleanup_free = spec_log_file(container, i - first, end - first);

			listing_add(l, log);
		}
	}
	return 0;
}

static const struct node_class replica_class = {
	.name = "replica",
	JOB_REF_OPS,
	.lookup = replica_lookup,
	.list = replica_list,
};

/* --- the directory of a job --- */

static bool job_has_appdef(void *ref, struct node *dir)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);

	return job && job->has_appdef;
}

/* False for a local job, for a job in history/, and if the cluster refuses to list events. */
static bool job_has_events(void *ref, struct node *dir)
{
	const struct spec_job *job cleanup_job = job_ref_job(dir);

	return job && job_ref_in_jobs(ref, dir) &&
	       backend_events(job_ref_of(dir)->tree->backend, job, NULL, NULL, NULL) == 0;
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
	*ret = job_ref_get(fs, dir, &replica_class, name, job_ref_of(dir), name);
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
	JOB_REF_OPS,
	.lookup = job_lookup,
	.list = job_list,
};

struct node *job_node(struct fs *fs, struct node *dir, const struct spec_job *job, bool history)
{
	char *tag cleanup_free = text_print("%s@%s", job->id, job->uid);
	const struct job_ref ref = {tree_of(dir), job->id, job->uid, NULL, history};

	return job_ref_get(fs, dir, &job_class, tag, &ref, NULL);
}
