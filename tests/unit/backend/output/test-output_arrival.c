/* SPDX-License-Identifier: MIT */
/*
 * When the output that existed at an open can be read: which opens wait for that, and what ends the
 * wait. The test plays the fetching of output (fake_net.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/backend/output/output_print.h"

#include "backend/base/diag.h"
#include "backend/output/log.h"
#include "backend/output/output.h"

#define FETCHES_MAX 4

static struct {
	char dir[64];
	struct output *output;
	struct output_job *job;
	struct {
		char id[16], key[16];
		loop_fn done;
		void *arg;
	} fetches[FETCHES_MAX];
	size_t n_fetches;
	unsigned arrived;
	size_t told; /* number of log events */
} rig;

static void on_fetch(void *data, const char *id, const char *key, loop_fn done, void *arg)
{
	assert_true(rig.n_fetches < FETCHES_MAX);
	snprintf(rig.fetches[rig.n_fetches].id, sizeof(rig.fetches[0].id), "%s", id);
	snprintf(rig.fetches[rig.n_fetches].key, sizeof(rig.fetches[0].key), "%s",
		 key ? key : "(all)");
	rig.fetches[rig.n_fetches].done = done;
	rig.fetches[rig.n_fetches++].arg = arg;
}

static void fetched(size_t i)
{
	loop_fn done = rig.fetches[i].done;

	assert_non_null(done);
	rig.fetches[i].done = NULL;
	done(rig.fetches[i].arg);
	fake_run();
}

static void on_log(void *data, struct log *log)
{
	rig.told++;
}

