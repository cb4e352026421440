/* SPDX-License-Identifier: MIT */
/*
 * What is known of the output: how much of it, where its last lines began, and from which seconds on a stream
 * of it can be asked for. It grows by what a stream brings (logline.c) and by what was kept without times; it is
 * cut where less of the output is there than it tells of.
 */
#include <assert.h>

#include "spec/logline_impl.h"

struct spec_logline *spec_logline_new(void)
{
	struct spec_logline *l = calloc(1, sizeof(*l));

	if (l)
		l->last_ns = l->max_second = INT64_MIN;
	if (l)
		l->ask_below = UINT64_MAX;
	return l;
}

void spec_logline_free(struct spec_logline *l)
{
	if (l)
		free(l->match);
	free(l);
}

uint64_t spec_logline_size(const struct spec_logline *l)
{
	return l->size;
}

unsigned spec_logline_gaps(const struct spec_logline *l)
{
	return l->gaps;
}

int64_t spec_logline_last(const struct spec_logline *l)
{
	return l->last_ns == INT64_MIN ? 0 : l->last_ns;
}

/* --- less of it is there --- */

/* Forget all that begins after SIZE. */
static size_t cut_starts(struct logline_start *v, size_t n, uint64_t size)
{
	while (n > 0 && v[n - 1].at > size)
		n--;
	return n;
}

static void later_timed(const struct logline_start **timed, const struct logline_start *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].ns != LOGLINE_UNTIMED && (!*timed || v[i].at >= (*timed)->at))
			*timed = &v[i];
}

void logline_cut(struct spec_logline *l, uint64_t size)
{
	const struct logline_start *last = &l->first, *timed = NULL;

	if (size >= l->size)
		return;
	/* As it was loaded, with the ring from its beginning. */
	assert(l->n_lines <= LOGLINE_RING);
	l->n_marks = cut_starts(l->marks, l->n_marks, size);
	l->n_lines = cut_starts(l->ring, l->n_lines, size);
	if (l->n_marks > 0 && l->marks[l->n_marks - 1].at > last->at)
		last = &l->marks[l->n_marks - 1];
	if (l->n_lines > 0 && l->ring[l->n_lines - 1].at > last->at)
		last = &l->ring[l->n_lines - 1];
	/* Of a later start the hash is known, so what comes after it can be added. */
	l->size = last->at;
	l->hash = last->hash;
	l->midline = false;
	if (l->n_lines == 0)
		l->ring[l->n_lines++] = *last;
	later_timed(&timed, &l->first, 1);
	later_timed(&timed, l->marks, l->n_marks);
	later_timed(&timed, l->ring, l->n_lines);
	l->last_ns = timed ? timed->ns : INT64_MIN;
	l->untimed = l->size - (timed ? timed->at : 0);
	l->max_second = l->n_marks > 0 ? logline_second(l->marks[l->n_marks - 1].ns) : INT64_MIN;
}

/* --- more comes --- */

static const struct logline_start *last_start(const struct spec_logline *l)
{
	return &l->ring[(l->n_lines - 1) % LOGLINE_RING];
}

/*
 * A line begins at the end of what is known. A mark is the first line of its second: no line before it is
 * of that second or later, none after it is earlier. So when the clock steps back, marks go, and there are
 * new ones only when it is later than ever.
 */
void logline_note_line(struct spec_logline *l, int64_t ns)
{
	const struct logline_start start = {.ns = ns, .at = l->size, .hash = l->hash};
	int64_t second = logline_second(ns);

	if (l->size == 0)
		l->first = start;
	while (l->n_marks > 0 && logline_second(l->marks[l->n_marks - 1].ns) > second)
		l->n_marks--;
	if (second > l->max_second) {
		if (l->n_marks == LOGLINE_MARKS)
			memmove(l->marks, l->marks + 1, --l->n_marks * sizeof(l->marks[0]));
		l->marks[l->n_marks++] = start;
		l->max_second = second;
	}
	l->ring[l->n_lines++ % LOGLINE_RING] = start;
	l->last_ns = ns;
	l->untimed = 0;
}

void logline_append(struct spec_logline *l, const char *bytes, size_t n)
{
	l->hash = logline_hash(l->hash, bytes, n);
	l->size += n;
	l->midline = bytes[n - 1] != '\n';
}

/* Does a line begin at the end of what is known, or what may be a part of one? */
static bool begins_known(const struct spec_logline *l)
{
	uint64_t n = l->size - last_start(l)->at;

	return l->n_lines == 0 || (!l->midline && n > 0) || (!l->plain && n >= LOGLINE_ENTRY);
}

void spec_logline_known(struct spec_logline *l, const char *bytes, size_t n)
{
	const char *end = bytes + n;

	while (bytes < end) {
		const char *newline;

		if (begins_known(l)) {
			const struct logline_start start = {LOGLINE_UNTIMED, l->size, l->hash};

			if (l->n_lines == 0)
				l->first = start;
			l->ring[l->n_lines++ % LOGLINE_RING] = start;
		}
		n = (size_t)(end - bytes);
		if (!l->plain)
			n = min_of(n, (size_t)(last_start(l)->at + LOGLINE_ENTRY - l->size));
		newline = memchr(bytes, '\n', n);
		n = newline ? (size_t)(newline + 1 - bytes) : n;
		logline_append(l, bytes, n);
		l->untimed += n;
		bytes += n;
	}
}
