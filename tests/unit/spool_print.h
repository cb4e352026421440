/* SPDX-License-Identifier: MIT */
/* Output that comes into the spool as a follow stream brings it, without one; with the loop of fake_net.h. */
#ifndef KXFS_TESTS_SPOOL_PRINT_H
#define KXFS_TESTS_SPOOL_PRINT_H

#include "fake_net.h"

#include "backend/spool_write.h"

static inline void spool_print_opened(void *data, int err, struct spec_logline *l)
{
	(void)data;
	(void)l;
	assert_int_equal(err, 0);
}

static inline void spool_print_written(void *data, int err)
{
	(void)data;
	assert_int_equal(err, 0);
}

/* TEXT is printed into the log KEY of J, which has begun and is not followed. */
static inline void spool_print(struct spool_job *j, const char *key, const char *text)
{
	const struct spool_writer_events events = {spool_print_opened, spool_print_written, NULL};
	struct spool_writer *w = spool_writer_new(j, key, &events);

	assert_non_null(w);
	fake_run();
	assert_int_equal(spool_writer_add(w, 1, text, strlen(text)), 0);
	spool_writer_flush(w);
	fake_run();
	spool_writer_close(w);
	fake_run();
}

#endif
