/* SPDX-License-Identifier: MIT */
/* The file `wait`, the directory .live/, and the links to its files (see job.h). */
#include "fs/tree/job.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/job/status.h"

/* --- the stream of `wait`; I/O thread --- */

struct live_wait {
	struct stream stream;
	struct backend *backend;
	char *uid;
	const char *text; /* the text that the reader gets; NULL until the first read returns */
};

static void wait_stop(struct stream *s)
{
	free(container_of(s, struct live_wait, stream)->uid);
}

static ssize_t wait_read(struct stream *s, const char **ret, size_t size, uint64_t off)
{
	struct live_wait *w = container_of(s, struct live_wait, stream);
	const struct spec_job *job cleanup_job = backend_job_by_uid(w->backend, w->uid);
	/* a job that no longer exists was removed by a user */
	enum spec_state state = job ? job->state : SPEC_CANCELLED;
	const char *text = w->text ? w->text : spec_status_state(state);
	size_t len = strlen(text);

	/*
	 * Block until `why` and `log` are complete, because a process usually reads one of them
	 * next. In history/ they don't change any more.
	 */
	if (!w->text && job && !job->history &&
	    (!spec_state_is_final(state) || job->unexplained || job->fetching))
		return -EAGAIN;
	if (off >= len)
		return 0;
	/* If the job is removed before the next read, that read must continue this text. */
	if (ret)
		*ret = (w->text = text) + off;
	return (ssize_t)min_of(size, len - off);
}

static const struct stream_class wait_stream = {
	.size = sizeof(struct live_wait),
	.read = wait_read,
	.stop = wait_stop,
};

bool wait_is_of(const struct stream *s, const struct spec_job *job)
{
	return s->class == &wait_stream &&
	       job_ref_is_of(container_of(s, const struct live_wait, stream)->uid, job);
}

/* --- the files; FUSE thread --- */

static void job_wait_open(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	struct live_wait *w = container_of(stream_new(fs, &wait_stream), struct live_wait, stream);

	w->backend = job_ref_of(node)->tree->backend;
	w->uid = text_copy(job_ref_of(node)->uid);
	stream_open(&w->stream, req, fi);
}

static const struct node_class job_wait_class = {
	.name = "wait",
	.mode = S_IFREG | 0644,
	.getattr = job_ref_getattr,
	.open = job_wait_open,
	STREAM_OPS,
};

static bool is_of_job(void *ref, struct node *dir)
{
	return !((const struct job_ref *)ref)->replica;
}

static const struct node_entry_def files_table[] = {
	{.name = "wait", .class = &job_wait_class, .when = is_of_job},
	{.name = "follow", .class = &follow_class},
	{0},
};

#define LIVE_DIR_OPS NODE_DIR_OPS, .getattr = job_ref_getattr, .unlink = job_ref_remove

const struct node_dir_class live_files_class = {
	.class = {.name = "live-files", LIVE_DIR_OPS},
	.entries = files_table,
};

/* --- the links to the files in .live/ --- */

/*
 * For example, jobs/ID/live/wait is a link to ../.live/wait, and the hidden jobs/ID/wait is a link
 * to .live/wait.
 */
static int live_readlink(struct fs *fs, struct node *node, char **ret)
{
	bool listed = streq(node_name(node->parent), "live");

	*ret = text_print("%s.live/%s", listed ? "../" : "", node_name(node));
	return 0;
}

const struct node_class live_link_class = {
	.name = "live-link",
	.mode = S_IFLNK | 0777,
	.readlink = live_readlink,
};

static const struct node_entry_def links_table[] = {
	{.name = "wait", .class = &live_link_class, .when = is_of_job},
	{.name = "follow", .class = &live_link_class},
	{0},
};

const struct node_dir_class live_links_class = {
	.class = {.name = "live-links", LIVE_DIR_OPS},
	.entries = links_table,
};
