/* SPDX-License-Identifier: MIT */
/*
 * wait gives the final state of a job once there is one; follow gives the output from its start to its end. Their
 * reading is done on the I/O thread (fs/vfs/stream.h), the rest is the directory .live/ and the links into it.
 */
#include "fs/tree/job_live.h"

#include <errno.h>

#include "fs/vfs/listing.h"
#include "spec/base/mem.h"
#include "spec/job/status.h"

struct job_stream {
	struct stream stream;
	struct backend *backend;
	char *uid;
	char *replica;		/* its directory; "" for a job's */
	struct log *log;	/* follow: the log that is being read */
	char *key;		/* follow: its key; NULL: none yet, or the merged log */
	uint64_t base;		/* follow: where that log began in the stream */
	struct log_early early; /* follow: what it was given of that log before it was on disk */
};

static struct job_stream *job_stream_of(struct stream *s)
{
	return container_of(s, struct job_stream, stream);
}

static void job_stream_stop(struct stream *s)
{
	struct job_stream *j = job_stream_of(s);

	log_unref(j->log);
	free(j->key);
	free(j->uid);
	free(j->replica);
}

/* --- wait --- */

static ssize_t wait_read(struct stream *s, char *buf, size_t size, uint64_t off)
{
	const struct job_stream *j = job_stream_of(s);
	const struct spec_job *job cleanup_job = backend_job_by_uid(j->backend, j->uid);
	/* A job that is gone for good was removed by somebody. */
	enum spec_state state = job ? job->state : SPEC_CANCELLED;
	const char *text = spec_status_state(state);
	size_t len = strlen(text);

	/* Who has waited for the end goes on with why. */
	if (!spec_state_is_final(state) || (job && job->unexplained))
		return -EAGAIN;
	if (off >= len)
		return 0;
	size = min_of(size, len - off);
	if (buf)
		memcpy(buf, text + off, size);
	return (ssize_t)size;
}

static const struct stream_class wait_stream = {
	.size = sizeof(struct job_stream),
	.read = wait_read,
	.stop = job_stream_stop,
};

/* --- follow --- */

/*
 * The key of the attempt after the one that is being read (of the first when KEY is NULL). NULL: none yet, then *LAST
 * says that none will come.
 */
static const char *follow_next_key(const struct spec_replica *r, const char *key, bool *last)
{
	bool passed = !key;

	*last = r->finished != 0;
	for (size_t i = 0; i < r->n_logs; i++) {
		if (*r->logs[i].container)
			continue;
		if (passed)
			return r->logs[i].key;
		passed = streq(r->logs[i].key, key);
	}
	return NULL;
}

/* Read the next log, which begins at BASE. 0; -ENODATA: there will be none; -EAGAIN: not yet. */
static int follow_switch(struct job_stream *j, uint64_t base)
{
	const struct spec_job *job cleanup_job = backend_job_by_uid(j->backend, j->uid);
	const struct spec_replica *r;
	struct log *log = NULL;
	const char *key = NULL;
	bool last;
	int err;

	if (!job || job->dropped)
		return -ENODATA;
	if (*j->replica) {
		r = spec_job_replica(job, j->replica);
		key = r ? follow_next_key(r, j->key, &last) : NULL;
		if (!key)
			return !r || last ? -ENODATA : -EAGAIN;
	} else if (j->log) {
		/* Where nothing has been printed yet, the merged log ends before it begins. */
		return spec_job_is_over(job) ? -ENODATA : -EAGAIN;
	}
	err = backend_log(j->backend, job, key, LOG_PLAIN, &log);
	if (err)
		return err;
	log_unref(j->log);
	j->log = log;
	j->base = base;
	free(j->key);
	j->key = key ? text_copy(key) : NULL;
	return 0;
}

static ssize_t follow_read(struct stream *s, char *buf, size_t size, uint64_t off)
{
	struct job_stream *j = job_stream_of(s);

	for (;;) {
		struct log_stat st = {.ended = true};
		int err = j->log ? log_stat(j->log, &st) : 0;
		size_t early;

		if (err)
			return err;
		if (off < j->base)
			return -ESPIPE;
		if (j->log && !log_is_kept(j->log, &j->early, &st))
			return -EIO;
		if (off < j->base + st.size)
			return buf ? log_read(j->log, buf, size, off - j->base) : 1;
		early = j->log ? log_read_early(j->log, &j->early, buf, size, off - j->base) : 0;
		if (early > 0)
			return (ssize_t)early;
		if (!st.ended)
			return -EAGAIN;
		err = follow_switch(j, j->base + st.size);
		if (err)
			return err == -ENODATA ? 0 : err;
	}
}

