/* SPDX-License-Identifier: MIT */
/*
 * Jobs and logs, while the disk hangs or refuses calls, and when it works again. Nothing that
 * begins, is printed or ends meanwhile is lost.
 */
#include "tests/unit/backend/output/output_rig.h"

static void print(const char *key, const char *text)
{
	rig_print(key, 1, text);
}

static void begin_number(unsigned i)
{
	cleanup_free char *key = text_print("k%u", i), *prefix = text_print("r/%u ", i);

	rig_begin(key, prefix);
}

/*
 * Many logs begin at the same time, more than readers of the merged log keep open. The index
 * contains some of them, which had ended before. Earlier lines keep their position.
 */
static void test_many(void **state)
{
	enum { KNOWN = 3, ALL = 74 };
	cleanup_free char *expected = NULL;
	size_t len;
	FILE *f = text_stream(&expected, &len);

	for (unsigned round = 0; round < 2; round++) {
		const unsigned n = round ? ALL : KNOWN;

		for (unsigned i = n; i > 0; i--)
			begin_number(i - 1);
		for (unsigned i = 0; i < n; i++) {
			cleanup_free char *key = text_print("k%u", i);

			print(key, "a line\n");
			rig_end(key);
			fprintf(f, "r/%u a line\n", i);
		}
		fake_pass(5000);
		rig_down();
		rig_up();
	}
	text_stream_close(f);
	rig_expect(NULL, expected);
}

/*
 * Logs are closed and removed while their folders are being created. In the end the folders are
 * gone.
 */
static void test_removed(void **state)
{
	rig_begin("a", "r/0 ");
	output_job_close(take_ptr(rig.job));
	output_job_remove(rig.output, "job", rig_on_removed, NULL);
	assert_int_equal(rig.removed, 0);
	fake_run();
	assert_int_equal(rig.removed, 1);
	assert_false(rig_there("job"));
}

/*
 * While the disk refuses the index, new output is written all the same, and logs end. The output is
 * merged later.
 */
static void test_refused_index(void **state)
{
	static const struct {
		const char *file;
		bool restart; /* before the index is read, not before it is written */
	} rows[] = {{"merged", false}, {"merged", true}, {"merged.keys", true}};
	char text[256] = "r/0 one\n";
	cleanup_free char *said = NULL;
	size_t len;

	rig_begin("a", "r/0 ");
	print("a", "one\n");
	for (size_t i = 0; i < array_size(rows); i++) {
		rig_expect(NULL, text);
		if (rows[i].restart)
			rig_down();
		rig_refuse(rows[i].file);
		if (rows[i].restart)
			rig_up();
		rig_begin("a", "r/0 ");
		fake_run();
		print("a", "other line\n");
		rig.ended = 0;
		rig_end("a");
		fake_pass(3000);
		assert_int_equal(rig.ended, 1);
		rig_give(rows[i].file);
		fake_pass(3000);
		strcat(text, "r/0 other line\n");
	}
	rig_expect(NULL, text);
	said = diag_text(&len);
	assert_non_null(strstr(said, "job: its merged log can't be written: Too many levels of "));
}

/* Begin the log a, whose file another process has begun to write. */
static void begin_elsewhere(void)
{
	output_set_fetch(rig.output, NULL, NULL);
	rig_begin("a", "r/0 ");
	fake_run();
	rig_put("job/logs/a", "one\n");
}

/*
 * The disk refuses to read the last output of another process until after that process has ended.
 * The output still gets into the merged log.
 */
static void test_refused_at_the_end(void **state)
{
	begin_elsewhere();
	output_log_grown(rig.job, "a");
	fake_run();
	rig_expect(NULL, "r/0 one\n");
	rig_put("job/logs/a", "two\n");
	rig_refuse("logs/a");
	output_log_grown(rig.job, "a");
	fake_run();
	fake_pass(3000);
	rig_end("a");
	output_job_end(rig.job);
	fake_run();
	fake_pass(500000);
	assert_false(output_is_merged(rig.output, "job"));
	fake_pass(200000); /* the job must not wait for ever until it is archived */
	assert_true(output_is_merged(rig.output, "job"));
	rig_give("logs/a");
	rig_expect(NULL, "r/0 one\nr/0 two\n");
	assert_false(rig_there("job/unmerged"));
}

