/* SPDX-License-Identifier: MIT */
/*
 * Puts output into the spool as a stream of a log would, but without a stream. Uses the loop of
 * fake_net.h.
 */
#pragma once

#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/backend/output/print_lines.h"

static inline void output_print_opened(void *data, int err)
{
	assert_int_equal(err, 0);
}

static inline void output_print_written(void *data, int err)
{
	assert_int_equal(err, 0);
}

/* Write TEXT to the log KEY of job J. The log must have begun, and have no stream. */
static inline void output_print(struct output_job *j, const char *key, const char *text)
{
	const struct log_writer_events events = {.opened = output_print_opened,
						 .written = output_print_written};
	struct log_writer *w = log_writer_new(j, key, &events);

	assert_non_null(w);
	fake_run();
	print_lines(w, 1, text);
	fake_run();
	log_writer_close(w);
	fake_run();
}
