/* SPDX-License-Identifier: MIT */
/*
 * When what had been printed at an open can be read: who waits for that, and what ends the waiting. The output is
 * fetched by the test, when it likes (fake_net.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "spool_print.h"

#include "backend/diag.h"
#include "backend/log.h"
#include "backend/spool.h"

#define FETCHES_MAX 4

static struct {
	char dir[64];
	struct spool *spool;
	struct spool_job *job;
	struct {
		char id[16], key[16];
		loop_fn done;
		void *arg;
	} fetches[FETCHES_MAX];
	size_t n_fetches;
	unsigned settled;
	size_t told; /* news of any log */
} rig;

static void on_fetch(void *data, const char *id, const char *key, loop_fn done, void *arg)
{
	(void)data;
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
	(void)data;
	(void)log;
	rig.told++;
}

static int setup(void **state)
{
	static const struct backend_events events = {.log = on_log};
	char *text = NULL;

	(void)state;
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	diag_setup(DIAG_DEBUG, false);
	strcpy(rig.dir, "/tmp/kxfs-log_settle-XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	assert_int_equal(spool_new(NULL, rig.dir, &events, &rig.spool, &text), 0);
	spool_set_fetch(rig.spool, on_fetch, NULL);
	spool_start(rig.spool);
	fake_run();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (rig.job)
		spool_job_close(rig.job);
	fake_run();
	spool_stop(rig.spool);
	fake_run();
	fake_forget_timers();
	spool_free(rig.spool);
	return scratch_remove(rig.dir);
}

/* Log KEY of the job begins. */
static void begin_log(void)
{
	rig.job = spool_job_open(rig.spool, "job");
	assert_non_null(rig.job);
	assert_int_equal(spool_log_begin(rig.job, "key", "a/0 ", NULL), 0);
	fake_run();
}

static void print(const char *text)
{
	spool_print(rig.job, "key", text);
}

static struct log *open_log(const char *key)
{
	struct log *log = NULL;

	assert_int_equal(spool_log(rig.spool, "job", key, &log), 0);
	return log;
}

static void on_settled(void *data)
{
	(void)data;
	rig.settled++;
}

static void await(struct log *log)
{
	log_settle(log, on_settled, NULL);
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

/* Whoever opens a log has it fetched, and waits for that; who comes later does not. */
static void test_one(void **state)
{
	struct log *log, *again;

	(void)state;
	begin_log();
	log = open_log("key");
	assert_false(log_settled(log));
	await(log);
	await(log);
	assert_int_equal(rig.n_fetches, 1);
	assert_string_equal(rig.fetches[0].id, "job");
	assert_string_equal(rig.fetches[0].key, "key");
	assert_int_equal(rig.settled, 0);
	print("one\n");
	fetched(0);
	assert_int_equal(rig.settled, 2);
	assert_true(log_settled(log));
	reads(log, "one\n", false);
	await(log);
	assert_int_equal(rig.settled, 3);
	/* Who opens it while another has it open shares that. */
	again = open_log("key");
	fake_run();
	for (size_t i = 1; i < rig.n_fetches; i++)
		fetched(i);
	assert_true(log_settled(again));
	log_unref(again);
	log_unref(log);
}

/* The merged log is settled when what was fetched has been merged. */
static void test_merged(void **state)
{
	struct log *log;

	(void)state;
	begin_log();
	log = open_log(NULL);
	await(log);
	assert_string_equal(rig.fetches[0].key, "(all)");
	print("one\ntwo\n");
	assert_int_equal(rig.settled, 0);
	fetched(0);
	fake_pass(2000);
	assert_int_equal(rig.settled, 1);
	reads(log, "a/0 one\na/0 two\n", false);
	log_unref(log);
}

/* One that nobody has begun by then has ended: there is nothing to wait for. */
static void test_nothing(void **state)
{
	struct log *log;

	(void)state;
	rig.job = spool_job_open(rig.spool, "job");
	assert_non_null(rig.job);
	log = open_log("other");
	await(log);
	fetched(0);
	assert_int_equal(rig.settled, 1);
	assert_true(rig.told > 0);
	reads(log, "", true);
	log_unref(log);
}

/* The end of the mount ends the waiting. */
static void test_stop(void **state)
{
	struct log *log, *all;

	(void)state;
	begin_log();
	log = open_log("key");
	all = open_log(NULL);
	await(log);
	await(all);
	spool_log_end(rig.job, "key", NULL, NULL);
	spool_job_close(rig.job);
	rig.job = NULL;
	spool_stop(rig.spool);
	assert_int_equal(rig.n_fetches, 2);
	fetched(0);
	fetched(1);
	assert_int_equal(rig.settled, 2);
	log_unref(log);
	log_unref(all);
}

/* Removed while somebody waits: that ends too, and what there was can be read. */
static void test_removed(void **state)
{
	struct log *log, *all;

	(void)state;
	begin_log();
	print("one\n");
	log = open_log("key");
	all = open_log(NULL);
	await(log);
	await(all);
	spool_log_end(rig.job, "key", NULL, NULL);
	fake_run();
	spool_job_close(rig.job);
	rig.job = NULL;
	fake_run();
	spool_job_remove(rig.spool, "job", NULL, NULL);
	fake_run();
	fetched(0);
	fetched(1);
	assert_int_equal(rig.settled, 2);
	reads(log, "one\n", true);
	reads(all, "a/0 one\n", true);
	log_unref(log);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
