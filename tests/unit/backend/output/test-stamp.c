/* SPDX-License-Identifier: MIT */
/*
 * Logs with the times of their lines: their size, and what reads from any offset return while they
 * grow.
 */
#include "tests/unit/backend/output/output_rig.h"

#include "backend/output/stamp.h"

#define MS INT64_C(1000000)

static void expect(const char *key, const char *text)
{
	rig_expect_form(key, LOG_STAMPED, text);
}

static void test_one(void **state)
{
	static const char text[] = "2023-11-14T22:13:20.123456Z one\n"
				   "2023-11-14T22:13:22.000000Z half\r\n"
				   "2023-11-14T22:13:29.000000Z x\ry\n"
				   "2023-11-14T22:13:29.000000Z \n";
	struct log_stat st;
	struct log *log;

	rig_begin("a", "r/0 ");
	fake_run();
	log = rig_log_of("a", LOG_STAMPED);
	rig_reads(log, "");
	rig_print("a", RIG_TIME + 123456789, "one\n");
	rig_reads(log, "2023-11-14T22:13:20.123456Z one\n");
	rig_print("a", RIG_TIME + 2000 * MS, "ha");
	rig_reads(log, "2023-11-14T22:13:20.123456Z one\n2023-11-14T22:13:22.000000Z ha");
	rig_print("a", RIG_TIME + 9000 * MS, "lf\r\nx\ry\n\n");
	rig_reads(log, text);
	rig_end("a");
	fake_run();
	assert_true(rig_ended(log));
	log_unref(log);
	rig_down();
	rig_up();
	expect("a", text);
	assert_int_equal(output_log_stat(rig.output, "job", "b", LOG_STAMPED, &st), -ENOENT);
}

static void test_merged(void **state)
{
	static const char text[] = "2023-11-14T22:13:20.000000Z r/0 one\n"
				   "2023-11-14T22:13:21.000000Z r/1 two\n"
				   "2023-11-14T22:13:22.000000Z r/0 \rr/0 10%\rr/0 20%\n"
				   "2023-11-14T22:13:22.000000Z r/0 next\n"
				   "2023-11-14T22:13:23.000000Z r/1 no end\n";

	rig_begin("a", "r/0 ");
	rig_begin("b", "r/1 ");
	rig_print("a", RIG_TIME, "one\n");
	rig_print("b", RIG_TIME + 1000 * MS, "two\n");
	rig_print("a", RIG_TIME + 2000 * MS, "\r10%\r20%\nnext\n");
	rig_print("b", RIG_TIME + 3000 * MS, "no end");
	rig_end("a");
	rig_end("b");
	output_job_end(rig.job);
	expect(NULL, text);
	rig_down();
	rig_up();
	expect(NULL, text);
}

/* In a log without known times, all lines have the time 1970. */
static void test_unknown(void **state)
{
	rig_mkdir("job");
	rig_mkdir("job/logs");
	rig_put("job/logs/a", "one\ntwo");
	expect("a", "1970-01-01T00:00:00.000000Z one\n1970-01-01T00:00:00.000000Z two");
}

/*
 * The times of a local log are in its table, which another process writes. kxfs reads that table
 * and never changes it, even if the log grew before kxfs started.
 */
static void test_local(void **state)
{
	cleanup_free char *path = rig_path("job/lines/a"), *before = NULL, *after = NULL;
	size_t n_before, n_after;

	rig_begin("a", "r/0 ");
	fake_run();
	rig_append("a", RIG_TIME + 5000, "one\ntwo\n");
	rig_append("a", RIG_TIME + 7000, "half");
	rig_append("a", RIG_TIME + 9000, " a line\nlast");
	output_log_grown(rig.job, "a");
	fake_run();
	rig_crash();
	rig_append("a", RIG_TIME + 11000, "\nunseen\n");
	assert_int_equal(file_read(path, 4096, &before, &n_before), 0);
	rig_up();
	rig_begin("a", "r/0 ");
	rig_end("a");
	expect("a", "2023-11-14T22:13:20.000005Z one\n2023-11-14T22:13:20.000005Z two\n"
		    "2023-11-14T22:13:20.000007Z half a line\n"
		    "2023-11-14T22:13:20.000009Z last\n"
		    "2023-11-14T22:13:20.000011Z unseen\n");
	assert_int_equal(file_read(path, 4096, &after, &n_after), 0);
	assert_int_equal(n_after, n_before);
	assert_memory_equal(after, before, n_before);
}

/* A long log: each line has its own stamp, wherever a read starts. */
static void test_long(void **state)
{
	enum { LINES = 20000, AT_ONCE = 100 };
	cleanup_free char *text = NULL;
	FILE *expected;
	size_t len;

	rig_begin("a", "r/0 ");
	expected = text_stream(&text, &len);
	for (int i = 0; i < LINES; i += AT_ONCE) {
		const int64_t ns = RIG_TIME + i * MS;
		char stamp[STAMP], lines[4096];
		size_t n = 0;

		stamp_print(ns, stamp);
		for (int k = i; k < i + AT_ONCE; k++) {
			const char *more = k % 3 ? "" : " and more";

			n += (size_t)snprintf(lines + n, sizeof(lines) - n, "%06d%s\n", k, more);
			fprintf(expected, "%.*s%06d%s\n", STAMP, stamp, k, more);
		}
		rig_print("a", ns, lines);
	}
	text_stream_close(expected);
	expect("a", text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(test_one),   rig_test(test_merged), rig_test(test_unknown),
		rig_test(test_local), rig_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
