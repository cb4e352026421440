/* SPDX-License-Identifier: MIT */
/* jobs/ and history/: rmdir in jobs/ cancels a job, rmdir in history/ deletes its files. */
#include <errno.h>

#include "fs/tree/job.h"
#include "fs/vfs/node.h"
#include "fs/vfs/park.h"
#include "spec/base/mem.h"

/*
 * Deadline of a rmdir. While a rmdir waits, other processes can't use the directory jobs/ or
 * history/. After the deadline only the rmdir fails: the request to the backend continues.
 */
#define JOBS_RMDIR_MS 3000

static enum backend_place jobs_place(const struct node *dir)
{
	return dir->class == &history_class ? BACKEND_HISTORY : BACKEND_JOBS;
}

static int jobs_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	int64_t changed =
		max_of(backend_changed(tree_of(node)->backend, jobs_place(node)), fs->started);

	node_set_times(st, changed, changed);
	return 0;
}

static const struct node_entry_def *jobs_files(const struct node *dir)
{
	static const struct node_entry_def none[] = {{0}};
	static const struct node_entry_def of_history[] = {
		{.name = "list", .class = &list_history_table.text.class},
		{.name = "list.jsonl", .class = &list_history_json.text.class},
		{0},
	};

	return jobs_place(dir) == BACKEND_HISTORY ? of_history : none;
}

static bool jobs_is_file(const struct node *dir, const char *name, size_t len)
{
	for (const struct node_entry_def *e = jobs_files(dir); e->name; e++)
		if (strlen(e->name) == len && memcmp(e->name, name, len) == 0)
			return true;
	return false;
}

/*
 * Return a new reference to the job whose directory in DIR is called NAME, or NULL. NAME is the
 * job's id, with "-" appended if DIR has a file of that name. An id never ends with "-".
 */
static const struct spec_job *jobs_find(const struct node *dir, const char *name)
{
	size_t len = strlen(name);
	char *id cleanup_free = NULL;

	if (jobs_is_file(dir, name, len))
		return NULL;
	if (len > 0 && name[len - 1] == '-' && jobs_is_file(dir, name, len - 1))
		len--;
	id = mem_copy(name, len);
	return backend_job(tree_of(dir)->backend, jobs_place(dir), id);
}

static int jobs_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	const struct spec_job *job cleanup_job = NULL;

	if (node_lookup_in(fs, dir, jobs_files(dir), name, ret) == 0)
		return 0;
	job = jobs_find(dir, name);
	if (!job)
		return -ENOENT;
	*ret = job_node(fs, dir, job, jobs_place(dir) == BACKEND_HISTORY);
	return 0;
}

static int jobs_list(struct fs *fs, struct node *dir, struct listing *l)
{
	const struct spec_job **jobs = NULL;
	size_t n = 0;

	backend_jobs(tree_of(dir)->backend, jobs_place(dir), &jobs, &n);
	node_list_in(dir, jobs_files(dir), l);
	for (size_t i = 0; i < n; i++) {
		char *name cleanup_free = NULL;

		if (jobs_is_file(dir, jobs[i]->id, strlen(jobs[i]->id)))
			name = text_print("%s-", jobs[i]->id);
		listing_add(l, name ? name : jobs[i]->id);
		spec_job_unref(jobs[i]);
	}
	free(jobs);
	return 0;
}

/* --- removal --- */

static void jobs_rmdir(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	const struct tree *t = tree_of(dir);
	enum backend_place place = jobs_place(dir);
	const struct spec_job *job cleanup_job = jobs_find(dir, name);
	struct job_request *r;
	int err = job ? 0 : -ENOENT;

	if (!err && place == BACKEND_JOBS)
		err = job_ref_may_end(t, job);
	if (err) {
		fuse_reply_err(req, -err);
		return;
	}
	r = job_request_new(fs, req, PARK_DIR, JOBS_RMDIR_MS, 0,
			    text_print("%s: rmdir failed", job->id));
	if (r && place == BACKEND_JOBS)
		backend_cancel(t->backend, job->id, job->uid, job_request_done, r);
	else if (r)
		backend_forget(t->backend, job->id, job->uid, job_request_done, r);
}

/* Succeed without an effect, so that `rm -r` of history/ works. */
static void jobs_unlink(struct fs *fs, fuse_req_t req, struct node *dir, const char *name)
{
	fuse_reply_err(req, jobs_is_file(dir, name, strlen(name)) ? 0 : EPERM);
}

#define JOBS_OPS                                                                                   \
	.mode = S_IFDIR | 0755, .getattr = jobs_getattr, .lookup = jobs_lookup, .list = jobs_list, \
	.unlink = jobs_unlink, .rmdir = jobs_rmdir

const struct node_class jobs_class = {.name = "jobs", JOBS_OPS};
const struct node_class history_class = {.name = "history", JOBS_OPS};

/* --- archive: a link to this namespace's directory in the archive --- */

bool archive_is_known(void *tree, struct node *dir)
{
	char *path cleanup_free = backend_archive(((struct tree *)tree)->backend);

	return path;
}

static int archive_readlink(struct fs *fs, struct node *node, char **ret)
{
	*ret = backend_archive(tree_of(node)->backend);
	return *ret ? 0 : -ENOENT;
}

const struct node_class archive_link_class = {
	.name = "archive",
	.mode = S_IFLNK | 0777,
	.readlink = archive_readlink,
};
