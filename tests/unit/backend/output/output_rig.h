/* SPDX-License-Identifier: MIT */
/*
 * Output with its own state directory, and one job, "job". The test runs the loop and the pool
 * (fake_net.h), so everything happens when the test says so.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/backend/output/output_print.h"
#include "tests/unit/scratch.h"

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "spec/base/mem.h"

#define RIG_WRITERS 16
#define RIG_TIME    INT64_C(1700000000000000000) /* 2023-11-14T22:13:20Z, in ns */

static struct {
	char dir[64];
	output_fetch_fn fetch; /* NULL if the output is that of a local job */
	struct output *output;
	struct output_job *job;
	struct {
		char key[16];
		struct log_writer *w;
	} writers[RIG_WRITERS];
	unsigned told, ended, removed, stopped; /* number of callbacks */
} rig;

static inline void rig_on_log(void *data, struct log *log)
{
	rig.told++;
}

/* Count a callback in *DATA. */
static inline void rig_count(void *data)
{
	++*(unsigned *)data;
}

static inline void rig_on_removed(void *data, int err)
{
	assert_int_equal(err, 0);
	rig.removed++;
}

/* All output has been fetched already. */
static inline void rig_fetch_nothing(void *data, const char *id, const char *key, loop_fn done,
				     void *arg)
{
	done(arg);
}

/* --- runs of kxfs --- */

static inline void rig_up(void)
{
	static const struct output_events events = {.log = rig_on_log};
	char *text = NULL;

	assert_int_equal(output_new(NULL, rig.dir, &events, &rig.output, &text), 0);
	if (rig.fetch)
		output_set_fetch(rig.output, rig.fetch, NULL);
	output_start(rig.output);
	fake_run();
	rig.stopped = 0;
}

static inline void rig_close_writers(void)
{
	for (size_t i = 0; i < RIG_WRITERS; i++)
		log_writer_close(take_ptr(rig.writers[i].w));
}

static inline void rig_close(void)
{
	rig_close_writers();
	if (rig.job)
		output_job_close(take_ptr(rig.job));
}

/* Free the output as after a crash: lines that wait are not in the merged log. */
static inline void rig_crash(void)
{
	rig_close_writers();
	fake_run();
	fake_forget_timers();
	output_free(take_ptr(rig.output));
	rig.job = NULL;
}

/* Stop kxfs, as an unmount does, while the job is open. No time passes. */
static inline void rig_down(void)
{
	rig_close_writers();
	fake_run();
	output_stop(rig.output, rig_count, &rig.stopped);
	fake_run();
	assert_int_equal(rig.stopped, 1);
	rig_crash();
}

static inline int rig_setup_fetch(output_fetch_fn fetch)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	rig.fetch = fetch;
	diag_setup(DIAG_DEBUG, false);
	strcpy(rig.dir, "/tmp/kxfs-output-XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	rig_up();
	return 0;
}

static inline int rig_setup(void **state)
{
	return rig_setup_fetch(NULL);
}

static inline int rig_setup_fetched(void **state)
{
	return rig_setup_fetch(rig_fetch_nothing);
}

static inline int rig_teardown(void **state)
{
	if (rig.stopped)
		rig_crash();
	else if (rig.output)
		rig_down();
	return scratch_remove(rig.dir);
}

#define rig_test(t)	    cmocka_unit_test_setup_teardown(t, rig_setup, rig_teardown)
#define rig_test_fetched(t) cmocka_unit_test_setup_teardown(t, rig_setup_fetched, rig_teardown)

/* --- the job and its logs --- */

static inline void rig_open(void)
{
	if (!rig.job)
		rig.job = output_job_open(rig.output, "job");
	assert_non_null(rig.job);
}

/* Begin the log KEY. The pool does nothing before the next fake_run. */
static inline void rig_begin(const char *key, const char *prefix)
{
	rig_open();
	assert_int_equal(output_log_begin(rig.job, key, prefix, false), 0);
}

/* Return the place for the writer of the log KEY: its own one, or a free one. */
static inline struct log_writer **rig_writer_of(const char *key)
{
	struct log_writer **found = NULL;

	for (size_t i = 0; i < RIG_WRITERS; i++) {
		if (rig.writers[i].w && streq(rig.writers[i].key, key))
			return &rig.writers[i].w;
		if (!rig.writers[i].w && !found) {
			strcpy(rig.writers[i].key, key);
			found = &rig.writers[i].w;
		}
	}
	assert_non_null(found);
	return found;
}

/* Write TEXT, which was printed at NS, to the log KEY, as kxfs does with fetched output. */
static inline void rig_print(const char *key, int64_t ns, const char *text)
{
	struct log_writer **w = rig_writer_of(key);

	if (!*w)
		*w = output_print_begin(rig.job, key);
	print_lines(*w, ns, text);
	fake_run();
}

