/* SPDX-License-Identifier: MIT */
/*
 * The file `changes`: every job as it is now, a line "TIME - SYNC", then a line for every change.
 * What a reader has not fetched yet is kept for it within a bound; beyond, lines are dropped
 * and counted in a line "TIME - LOST N". I/O thread only.
 */
#include <errno.h>

#include "fs/stream.h"
#include "spec/status.h"

/* Bytes kept for a reader that has fallen behind, beyond the jobs as they were at its open. */
#define CHANGES_MAX (1u << 20)

struct changes {
	char *text;
	size_t head; /* bytes of TEXT that have been read */
	size_t len, room;
	uint64_t base; /* the offset in the stream of TEXT's first byte */
	size_t bound;  /* bytes that may be kept */
	uint64_t lost; /* lines since the last that was kept */
};

static int changes_append(struct changes *c, const char *line)
{
	size_t n = strlen(line);

	if (!c->text || c->len + n > c->room) {
		size_t room = max_of(c->len + n, c->room ? 2 * c->room : 4096);
		char *grown = realloc(c->text, room);

		if (!grown)
			return -ENOMEM;
		c->text = grown;
		c->room = room;
	}
	memcpy(c->text + c->len, line, n);
	c->len += n;
	return 0;
}

/* "TIME - WORD[ N]" */
static int changes_mark(struct changes *c, const char *word, uint64_t n)
{
	char time[32], line[96];

	spec_time_text(loop_time_ns(), time);
	if (n)
		snprintf(line, sizeof(line), "%s\t-\t%s\t%llu\n", time, word,
			 (unsigned long long)n);
	else
		snprintf(line, sizeof(line), "%s\t-\t%s\n", time, word);
	return changes_append(c, line);
}

static int changes_add(struct changes *c, const struct spec_job *job, int64_t time)
{
	char *line cleanup_free = spec_status_change(job, time);

	return line ? changes_append(c, line) : -ENOMEM;
}

static int changes_start(struct stream *s)
{
	struct changes *c = calloc(1, sizeof(*c));
	const struct spec_job **jobs = NULL;
	size_t n = 0;
	int err;

	if (!c)
		return -ENOMEM;
	s->changes = c;
	err = backend_jobs(s->fs->backend, BACKEND_JOBS, &jobs, &n);
	for (size_t i = 0; i < n; i++) {
		if (!err)
			err = changes_add(c, jobs[i], jobs[i]->changed);
		spec_job_unref(jobs[i]);
	}
	free(jobs);
	if (!err)
		err = changes_mark(c, "SYNC", 0);
	c->bound = c->len + CHANGES_MAX;
	return err;
}

/* Forget what has been read; rarely, since shells read byte by byte. */
static void changes_compact(struct changes *c)
{
	if (c->head < 65536 || c->head < c->len / 2)
		return;
	c->len -= c->head;
	c->base += c->head;
	memmove(c->text, c->text + c->head, c->len);
	c->head = 0;
}

static ssize_t changes_read(struct stream *s, char *buf, size_t size, uint64_t off)
{
	struct changes *c = s->changes;

	/* A read at OFF says that everything before has arrived. */
	if (off < c->base + c->head || off > c->base + c->len)
		return -ESPIPE;
	c->head = off - c->base;
	if (c->head == c->len && c->lost && changes_mark(c, "LOST", c->lost) == 0)
		c->lost = 0;
	if (c->head == c->len)
		return -EAGAIN;
	size = min_of(size, c->len - c->head);
	if (buf)
		memcpy(buf, c->text + c->head, size);
	changes_compact(c);
	return (ssize_t)size;
}

/* Does a reader of this file want to know? */
static bool changes_differ(const struct spec_job *old, const struct spec_job *job)
{
	return !old || old->state != job->state || !streq(old->reason, job->reason) ||
	       old->history != job->history;
}

static void changes_job(struct stream *s, const struct spec_job *old, const struct spec_job *job)
{
	struct changes *c = s->changes;

	/* A job that goes from the history has left jobs/ before; nothing changes here. */
	if (s->err || !job || (old && old->history) || !changes_differ(old, job))
		return;
	if (c->len - c->head > c->bound) {
		c->lost++;
		return;
	}
	if (c->lost && changes_mark(c, "LOST", c->lost) == 0)
		c->lost = 0;
	if (changes_add(c, job, loop_time_ns()))
		c->lost++;
}

static void changes_stop(struct stream *s)
{
	if (s->changes)
		free(s->changes->text);
	free(s->changes);
}

const struct stream_class changes_stream = {
	.start = changes_start,
	.read = changes_read,
	.job = changes_job,
	.stop = changes_stop,
};
