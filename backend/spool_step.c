/* SPDX-License-Identifier: MIT */
/*
 * Lines become records of the merged index, in the order in which it is their turn: whole lines, as many of
 * one log as may follow each other.
 */
#include "backend/spool_impl.h"

/* N bytes at BUF are in the index. */
static void step_count(struct spool *spool, const char *buf, size_t n)
{
	const char *end = buf + n;
	uint64_t lines = 0;

	for (const char *at = buf; (at = memchr(at, '\n', (size_t)(end - at))); at++)
		lines++;
	atomic_fetch_add_explicit(&spool->captured_bytes, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&spool->captured_lines, lines, memory_order_relaxed);
}

/* Make records of the N bytes in spool.buf, while there is room. How many of them. */
static size_t step_cut(struct spool_source *s, size_t n, bool final)
{
	struct spool_job *j = s->job;
	struct merge_key *k = &j->keys.v[s->number];
	const char *buf = j->spool->buf;
	size_t at = 0;

	while (j->n_out < SPOOL_OUT_MAX) {
		size_t length = merge_cut(buf + at, n - at, final);
		struct merge_record r;

		if (length == 0)
			break;
		r = merge_next(j->has_last ? &j->last : NULL, s->number, k->indexed, buf + at,
			       length, strlen(k->prefix));
		spool_index_append(j, &r);
		k->indexed += length;
		at += length;
	}
	step_count(j->spool, buf, at);
	return at;
}

/* Records of whole lines of S up to END. How many bytes that are, or a negative errno. */
static ssize_t step_lines(struct spool_source *s, uint64_t end)
{
	uint64_t from = s->job->keys.v[s->number].indexed;
	bool all = end == s->seen;
	ssize_t n = spool_window_read(s, (size_t)min_of(end - from, (uint64_t)SPOOL_BUFFER));

	if (n < 0)
		return n;
	if (from + (uint64_t)n < end && n < SPOOL_BUFFER) {
		s->seen = s->size = from + (uint64_t)n; /* somebody has cut it off */
		all = true;
	}
	return (ssize_t)step_cut(s, (size_t)n,
				 all && s->ending && !s->queued && from + (uint64_t)n == s->seen);
}

/* The turn of S, up to END. */
static ssize_t step_source(struct spool_source *s, uint64_t end)
{
	struct spool_job *j = s->job;
	ssize_t n = step_lines(s, end);

	if (n == 0 && end < s->seen)
		n = step_lines(s, s->seen); /* END was in the middle of a line */
	if (n < 0) {
		spool_pump_stuck(s, (int)n);
		return n;
	}
	if (n > 0 && j->keys.v[s->number].indexed < s->seen) {
		spool_order_moved(s);
		return n;
	}
	spool_order_remove(s);
	/* Somebody has cut off the rest: nothing will be written that ends it. */
	if (n == 0 && s->ending)
		spool_pump_queue(s);
	return n;
}

size_t spool_step(struct spool_job *j)
{
	struct spool_source *s;
	size_t bytes = 0;
	uint64_t end;

	while (j->n_out < SPOOL_OUT_MAX && bytes < SPOOL_BUFFER &&
	       (s = spool_order_next(j, &end))) {
		ssize_t n = step_source(s, end);

		bytes += n > 0 ? (size_t)n : 0;
	}
	spool_index_flush(j);
	spool_order_list(j);
	spool_settle_check(j, false);
	return bytes;
}
