/* SPDX-License-Identifier: MIT */
/*
 * Output with its own state directory and a running loop, for tests of logs. Provides calls on the
 * I/O thread that wait, and waiting for conditions with a generous limit.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/file.h"
#include "backend/output/lines.h"
#include "backend/output/output.h"

#define RIG_WAIT_MS 240000

static struct {
	char state[64];
	struct loop *loop;
	struct output *output;
	struct output_job *job;
	bool up;
	atomic_uint told;  /* number of log events */
	atomic_uint ended; /* number of logs that ended */
	/* A function of the test that is called on the I/O thread for each log event, or NULL. */
	void (*_Atomic on_log)(struct log *log);
} rig;

static inline void rig_sleep(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

#define rig_until(condition)                                                                       \
	do {                                                                                       \
		uint64_t rig_end_ = loop_now_ms() + RIG_WAIT_MS;                                   \
		while (!(condition)) {                                                             \
			if (loop_now_ms() > rig_end_)                                              \
				fail_msg("never came: %s", #condition);                            \
			rig_sleep(2);                                                              \
		}                                                                                  \
	} while (0)

struct rig_call {
	loop_fn fn;
	void *data;
	sem_t done;
};

static inline void rig_run(void *data)
{
	struct rig_call *c = data;

	c->fn(c->data);
	sem_post(&c->done);
}

/* Call FN(DATA) on the I/O thread, and wait until it returns. */
static inline void rig_here(loop_fn fn, void *data)
{
	struct rig_call c = {.fn = fn, .data = data};

	sem_init(&c.done, 0, 0);
	loop_post(rig.loop, rig_run, &c);
	while (sem_wait(&c.done) < 0)
		assert_int_equal(errno, EINTR);
	sem_destroy(&c.done);
}

static inline void rig_on_log(void *data, struct log *log)
{
	if (rig.on_log)
		rig.on_log(log);
	atomic_fetch_add(&rig.told, 1);
}

static const struct output_events rig_events = {.log = rig_on_log};

static inline void rig_do_start(void *data)
{
	output_start(rig.output);
}

static inline void rig_stopped(void *data)
{
	sem_post(data);
}

static inline void rig_do_stop(void *data)
{
	output_stop(rig.output, rig_stopped, data);
}

static inline void rig_up(void)
{
	char *text = NULL;

	loop_new(&rig.loop);
	assert_int_equal(output_new(rig.loop, rig.state, &rig_events, &rig.output, &text), 0);
	assert_int_equal(loop_start(rig.loop), 0);
	rig.up = true;
	rig_here(rig_do_start, NULL);
}

/*
 * Free everything. If CLEAN, do it as at an unmount. Otherwise, do it as similarly to a crash as
 * one process can.
 */
static inline void rig_down(bool clean)
{
	sem_t stopped;

	rig.up = false;
	sem_init(&stopped, 0, 0);
	if (clean)
		rig_here(rig_do_stop, &stopped);
	while (clean && sem_wait(&stopped) < 0)
		assert_int_equal(errno, EINTR);
	sem_destroy(&stopped);
	loop_stop(rig.loop);
	output_free(rig.output);
	loop_free(rig.loop);
	rig.job = NULL;
}

static inline int rig_setup(void **state)
{
	diag_setup(DIAG_DEBUG, false);
	strcpy(rig.state, "/tmp/kxfs-unit-output-XXXXXX");
	assert_non_null(mkdtemp(rig.state));
	rig_up();
	return 0;
}

static inline int rig_teardown(void **state)
{
	if (rig.up) /* setup may have failed before */
		rig_down(true);
	return scratch_remove(rig.state);
}

/* --- the job of the test, whose functions are called on the I/O thread --- */

static inline void rig_do_open(void *data)
{
	rig.job = output_job_open(rig.output, data);
}

static inline void rig_open(const char *id)
{
	rig_here(rig_do_open, (void *)(uintptr_t)id);
	assert_non_null(rig.job);
}

struct rig_log {
	const char *key;
	const char *prefix;
	int err;
};

static inline void rig_do_begin(void *data)
{
	struct rig_log *l = data;

	l->err = output_log_begin(rig.job, l->key, l->prefix, false);
}

static inline void rig_begin(const char *key, const char *prefix)
{
	struct rig_log l = {.key = key, .prefix = prefix};

	rig_here(rig_do_begin, &l);
	assert_int_equal(l.err, 0);
}

/* Another process that writes a log and its table, like the helper of a local job. */
struct rig_writer {
	struct output_job *job;
	const char *key;
	int fd, lines_fd;
	struct lines_encoder lines;
};

/* Begin the log KEY of job ID (rig.job), create its file, and make W its writer. */
static inline void rig_writer_begin(struct rig_writer *w, const char *id, const char *key,
				    const char *prefix)
{
	const int flags = O_RDWR | O_APPEND | O_CLOEXEC;
	char path[256];
	struct stat st;

	rig_begin(key, prefix);
	w->job = rig.job;
	w->key = key;
	snprintf(path, sizeof(path), "%s/output/%s/logs/%s", rig.state, id, key);
	rig_until((w->fd = open(path, flags)) >= 0);
	snprintf(path, sizeof(path), "%s/output/%s/lines/%s", rig.state, id, key);
	w->lines_fd = open(path, flags | O_CREAT, 0600);
	assert_true(w->lines_fd >= 0);
	assert_int_equal(fstat(w->fd, &st), 0);
	assert_int_equal(lines_mend(w->lines_fd, w->fd, (uint64_t)st.st_size, &w->lines), 0);
}

/* Append N bytes to the log, printed at NS, without notifying kxfs. */
static inline void rig_append_at(struct rig_writer *w, int64_t ns, const char *bytes, size_t n)
{
	while (n > 0) {
		size_t part = min_of(n, (size_t)LINES_SPAN);
		uint8_t table[LINES_ADDED_MAX];
		size_t len = lines_add(&w->lines, ns, bytes, part, table);

		assert_int_equal(file_write_all(w->lines_fd, (const char *)table, len), 0);
		assert_int_equal(file_write_all(w->fd, bytes, part), 0);
		bytes += part;
		n -= part;
	}
}

static inline void rig_append(struct rig_writer *w, const char *bytes, size_t n)
{
	rig_append_at(w, loop_time_ns(), bytes, n);
}

static inline void rig_do_grown(void *data)
{
	const struct rig_writer *w = data;

	output_log_grown(w->job, w->key);
}

static inline void rig_grown(struct rig_writer *w)
{
	rig_here(rig_do_grown, w);
}

static inline void rig_write(struct rig_writer *w, const char *text)
{
	rig_append(w, text, strlen(text));
	rig_grown(w);
}

static inline void rig_writer_end(struct rig_writer *w)
{
	close(w->fd);
	close(w->lines_fd);
}

static inline void rig_on_end(void *data)
{
	atomic_fetch_add(&rig.ended, 1);
}

static inline void rig_do_end(void *data)
{
	output_log_end(rig.job, data, rig_on_end, NULL);
}

static inline void rig_end(const char *key)
{
	rig_here(rig_do_end, (void *)(uintptr_t)key);
}

static inline void rig_do_job_end(void *data)
{
	output_job_end(rig.job);
}

static inline void rig_do_close(void *data)
{
	output_job_close(rig.job);
	rig.job = NULL;
}

static inline struct log *rig_log(const char *id, const char *key)
{
	struct log *log = NULL;

	assert_int_equal(output_log(rig.output, id, key, LOG_PLAIN, &log), 0);
	return log;
}

static inline struct log_stat rig_stat(struct log *log)
{
	struct log_stat st;

	assert_int_equal(log_stat(log, &st), 0);
	return st;
}

/* Return the contents of LOG, up to its current size. malloc'ed. */
static inline char *rig_read(struct log *log, size_t *ret_len)
{
	size_t size = rig_stat(log).size, n = 0;
	char *text = malloc(size + 1);

	while (n < size) {
		ssize_t got = log_read(log, text + n, size - n, n);

		assert_true(got > 0);
		n += (size_t)got;
	}
	text[n] = '\0';
	*ret_len = n;
	return text;
}
