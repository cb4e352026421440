/* SPDX-License-Identifier: MIT */
/*
 * A spool on a state directory of its own, with a running loop, for tests of logs: calls on the I/O
 * thread that are waited for, and conditions that are waited for with a generous limit.
 */
#ifndef KXFS_TESTS_SPOOL_RIG_H
#define KXFS_TESTS_SPOOL_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "scratch.h"

#include "backend/diag.h"
#include "backend/lock.h"
#include "backend/spool.h"

#define RIG_WAIT_MS 60000

static struct {
	char state[64];
	struct loop *loop;
	struct spool *spool;
	struct spool_job *job;
	struct backend_events events;
	bool up;
	atomic_uint told;  /* times that a log had news */
	atomic_uint ended; /* logs whose end was told */
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

/* FN(DATA) on the I/O thread, waited for. */
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
	(void)data;
	(void)log;
	atomic_fetch_add(&rig.told, 1);
}

static inline void rig_do_start(void *data)
{
	(void)data;
	spool_start(rig.spool);
}

static inline void rig_do_stop(void *data)
{
	(void)data;
	spool_stop(rig.spool);
}

static inline void rig_up(void)
{
	char *text = NULL;

	rig.events.log = rig_on_log;
	assert_int_equal(loop_new(&rig.loop), 0);
	assert_int_equal(spool_new(rig.loop, rig.state, &rig.events, &rig.spool, &text), 0);
	assert_int_equal(loop_start(rig.loop), 0);
	rig.up = true;
	rig_here(rig_do_start, NULL);
}

/* As an unmount; or, when not CLEAN, as nearly a crash as one process can have. */
static inline void rig_down(bool clean)
{
	rig.up = false;
	if (clean)
		rig_here(rig_do_stop, NULL);
	loop_stop(rig.loop);
	spool_free(rig.spool);
	loop_free(rig.loop);
	rig.job = NULL;
}

static inline int rig_setup(void **state)
{
	(void)state;
	diag_setup(DIAG_DEBUG, false);
	strcpy(rig.state, "/tmp/kxfs-unit-spool-XXXXXX");
	assert_non_null(mkdtemp(rig.state));
	rig_up();
	return 0;
}

static inline int rig_teardown(void **state)
{
	(void)state;
	if (rig.up) /* not after a failure in between */
		rig_down(true);
	return scratch_remove(rig.state);
}

/* --- the job of the test; its calls are made on the I/O thread --- */

static inline void rig_do_open(void *data)
{
	rig.job = spool_job_open(rig.spool, data);
}

static inline void rig_open(const char *id)
{
	rig_here(rig_do_open, (void *)(uintptr_t)id);
	assert_non_null(rig.job);
}

struct rig_log {
	const char *key;
	const char *prefix;
	int fd;
	int err;
};

static inline void rig_do_begin(void *data)
{
	struct rig_log *l = data;

	l->err = spool_log_begin(rig.job, l->key, l->prefix, &l->fd);
}

/* A descriptor for writing it. */
static inline int rig_begin(const char *key, const char *prefix)
{
	struct rig_log l = {.key = key, .prefix = prefix, .fd = -1};

	rig_here(rig_do_begin, &l);
	assert_int_equal(l.err, 0);
	assert_true(fcntl(l.fd, F_GETFD) & FD_CLOEXEC);
	return l.fd;
}

static inline void rig_on_end(void *data)
{
	(void)data;
	atomic_fetch_add(&rig.ended, 1);
}

static inline void rig_do_end(void *data)
{
	spool_log_end(rig.job, data, rig_on_end, NULL);
}

static inline void rig_end(const char *key)
{
	rig_here(rig_do_end, (void *)(uintptr_t)key);
}

static inline void rig_do_job_end(void *data)
{
	(void)data;
	spool_job_end(rig.job);
}

static inline void rig_do_close(void *data)
{
	(void)data;
	spool_job_close(rig.job);
	rig.job = NULL;
}

static inline struct log *rig_log(const char *id, const char *key)
{
	struct log *log = NULL;

	assert_int_equal(spool_log(rig.spool, id, key, &log), 0);
	return log;
}

static inline struct log_stat rig_stat(struct log *log)
{
	struct log_stat st;

	assert_int_equal(log_stat(log, &st), 0);
	return st;
}

/* All of LOG, as long as it is now. */
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

static inline void rig_write(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

#endif
