/* SPDX-License-Identifier: MIT */
/*
 * When the output that existed at an open can be read: which opens wait for that, and what ends the
 * wait. The test plays the fetching of output.
 */
#include "tests/unit/backend/output/output_rig.h"

#define FETCHES_MAX 4

static struct {
	char key[16];
	loop_fn done;
	void *arg;
} fetches[FETCHES_MAX];

static size_t n_fetches;
static unsigned arrived;

static void on_fetch(void *data, const char *id, const char *key, loop_fn done, void *arg)
{
	assert_string_equal(id, "job");
	assert_true(n_fetches < FETCHES_MAX);
	snprintf(fetches[n_fetches].key, sizeof(fetches[0].key), "%s", key ? key : "(all)");
	fetches[n_fetches].done = done;
	fetches[n_fetches++].arg = arg;
}

/* Everything that was requested has been fetched. */
static void fetched(void)
{
	for (size_t i = 0; i < n_fetches; i++)
		fetches[i].done(fetches[i].arg);
	n_fetches = 0;
	fake_run();
}

static int setup(void **state)
{
	n_fetches = arrived = 0;
	return rig_setup_fetch(on_fetch);
}

static void begin(const char *key, const char *prefix)
{
	rig_begin(key, prefix);
	fake_run();
}

static void await(struct log *log)
{
	log_when_arrived(log, rig_count, &arrived);
	fake_run();
}

/* Each open of a log fetches its output and waits for it. */
static void test_one(void **state)
{
	struct log *log, *again;

	begin("key", "a/0 ");
	log = rig_log("key");
	assert_false(log_has_arrived(log));
	await(log);
	await(log);
	assert_int_equal(n_fetches, 1);
	assert_string_equal(fetches[0].key, "key");
	assert_int_equal(arrived, 0);
	rig_print("key", 1, "one\n");
	fetched();
	assert_int_equal(arrived, 2);
	assert_true(log_has_arrived(log));
	rig_reads(log, "one\n");
	assert_false(rig_ended(log));
	await(log);
	assert_int_equal(arrived, 3);
	again = rig_log("key");
	fake_run();
	assert_false(log_has_arrived(again));
	fetched();
	assert_true(log_has_arrived(again));
	log_unref(again);
	log_unref(log);
}

/* An open of the merged log waits until the fetched output was merged. */
static void test_merged(void **state)
{
	struct log *log;

	begin("key", "a/0 ");
	log = rig_log(NULL);
	await(log);
	assert_string_equal(fetches[0].key, "(all)");
	rig_print("key", 1, "one\ntwo\n");
	assert_int_equal(arrived, 0);
	fetched();
	fake_pass(2000);
	assert_int_equal(arrived, 1);
	rig_reads(log, "a/0 one\na/0 two\n");
	log_unref(log);
}

/* The I/O thread goes on, but the disk hangs. */
static void run_posted(void)
{
	while (fake_step(&fake.posted))
		;
}

static uint64_t size_then; /* of the log, when its output had arrived */

static void note_size(void *data)
{
	struct log_stat st;

	assert_int_equal(log_stat(data, &st), 0);
	size_then = st.size;
	arrived++;
}

/*
 * The output of a local job need not be fetched, but kxfs must read it before it is in the merged
 * log. kxfs does not wait for the rest of a line.
 */
static void test_local(void **state)
{
	static const char *const wanted[] = {"a/0 line\n", "a/0 line\na/0 line\n",
					     "a/0 line\na/0 line\n"};
	struct log *log;

	arrived = 0;
	begin("key", "a/0 ");
	log = rig_log(NULL);
	for (unsigned i = 0; i < 3; i++) {
		rig_append("key", RIG_TIME, i < 2 ? "line\n" : "half a line");
		if (i != 1)
			output_log_grown(rig.job, "key"); /* a read has begun already */
		run_posted();
		assert_false(log_has_arrived(log));
		log_when_arrived(log, note_size, log);
		run_posted();
		assert_int_equal(arrived, i);
		fake_run();
		assert_int_equal(arrived, i + 1);
		assert_int_equal(size_then, strlen(wanted[i]));
		rig_reads(log, wanted[i]);
	}
	log_unref(log);
}

/* A log that was never begun counts as ended by then, so there is nothing to wait for. */
static void test_nothing(void **state)
{
	struct log *log;

	rig_open();
	log = rig_log("other");
	await(log);
	fetched();
	assert_int_equal(arrived, 1);
	assert_true(rig.told > 0);
	rig_reads(log, "");
	assert_true(rig_ended(log));
	log_unref(log);
}

/* The end of the mount ends the wait. So does a removal of the job: existing output can be read. */
static void test_no_fetch(void **state)
{
	struct log *log, *all;

	for (int stopped = 0; stopped < 2; stopped++) {
		arrived = 0;
		begin("key", "a/0 ");
		rig_print("key", 1, "one\n");
		log = rig_log("key");
		all = rig_log(NULL);
		await(log);
		await(all);
		rig_end("key");
		rig_close();
		if (stopped)
			output_stop(rig.output, fake_nothing, NULL);
		else
			output_job_remove(rig.output, "job", NULL, NULL);
		fake_run();
		assert_int_equal(n_fetches, 2);
		fetched();
		assert_int_equal(arrived, 2);
		rig_reads(log, "one\n");
		rig_reads(all, "a/0 one\n");
		assert_true(rig_ended(log) && rig_ended(all));
		log_unref(log);
		log_unref(all);
		rig_crash();
		rig_up();
	}
}

/* Readers of a log that is removed before it has ended are notified that the rest is missing. */
static void test_cut(void **state)
{
	struct log *log, *ended;
	unsigned told;

	begin("key", "a/0 ");
	begin("ended", "b/0 ");
	rig_end("ended");
	rig_print("key", 1, "one\n");
	log = rig_log("key");
	ended = rig_log("ended");
	rig_close();
	fake_run();
	assert_false(log_is_cut(log) || log_is_cut(ended));
	told = rig.told;
	output_job_remove(rig.output, "job", NULL, NULL);
	fake_run();
	assert_true(rig.told > told && log_is_cut(log) && !log_is_cut(ended));
	rig_reads(log, "one\n");
	assert_true(rig_ended(log));
	fetched();
	log_unref(log);
	log_unref(ended);
}

/*
 * They are also notified if another reader has the log fetched before the disk starts the removal.
 */
static void test_cut_and_fetched(void **state)
{
	struct log *all;

	begin("key", "a/0 ");
	rig_print("key", 1, "one\n");
	all = rig_log(NULL);
	fake_run();
	rig_close();
	output_job_remove(rig.output, "job", NULL, NULL);
	fetched();
	assert_true(log_is_cut(all));
	log_unref(all);
}

int main(void)
{
#define arrival_test(t) cmocka_unit_test_setup_teardown(t, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		arrival_test(test_one),
		arrival_test(test_merged),
		rig_test(test_local),
		arrival_test(test_nothing),
		arrival_test(test_no_fetch),
		arrival_test(test_cut),
		arrival_test(test_cut_and_fetched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
