/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as streams, one after the other (cut at form feeds), and any bytes as the known end of
 * a log whose lines have any times. The output has the order of the stream. Reading the first
 * stream again adds nothing.
 */
#include "fuzz.h"

#include <errno.h>

#include "spec/logline/logline.h"

/* A log and its table of lines. */
struct log {
	char *bytes;
	size_t n;
	struct spec_line *lines;
	size_t n_lines;
	struct spec_logline_past past;
};

static int add(void *data, int64_t ns, const char *bytes, size_t n)
{
	struct log *log = data;
	bool begins = log->n == 0 || log->bytes[log->n - 1] == '\n';

	assert(bytes && n > 0 && ns >= 0);
	assert(!memchr(bytes, '\n', n - 1)); /* a single line, as the writer requires */
	if (begins && (log->n_lines == 0 || log->lines[log->n_lines - 1].ns != ns))
		log->lines[log->n_lines++] = (struct spec_line){log->n, ns};
	memcpy(log->bytes + log->n, bytes, n);
	log->n += n;
	return 0;
}

static int stream(struct log *log, const char *bytes, size_t n, size_t window, bool force)
{
	struct spec_logline_known known = {.from = log->n - min_of(log->n, window), .size = log->n};
	struct spec_logline *l;
	size_t first = 0;
	int64_t ns;
	int err;

	while (first + 1 < log->n_lines && log->lines[first + 1].at <= known.from)
		first++;
	known.n_lines = log->n_lines - first;
	known.bytes = malloc(log->n + 1);
	known.lines = malloc((known.n_lines + 1) * sizeof(known.lines[0]));
	memcpy(known.bytes, log->bytes + known.from, log->n - known.from);
	memcpy(known.lines, log->lines + first, known.n_lines * sizeof(known.lines[0]));
	l = spec_logline_new(&known, force, &log->past);
	if (log->n == 0) {
		free(known.bytes);
		free(known.lines);
	}
	if (spec_logline_since(l, &ns))
		assert(ns % 1000000000 == 0);
	err = spec_logline_feed(l, bytes, n / 2, add, log);
	if (err == 0)
		err = spec_logline_feed(l, bytes + n / 2, n - n / 2, add, log);
	assert(err == 0 || err == -EAGAIN || err == -ESTALE);
	if (err == 0)
		err = spec_logline_end(l, add, log);
	assert(!spec_logline_gap(l) || force);
	spec_logline_free(l);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/*
	 * A stream has no more output than bytes. Each stream, and the known end, is read at most
	 * twice.
	 */
	struct log log = {.bytes = malloc(3 * size + 1), .lines = calloc(3 * size + 1, 16)};
	const char *at = (const char *)data, *end = at + size;

	assert(log.bytes && log.lines);
	while (at < end) {
		const char *cut = memchr(at, '\f', (size_t)(end - at));
		size_t n = (size_t)((cut ? cut : end) - at), before = log.n;

		if (stream(&log, at, n, 1 + n, false) == 0 && before == 0) {
			before = log.n;
			assert(stream(&log, at, n, SIZE_MAX, false) == 0 || before == 0);
			assert(log.n == before);
		}
		stream(&log, at, n, n % 7, true);
		at += n + (cut ? 1 : 0);
	}
	/* Use any bytes as the known end, and any time for each of its lines. */
	log.n = log.n_lines = 0;
	add(&log, size > 0 ? data[0] : 0, "known\n", size > 5 ? 6 : 1);
	stream(&log, (const char *)data, size, 3, false);
	free(log.bytes);
	free(log.lines);
	return 0;
}