/* The log KEY is complete. */
static inline void rig_end(const char *key)
{
	log_writer_close(take_ptr(*rig_writer_of(key)));
	output_log_end(rig.job, key, rig_count, &rig.ended);
}

/* --- files --- */

/* Return the path of NAME, which is relative to the directory of all output. */
static inline char *rig_path(const char *name)
{
	return text_print("%s/output/%s", rig.dir, name);
}

static inline bool rig_there(const char *name)
{
	cleanup_free char *path = rig_path(name);

	return access(path, F_OK) == 0;
}

static inline uint64_t rig_size(const char *name)
{
	cleanup_free char *path = rig_path(name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

static inline void rig_mkdir(const char *name)
{
	cleanup_free char *path = rig_path(name);

	assert_int_equal(mkdir(path, 0700), 0);
}

/* Append TEXT to the file NAME, which is created if needed. */
static inline void rig_put(const char *name, const char *text)
{
	cleanup_free char *path = rig_path(name);
	FILE *f = fopen(path, "a");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* Write TEXT to the log KEY and to its table, as the helper of a local job does. */
static inline void rig_append(const char *key, int64_t ns, const char *text)
{
	const int flags = O_RDWR | O_APPEND | O_CLOEXEC;
	cleanup_free char *log_path = text_print("%s/output/job/logs/%s", rig.dir, key);
	cleanup_free char *lines_path = text_print("%s/output/job/lines/%s", rig.dir, key);
	cleanup_fd int log = open(log_path, flags), lines = open(lines_path, flags | O_CREAT, 0600);
	uint8_t table[LINES_ADDED_MAX];
	struct lines_encoder e;
	size_t n;

	assert_true(log >= 0 && lines >= 0);
	assert_int_equal(lines_mend(lines, log, (uint64_t)lseek(log, 0, SEEK_END), &e), 0);
	n = lines_add(&e, ns, text, strlen(text), table);
	assert_int_equal(file_write_all(lines, (const char *)table, n), 0);
	assert_int_equal(file_write_all(log, text, strlen(text)), 0);
}

/* Make the disk refuse the file NAME of the job, until rig_give is called. */
static inline void rig_refuse(const char *name)
{
	cleanup_free char *path = text_print("%s/output/job/%s", rig.dir, name);
	cleanup_free char *kept = text_print("%s/kept", rig.dir);

	assert_int_equal(rename(path, kept), 0);
	assert_int_equal(symlink("a", path), 0); /* kxfs follows no links */
}

static inline void rig_give(const char *name)
{
	cleanup_free char *path = text_print("%s/output/job/%s", rig.dir, name);
	cleanup_free char *kept = text_print("%s/kept", rig.dir);

	assert_int_equal(rename(kept, path), 0);
}

/* --- what readers see --- */

/* Open the log KEY, or the merged log if KEY is NULL. */
static inline struct log *rig_log_of(const char *key, enum log_form form)
{
	struct log *log = NULL;

	assert_int_equal(output_log(rig.output, "job", key, form, &log), 0);
	return log;
}

static inline struct log *rig_log(const char *key)
{
	return rig_log_of(key, LOG_PLAIN);
}

static inline bool rig_ended(struct log *log)
{
	struct log_stat st;

	assert_int_equal(log_stat(log, &st), 0);
	return st.ended;
}

/* Assert that LOG is TEXT now, from whichever offset it is read. */
static inline void rig_reads(struct log *log, const char *text)
{
	const size_t len = strlen(text);
	cleanup_free char *got = calloc(1, len + 1);
	struct log_stat st;

	assert_int_equal(log_stat(log, &st), 0);
	assert_int_equal(log_read(log, got, len, 0), len);
	assert_string_equal(got, text);
	assert_int_equal(st.size, len);
	for (size_t from = 1; from <= len; from += 1 + len / 1000) {
		assert_int_equal(log_read(log, got, len, from), len - from);
		assert_memory_equal(got, text + from, len - from);
		assert_int_equal(log_read(log, got, 7, from), min_of(len - from, (size_t)7));
		assert_memory_equal(got, text + from, min_of(len - from, (size_t)7));
	}
}

/* The same, for somebody who opens the log KEY after all lines had time to get into it. */
static inline void rig_expect_form(const char *key, enum log_form form, const char *text)
{
	struct log_stat st;
	struct log *log;

	fake_run();
	fake_pass(5000);
	assert_int_equal(output_log_stat(rig.output, "job", key, form, &st), 0);
	assert_int_equal(st.size, strlen(text));
	log = rig_log_of(key, form);
	fake_run();
	rig_reads(log, text);
	log_unref(log);
}

static inline void rig_expect(const char *key, const char *text)
{
	rig_expect_form(key, LOG_PLAIN, text);
}
