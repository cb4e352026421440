/* SPDX-License-Identifier: MIT */
/*
 * Puts output into the spool as a stream of a log would, but without a stream. Uses the loop of
 * fake_net.h.
 */
#pragma once

#include "tests/unit/backend/client/fake_net.h"

#include "backend/output/writer.h"

/* Pass lines to a writer one by one, as a stream does. */
static inline void print_lines(struct log_writer *w, int64_t ns, const char *text)
{
	while (*text) {
		const char *newline = strchr(text, '\n');
		size_t n = newline ? (size_t)(newline + 1 - text) : strlen(text);

		log_writer_add(w, ns, text, n);
		text += n;
	}
	log_writer_flush(w);
}

static inline void output_print_opened(void *data, int err)
{
	assert_int_equal(err, 0);
}

static inline void output_print_written(void *data, int err)
{
	assert_int_equal(err, 0);
}

/* Return a writer of the log KEY of job J. The log must have begun, and have no stream. */
static inline struct log_writer *output_print_begin(struct output_job *j, const char *key)
{
	const struct log_writer_events events = {.opened = output_print_opened,
						 .written = output_print_written};
	struct log_writer *w = log_writer_new(j, key, &events);

	assert_non_null(w);
	fake_run();
	return w;
}

/* Write TEXT to the log KEY of job J. */
static inline void output_print(struct output_job *j, const char *key, const char *text)
{
	struct log_writer *w = output_print_begin(j, key);

	print_lines(w, 1, text);
	fake_run();
	log_writer_close(w);
	fake_run();
}