static int setup(void **state)
{
	static const struct output_events events = {.log = on_log};
	char *text = NULL;

	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	diag_setup(DIAG_DEBUG, false);
	strcpy(rig.dir, "/tmp/kxfs-arrival-XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	assert_int_equal(output_new(NULL, rig.dir, &events, &rig.output, &text), 0);
	output_set_fetch(rig.output, on_fetch, NULL);
	output_start(rig.output);
	fake_run();
	return 0;
}

static int teardown(void **state)
{
	if (rig.job)
		output_job_close(rig.job);
	fake_run();
	output_stop(rig.output, fake_nothing, NULL);
	fake_run();
	fake_forget_timers();
	output_free(rig.output);
	return scratch_remove(rig.dir);
}

/* Begin log KEY of the job. */
static void begin_log(void)
{
	rig.job = output_job_open(rig.output, "job");
	assert_non_null(rig.job);
	assert_int_equal(output_log_begin(rig.job, "key", "a/0 ", false), 0);
	fake_run();
}

static void print(const char *text)
{
	output_print(rig.job, "key", text);
}

static struct log *open_log(const char *key)
{
	struct log *log = NULL;

	assert_int_equal(output_log(rig.output, "job", key, LOG_PLAIN, &log), 0);
	return log;
}

static void on_arrived(void *data)
{
	rig.arrived++;
}

static void await(struct log *log)
{
	log_when_arrived(log, on_arrived, NULL);
	fake_run();
}

static void reads(struct log *log, const char *text, bool ended)
{
	char got[256] = "";
	struct log_stat st;

	assert_int_equal(log_stat(log, &st), 0);
	assert_int_equal(st.size, strlen(text));
	assert_int_equal(st.ended, ended);
	assert_int_equal(log_read(log, got, sizeof(got) - 1, 0), strlen(text));
	assert_string_equal(got, text);
}

/* The first open of a log fetches its output and waits for it. A later open does not. */
static void test_one(void **state)
{
	struct log *log, *again;

	begin_log();
	log = open_log("key");
	assert_false(log_has_arrived(log));
	await(log);
	await(log);
	assert_int_equal(rig.n_fetches, 1);
	assert_string_equal(rig.fetches[0].id, "job");
	assert_string_equal(rig.fetches[0].key, "key");
	assert_int_equal(rig.arrived, 0);
	print("one\n");
	fetched(0);
	assert_int_equal(rig.arrived, 2);
	assert_true(log_has_arrived(log));
	reads(log, "one\n", false);
	await(log);
	assert_int_equal(rig.arrived, 3);
	/* A second open of the log while the first one waits shares the wait. */
	again = open_log("key");
	fake_run();
	for (size_t i = 1; i < rig.n_fetches; i++)
		fetched(i);
	assert_true(log_has_arrived(again));
	log_unref(again);
	log_unref(log);
}

/* An open of the merged log waits until the fetched output was merged. */
static void test_merged(void **state)
{
	struct log *log;

	begin_log();
	log = open_log(NULL);
	await(log);
	assert_string_equal(rig.fetches[0].key, "(all)");
	print("one\ntwo\n");
	assert_int_equal(rig.arrived, 0);
	fetched(0);
	fake_pass(2000);
	assert_int_equal(rig.arrived, 1);
	reads(log, "a/0 one\na/0 two\n", false);
	log_unref(log);
}

/* A log that was never begun counts as ended by then, so there is nothing to wait for. */
static void test_nothing(void **state)
{
	struct log *log;

	rig.job = output_job_open(rig.output, "job");
	assert_non_null(rig.job);
	log = open_log("other");
	await(log);
	fetched(0);
	assert_int_equal(rig.arrived, 1);
	assert_true(rig.told > 0);
	reads(log, "", true);
	log_unref(log);
}

/* The end of the mount ends the wait. */
static void test_stop(void **state)
{
	struct log *log, *all;

	begin_log();
	log = open_log("key");
	all = open_log(NULL);
	await(log);
	await(all);
	output_log_end(rig.job, "key", NULL, NULL);
	output_job_close(rig.job);
	rig.job = NULL;
	output_stop(rig.output, fake_nothing, NULL);
	assert_int_equal(rig.n_fetches, 2);
	fetched(0);
	fetched(1);
	assert_int_equal(rig.arrived, 2);
	log_unref(log);
	log_unref(all);
}

/*
 * The job is removed while an open waits. That ends the wait too, and the existing output can be
 * read.
 */
static void test_removed(void **state)
{
	struct log *log, *all;

	begin_log();
	print("one\n");
	log = open_log("key");
	all = open_log(NULL);
	await(log);
	await(all);
	output_log_end(rig.job, "key", NULL, NULL);
	fake_run();
	output_job_close(rig.job);
	rig.job = NULL;
	fake_run();
	output_job_remove(rig.output, "job", NULL, NULL);
	fake_run();
	fetched(0);
	fetched(1);
	assert_int_equal(rig.arrived, 2);
	reads(log, "one\n", true);
	reads(all, "a/0 one\n", true);
	log_unref(log);
	log_unref(all);
}

/* Readers of a log that is removed before it has ended are notified that the rest is missing. */
static void test_cut(void **state)
{
	struct log *log, *ended;
	size_t told;

	begin_log();
	assert_int_equal(output_log_begin(rig.job, "ended", "b/0 ", false), 0);
	fake_run();
	output_log_end(rig.job, "ended", NULL, NULL);
	fake_run();
	print("one\n");
	log = open_log("key");
	ended = open_log("ended");
	output_job_close(take_ptr(rig.job));
	fake_run();
	assert_false(log_is_cut(log) || log_is_cut(ended));
	told = rig.told;
	output_job_remove(rig.output, "job", NULL, NULL);
	fake_run();
	assert_true(rig.told > told && log_is_cut(log) && !log_is_cut(ended));
	reads(log, "one\n", true);
	fetched(0);
	fetched(1);
	log_unref(log);
	log_unref(ended);
}

/*
 * They are also notified if another reader has the log fetched before the disk starts the removal.
 */
static void test_cut_and_fetched(void **state)
{
	struct log *all;

	begin_log();
	print("one\n");
	all = open_log(NULL);
	fake_run();
	output_job_close(take_ptr(rig.job));
	output_job_remove(rig.output, "job", NULL, NULL);
	fetched(0);
	assert_true(log_is_cut(all));
	log_unref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_merged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_and_fetched, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
