/* SPDX-License-Identifier: MIT */
/*
 * The file `changes`: a line for each job in jobs/, the line "TIME - SYNC", then a line for each
 * change. Each open file has a buffer of lines, which the I/O thread fills. While the buffer is
 * full, kxfs drops lines, and later reports their number in a line "TIME - LOST N".
 */
#include "fs/tree/tree.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/job/status.h"

/* the most bytes to buffer for a slow reader, not counting the first lines, which end with SYNC */
#define CHANGES_MAX (1u << 20)

#define CHANGES_TARGET ".kxfs/.live/changes"

struct changes {
	struct stream stream;
	struct backend *backend;
	char *text;
	size_t head; /* bytes of TEXT that have been read */
	size_t len, room;
	uint64_t base; /* file offset of TEXT's first byte */
	size_t bound;  /* the most bytes to buffer */
	uint64_t lost; /* lines dropped since the last buffered line */
};

static struct changes *changes_of(struct stream *s)
{
	return container_of(s, struct changes, stream);
}

static void changes_append(struct changes *c, const char *line)
{
	size_t n = strlen(line);

	if (c->len + n > c->room) {
		c->room = max_of(c->len + n, c->room ? 2 * c->room : (size_t)4096);
		c->text = mem_grow(c->text, c->room, 1);
	}
	memcpy(c->text + c->len, line, n);
	c->len += n;
}

static void changes_add_word(struct changes *c, const char *word, uint64_t n)
{
	char time[32], line[96];

	spec_time_text(loop_time_ns(), time);
	if (n)
		snprintf(line, sizeof(line), "%s\t-\t%s\t%llu\n", time, word,
			 (unsigned long long)n);
	else
		snprintf(line, sizeof(line), "%s\t-\t%s\n", time, word);
	changes_append(c, line);
}

static void changes_add(struct changes *c, const struct spec_job *job, bool gone, int64_t time)
{
	char *line cleanup_free = spec_status_change(job, gone, time);

	changes_append(c, line);
}

static void changes_add_lost(struct changes *c)
{
	if (c->lost)
		changes_add_word(c, "LOST", c->lost);
	c->lost = 0;
}

static void changes_start(struct stream *s)
{
	struct changes *c = changes_of(s);
	const struct spec_job **jobs = NULL;
	size_t n = 0;

	backend_jobs(c->backend, BACKEND_JOBS, &jobs, &n);
	for (size_t i = 0; i < n; i++) {
		changes_add(c, jobs[i], false, jobs[i]->changed);
		spec_job_unref(jobs[i]);
	}
	free(jobs);
	changes_add_word(c, "SYNC", 0);
	c->bound = c->len + CHANGES_MAX;
}

static ssize_t changes_read(struct stream *s, const char **ret, size_t size, uint64_t off)
{
	struct changes *c = changes_of(s);

	/*
	 * The reader usually no longer needs the bytes before OFF. But OFF may be smaller than at
	 * the last read: head(1) seeks back to the end of its last line.
	 */
	if (off < c->base || off > c->base + c->len)
		return -ESPIPE;
	c->head = off - c->base;
	/* Free the bytes that were read, but only in large chunks: shells read byte by byte. */
	if (c->head >= 65536 && c->head >= c->len / 2) {
		c->len -= c->head;
		c->base += c->head;
		memmove(c->text, c->text + c->head, c->len);
		c->head = 0;
	}
	if (c->head == c->len)
		changes_add_lost(c);
	if (c->head == c->len)
		return -EAGAIN;
	size = min_of(size, c->len - c->head);
	if (ret)
		*ret = c->text + c->head;
	return (ssize_t)size;
}

/* True if the change needs a line. A change within history/ needs none. */
static bool changes_differ(const struct spec_job *old, const struct spec_job *job)
{
	bool was = old && !old->history, is = job && !job->history;

	if (!was || !is)
		return was != is;
	return old->state != job->state || !streq(old->reason, job->reason) ||
	       !streq(old->id, job->id);
}

static void changes_stop(struct stream *s)
{
	free(changes_of(s)->text);
}

static const struct stream_class changes_stream = {
	.size = sizeof(struct changes),
	.start = changes_start,
	.read = changes_read,
	.stop = changes_stop,
};

bool changes_job_event(struct stream *s, const struct spec_job *old, const struct spec_job *job)
{
	struct changes *c = changes_of(s);
	bool renamed;

	if (s->class != &changes_stream)
		return false;
	if (!changes_differ(old, job))
		return true;
	if (c->len - c->head > c->bound) {
		c->lost++;
		return true;
	}
	changes_add_lost(c);
	/*
	 * If a new job has taken the id of this job, this job has a new id. Report the old id as
	 * gone, and this job under its new id.
	 */
	renamed = old && !old->history && job && !streq(old->id, job->id);
	if (renamed)
		changes_add(c, old, true, loop_time_ns());
	if (!renamed || !job->history)
		changes_add(c, job ? job : old, !job, loop_time_ns());
	return true;
}

/* --- the file, and the link to the file; FUSE thread --- */

static void changes_open(struct fs *fs, fuse_req_t req, struct node *node,
			 struct fuse_file_info *fi)
{
	struct changes *c = changes_of(stream_new(fs, &changes_stream));

	c->backend = tree_of(node)->backend;
	stream_open(&c->stream, req, fi);
}

const struct node_class changes_class = {
	.name = "changes",
	.mode = S_IFREG | 0644,
	.open = changes_open,
	STREAM_OPS,
};

static int changes_readlink(struct fs *fs, struct node *node, char **ret)
{
	*ret = text_print("%s" CHANGES_TARGET, node->parent->parent ? "../" : "");
	return 0;
}

const struct node_class changes_link_class = {
	.name = "changes-link",
	.mode = S_IFLNK | 0777,
	.readlink = changes_readlink,
};

static const struct node_entry_def live_table[] = {
	{.name = "changes", .class = &changes_link_class},
	{0},
};

const struct node_dir_class live_class = {
	.class = {.name = "live", NODE_DIR_OPS},
	.entries = live_table,
};