static const struct stream_class follow_stream = {
	.size = sizeof(struct job_stream),
	.read = follow_read,
	.stop = job_stream_stop,
};

/* --- what wakes them --- */

bool job_live_is_of(const struct stream *s, const char *uid)
{
	if (s->class != &wait_stream && s->class != &follow_stream)
		return false;
	return streq(container_of(s, const struct job_stream, stream)->uid, uid);
}

bool job_live_reads(const struct stream *s, const struct log *log)
{
	return s->class == &follow_stream &&
	       container_of(s, const struct job_stream, stream)->log == log;
}

/* --- the files; FUSE thread --- */

static void job_live_open(struct fs *fs, fuse_req_t req, const struct place *p,
			  const struct stream_class *class, struct fuse_file_info *fi)
{
	struct job_stream *j = job_stream_of(stream_new(fs, class));

	j->backend = p->tree->backend;
	j->uid = text_copy(p->uid);
	j->replica = text_copy(p->replica ? p->replica : "");
	stream_open(&j->stream, req, fi);
}

static void job_wait_open(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	job_live_open(fs, req, place_of(node), &wait_stream, fi);
}

static void job_follow_open(struct fs *fs, fuse_req_t req, struct node *node,
			    struct fuse_file_info *fi)
{
	if (place_state_is_gone(place_of(node)->tree))
		fuse_reply_err(req, EIO);
	else
		job_live_open(fs, req, place_of(node), &follow_stream, fi);
}

static const struct node_class job_wait_class = {
	.name = "wait",
	.mode = S_IFREG | 0644,
	.getattr = place_getattr,
	.open = job_wait_open,
	STREAM_OPS,
};

static const struct node_class job_follow_class = {
	.name = "follow",
	.mode = S_IFREG | 0644,
	.getattr = place_getattr,
	.open = job_follow_open,
	STREAM_OPS,
};

static const struct node_entry_def job_live_table[] = {
	{.name = "wait", .class = &job_wait_class},
	{.name = "follow", .class = &job_follow_class},
	{0},
};

static const struct node_entry_def replica_live_table[] = {
	{.name = "follow", .class = &job_follow_class},
	{0},
};

const struct node_dir_class job_live_class = {
	.class = {.name = "job-live",
		  NODE_DIR_OPS,
		  .getattr = place_getattr,
		  .unlink = place_unlink},
	.entries = job_live_table,
};

const struct node_dir_class replica_live_class = {
	.class = {.name = "replica-live",
		  NODE_DIR_OPS,
		  .getattr = place_getattr,
		  .unlink = place_unlink},
	.entries = replica_live_table,
};

/* --- the links that lead to them --- */

/* To .live/, which is beside the link, or beside the directory live/ that it stands in. */
static int live_readlink(struct fs *fs, struct node *node, char **ret)
{
	bool listed = streq(node_name(node->parent), "live");

	(void)fs;
	*ret = text_print("%s.live/%s", listed ? "../" : "", node_name(node));
	return 0;
}

const struct node_class live_link_class = {
	.name = "live-link",
	.mode = S_IFLNK | 0777,
	.readlink = live_readlink,
};

static const struct node_entry_def job_links_table[] = {
	{.name = "wait", .class = &live_link_class},
	{.name = "follow", .class = &live_link_class},
	{0},
};

static const struct node_entry_def replica_links_table[] = {
	{.name = "follow", .class = &live_link_class},
	{0},
};

const struct node_dir_class job_links_class = {
	.class = {.name = "job-links",
		  NODE_DIR_OPS,
		  .getattr = place_getattr,
		  .unlink = place_unlink},
	.entries = job_links_table,
};

const struct node_dir_class replica_links_class = {
	.class = {.name = "replica-links",
		  NODE_DIR_OPS,
		  .getattr = place_getattr,
		  .unlink = place_unlink},
	.entries = replica_links_table,
};