static void close_and_stop(void)
{
	rig_close();
	output_stop(rig.output, rig_count, &rig.stopped);
	fake_run();
	assert_int_equal(rig.stopped, 1);
}

/* A job ends just before the stop. The stop waits until its merged log is complete. */
static void test_stop_after_the_end(void **state)
{
	begin_elsewhere();
	output_log_end(rig.job, "a", NULL, NULL);
	output_job_end(rig.job);
	assert_false(output_is_merged(rig.output, "job"));
	close_and_stop();
	assert_true(output_is_merged(rig.output, "job"));
	assert_false(rig_there("job/unmerged"));
	rig_expect(NULL, "r/0 one\n");
}

/* A stop does not wait for a log that can't end. */
static void test_stop_without_the_end(void **state)
{
	rig_begin("a", "r/0 ");
	print("a", "one\n");
	output_job_end(rig.job);
	fake_run();
	close_and_stop();
	rig_expect(NULL, "r/0 one\n");
}

/* A log ends, and begins again while its end is being read. What it prints then is merged, too. */
static void test_begun_while_read(void **state)
{
	rig_begin("a", "r/0 ");
	print("a", "one\n");
	rig_end("a");
	while (fake_step(&fake.posted))
		;
	assert_non_null(fake.pool);
	rig_begin("a", "r/0 ");
	fake_run();
	print("a", "two\n");
	rig_end("a");
	output_job_end(rig.job);
	output_job_close(take_ptr(rig.job));
	rig_open(); /* it is still there, because its merged log lacks the end */
	rig_expect(NULL, "r/0 one\nr/0 two\n");
	assert_false(rig_there("job/unmerged"));
}

/*
 * The disk refuses the mark file that says that the merged log may be incomplete. The log gets no
 * bytes until the mark exists. Then a start after a crash rebuilds the merged log from the complete
 * logs.
 */
static void test_mark_refused(void **state)
{
	cleanup_free char *path = rig_path("job/unmerged");

	rig_mkdir("job");
	assert_int_equal(symlink("unmerged", path), 0);
	rig_begin("a", "r/0 ");
	fake_run();
	assert_false(rig_there("job/logs/a"));
	assert_int_equal(unlink(path), 0);
	fake_pass(1000);
	assert_true(rig_there("job/unmerged"));
	assert_true(rig_there("job/logs/a"));
}

/*
 * The disk refuses the mark and the merged log until kxfs is killed, but the helper of a local job
 * writes a log. The next start must complete the merged log.
 */
static void test_neither_mark_nor_merged(void **state)
{
	output_set_fetch(rig.output, NULL, NULL);
	assert_false(output_is_unmerged(rig.output, "job"));
	rig_mkdir("job");
	rig_mkdir("job/logs");
	rig_put("job/logs/a", "");
	assert_false(output_is_unmerged(rig.output, "job"));
	rig_put("job/logs/a", "one\n");
	assert_true(output_is_unmerged(rig.output, "job"));
	rig_begin("a", "r/0 ");
	rig_end("a");
	output_job_end(rig.job);
	rig_expect(NULL, "r/0 one\n");
	assert_false(output_is_unmerged(rig.output, "job"));
}

/* If only containers that are not part of the merged log have printed, nothing must be merged. */
static void test_only_alone(void **state)
{
	rig_begin("init", NULL);
	print("init", "one\n");
	rig_end("init");
	output_job_end(rig.job);
	fake_run();
	assert_true(rig_there("job/logs/init"));
	assert_false(output_is_unmerged(rig.output, "job"));
}

/*
 * A finished job resumes while the removal of its mark hangs. Until the removal is done, none of
 * the job's logs gets any bytes. Otherwise a crash could leave a complete log that is missing in
 * the merged log, and nothing would rebuild that.
 */
static void test_unmark_hangs(void **state)
{
	struct fake_job *hung;
	struct log_stat st = {0};
	struct log *log;

	rig_begin("a", "r/0 ");
	print("a", "one\n");
	log = rig_log(NULL);
	rig_end("a");
	output_job_end(rig.job);
	while (!st.ended) {
		assert_true(fake_step(&fake.posted) || fake_step(&fake.pool));
		log_peek(log, &st);
	}
	log_unref(log);
	hung = fake.pool;
	assert_non_null(hung);
	DL_DELETE(fake.pool, hung);
	output_job_resume(rig.job);
	rig_begin("b", "r/0 ");
	fake_run();
	assert_false(rig_there("job/logs/b"));
	DL_APPEND(fake.pool, hung);
	fake_run();
	assert_true(rig_there("job/unmerged"));
	assert_true(rig_there("job/logs/b"));
}

#define LINE "a line of output\n"

/* Write the lines FIRST to LAST to the log KEY. They were printed 10 ms apart. */
static void print_many(const char *key, unsigned first, unsigned last)
{
	struct log_writer *w = output_print_begin(rig.job, key);

	for (unsigned i = first; i <= last; i++)
		log_writer_add(w, i * INT64_C(10000000), LINE, strlen(LINE));
	log_writer_flush(w);
	fake_run();
	log_writer_close(w);
	fake_run();
}

/*
 * Much output of many logs arrives at the same time, so that kxfs can't keep all of it in memory.
 * It reads the rest from the disk a few times, and not once for each few lines.
 */
static void test_few_reads(void **state)
{
	enum { LOGS = 10, LINES = 30000, INDEX_WRITES = LOGS * LINES / 1000 };
	static const char *const keys[LOGS] = {"k0", "k1", "k2", "k3", "k4",
					       "k5", "k6", "k7", "k8", "k9"};
	struct log_stat st;
	unsigned n = 0;

	for (unsigned i = 0; i < LOGS; i++) {
		begin_number(i);
		output_log_expect(rig.job, keys[i], true);
	}
	for (unsigned i = 0; i < LOGS; i++)
		print_many(keys[i], 1, LINES);
	for (unsigned i = 0; i < LOGS; i++) {
		output_log_expect(rig.job, keys[i], false);
		output_log_end(rig.job, keys[i], NULL, NULL);
	}
	output_job_end(rig.job);
	while (!output_is_merged(rig.output, "job")) {
		if (fake_step(&fake.posted))
			continue;
		assert_true(fake_step(&fake.pool));
		assert_true(++n < INDEX_WRITES + LOGS * 20);
	}
	assert_int_equal(output_log_stat(rig.output, "job", NULL, LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, LOGS * LINES * strlen("r/0 " LINE));
}

/*
 * kxfs must read a part of a log from the disk. That part keeps its position in the merged log,
 * before a later line of another log, even if kxfs stops meanwhile.
 */
static void test_behind(void **state)
{
	const char last[] = "r/1 " LINE;
	enum { BEHIND = 20000 };

	for (int stops = 0; stops < 2; stops++) {
		struct log_stat st;
		struct log *log = NULL;
		char got[sizeof(last)] = "";

		rig_begin("a", "r/0 ");
		rig_begin("b", "r/1 ");
		output_log_expect(rig.job, "a", true);
		print_many("a", 1, BEHIND);
		print_many("b", BEHIND + 1, BEHIND + 1);
		if (stops) {
			rig_end("a");
			rig_end("b");
			output_job_end(rig.job);
			close_and_stop();
		} else {
			fake_pass(2000); /* the line of "b" has waited long enough */
			output_log_expect(rig.job, "a", false);
			fake_pass(5000);
			rig_close();
		}
		assert_int_equal(output_log_stat(rig.output, "job", NULL, LOG_PLAIN, &st), 0);
		assert_int_equal(st.size, (BEHIND + 1) * strlen(last));
		assert_int_equal(output_log_kept(rig.output, "job", NULL, LOG_PLAIN, &log), 0);
		assert_int_equal(log_read(log, got, strlen(last), BEHIND * strlen(last)),
				 strlen(last));
		assert_string_equal(got, last);
		log_unref(log);
		output_job_remove(rig.output, "job", NULL, NULL);
		fake_run();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_fetched(test_many),
		rig_test_fetched(test_removed),
		rig_test_fetched(test_refused_index),
		rig_test_fetched(test_refused_at_the_end),
		rig_test_fetched(test_stop_after_the_end),
		rig_test_fetched(test_stop_without_the_end),
		rig_test_fetched(test_begun_while_read),
		rig_test_fetched(test_mark_refused),
		rig_test_fetched(test_neither_mark_nor_merged),
		rig_test_fetched(test_only_alone),
		rig_test_fetched(test_unmark_hangs),
		rig_test_fetched(test_few_reads),
		rig_test_fetched(test_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
