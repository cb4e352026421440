/* SPDX-License-Identifier: MIT */
/*
 * Fetched jobs and logs, while the disk hangs and when it works again. Nothing that begins, is
 * printed or ends meanwhile is lost. The disk works when the test says so (fake_net.h).
 */
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/backend/output/output_print.h"

#include "backend/base/diag.h"
#include "backend/output/log.h"

static struct {
	char dir[64];
	struct output *output;
	struct output_job *job;
	unsigned removed, stopped;
} rig;

static void on_fetch(void *data, const char *id, const char *key, loop_fn done, void *arg)
{
	done(arg);
}

static void on_stopped(void *data)
{
	rig.stopped++;
}

static void up(void)
{
	static const struct output_events events;
	char *text = NULL;

	assert_int_equal(output_new(NULL, rig.dir, &events, &rig.output, &text), 0);
	output_set_fetch(rig.output, on_fetch, NULL);
	output_start(rig.output);
	fake_run();
}

static void down(void)
{
	if (rig.job)
		output_job_close(take_ptr(rig.job));
	fake_run();
	output_stop(rig.output, fake_nothing, NULL);
	fake_run();
	fake_forget_timers();
	output_free(rig.output);
}

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	diag_setup(DIAG_DEBUG, false);
	strcpy(rig.dir, "/tmp/kxfs-loading-XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	up();
	return 0;
}

static int teardown(void **state)
{
	down();
	return scratch_remove(rig.dir);
}

/* Begin a log while the disk hangs. Nothing is done before the next fake_run. */
static void begin(const char *key, const char *prefix)
{
	rig.job = output_job_open(rig.output, "job");
	assert_non_null(rig.job);
	assert_int_equal(output_log_begin(rig.job, key, prefix, false), 0);
}

static bool is_there(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/output/%s", rig.dir, name);
	return access(path, F_OK) == 0;
}

static void merged_is(const char *text)
{
	struct log *log = NULL;
	char got[256] = "";

	assert_int_equal(output_log(rig.output, "job", NULL, LOG_PLAIN, &log), 0);
	fake_pass(5000);
	assert_int_equal(log_read(log, got, sizeof(got) - 1, 0), strlen(text));
	assert_string_equal(got, text);
	log_unref(log);
}

/*
 * The log had ended before it was opened. Its earlier lines keep their position in the merged log.
 */
static void test_later(void **state)
{
	begin("b", "r/1 ");
	assert_int_equal(output_log_begin(rig.job, "a", "r/0 ", false), 0);
	assert_false(is_there("job"));
	output_print(rig.job, "b", "one\n");
	output_print(rig.job, "a", "two\n");
	output_log_end(rig.job, "a", NULL, NULL);
	output_log_end(rig.job, "b", NULL, NULL);
	fake_pass(5000);
	assert_true(is_there("job/logs/a"));
	assert_true(is_there("job/lines/a")); /* the table is kept as long as the log */
	down();
	up();
	begin("c", "r/2 ");
	assert_int_equal(output_log_begin(rig.job, "b", "r/1 ", false), 0);
	output_print(rig.job, "b", "three\n");
	output_log_end(rig.job, "b", NULL, NULL);
	output_print(rig.job, "c", "four\n");
	output_log_end(rig.job, "c", NULL, NULL);
	merged_is("r/1 one\nr/0 two\nr/1 three\nr/2 four\n");
}

static void begin_number(unsigned i)
{
	char key[16], prefix[16];

	snprintf(key, sizeof(key), "k%u", i);
	snprintf(prefix, sizeof(prefix), "r/%u ", i);
	assert_int_equal(output_log_begin(rig.job, key, prefix, false), 0);
}

static void print_number(unsigned i, const char *text)
{
	char key[16];

	snprintf(key, sizeof(key), "k%u", i);
	output_print(rig.job, key, text);
	output_log_end(rig.job, key, NULL, NULL);
}

/* Many logs begin at the same time. The index contains some of them, and more once it was read. */
static void test_many(void **state)
{
	enum { KNOWN = 3, ALL = 37 };
	static char got[8192];
	struct log *log = NULL;
	ssize_t n;

	rig.job = output_job_open(rig.output, "job");
	assert_non_null(rig.job);
	for (unsigned i = 0; i < KNOWN; i++)
		begin_number(2 * i);
	for (unsigned i = 0; i < KNOWN; i++)
		print_number(2 * i, "before\n");
	fake_pass(5000);
	down();
	up();
	rig.job = output_job_open(rig.output, "job");
	assert_non_null(rig.job);
	for (unsigned i = ALL; i > 0; i--)
		begin_number(i - 1);
	fake_run();
	for (unsigned i = ALL; i < 2 * ALL; i++)
		begin_number(i);
	for (unsigned i = 0; i < 2 * ALL; i++)
		print_number(i, "after\n");
	fake_pass(20000);
	assert_int_equal(output_log(rig.output, "job", NULL, LOG_PLAIN, &log), 0);
	n = log_read(log, got, sizeof(got) - 1, 0);
	log_unref(log);
	for (unsigned i = 0; i < 2 * ALL; i++) {
		char before[32], after[32];

		snprintf(before, sizeof(before), "r/%u before\n", i);
		snprintf(after, sizeof(after), "r/%u after\n", i);
		assert_int_equal(!!strstr(got, before), i % 2 == 0 && i < 2 * KNOWN);
		assert_non_null(strstr(got, after));
		n -= (ssize_t)strlen(after) + (strstr(got, before) ? (ssize_t)strlen(before) : 0);
	}
	assert_int_equal(n, 0);
}

static void on_removed(void *data, int err)
{
	assert_int_equal(err, 0);
	rig.removed++;
}

/*
 * Logs are closed and removed while their folders are being created. In the end the folders are
 * gone.
 */
static void test_removed(void **state)
{
	begin("a", "r/0 ");
	output_job_close(take_ptr(rig.job));
	output_job_remove(rig.output, "job", on_removed, NULL);
	assert_int_equal(rig.removed, 0);
	fake_run();
	assert_int_equal(rig.removed, 1);
	assert_false(is_there("job"));
}

/* kxfs retries what the disk refused. */
static void test_refused(void **state)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/output/job", rig.dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	begin("a", "r/0 ");
	fake_run();
	fake_pass(3000);
	assert_false(is_there("job/logs"));
	assert_int_equal(unlink(path), 0);
	fake_pass(3000);
	assert_true(is_there("job/logs/a"));
	output_print(rig.job, "a", "one\n");
	merged_is("r/0 one\n");
}

static void append(const char *path, const char *text)
{
	FILE *f = fopen(path, "a");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* Begin the log a, whose file another process has begun to write. PATH is set to its path. */
static void begin_elsewhere(char path[200])
{
	output_set_fetch(rig.output, NULL, NULL);
	begin("a", "r/0 ");
	fake_run();
	snprintf(path, 200, "%s/output/job/logs/a", rig.dir);
	append(path, "one\n");
}

/* Make the disk refuse the file NAME of the job, until disk_gives is called. */
static void disk_refuses(const char *name)
{
	char path[200], kept[200];

	snprintf(path, sizeof(path), "%s/output/job/%s", rig.dir, name);
	snprintf(kept, sizeof(kept), "%s/kept", rig.dir);
	assert_int_equal(rename(path, kept), 0);
	assert_int_equal(symlink("a", path), 0);
}

static void disk_gives(const char *name)
{
	char path[200], kept[200];

	snprintf(path, sizeof(path), "%s/output/job/%s", rig.dir, name);
	snprintf(kept, sizeof(kept), "%s/kept", rig.dir);
	assert_int_equal(rename(kept, path), 0);
}

/* While the disk refuses the index, new output is written all the same, and merged later. */
static void test_refused_index(void **state)
{
	static const char *const names[] = {"merged", "merged.keys"};
	char text[256] = "r/0 one\n";

	begin("a", "r/0 ");
	output_print(rig.job, "a", "one\n");
	for (size_t i = 0; i < array_size(names); i++) {
		merged_is(text);
		down();
		disk_refuses(names[i]);
		up();
		begin("a", "r/0 ");
		fake_run();
		output_print(rig.job, "a", "other line\n");
		fake_pass(3000);
		disk_gives(names[i]);
		fake_pass(3000);
		strcat(text, "r/0 other line\n");
	}
	merged_is(text);
}

/*
 * The disk refuses to read the last output of another process until after that process has ended.
 * The output still gets into the merged log.
 */
static void test_refused_at_the_end(void **state)
{
	char path[200];

	begin_elsewhere(path);
	output_log_grown(rig.job, "a");
	fake_run();
	merged_is("r/0 one\n");
	append(path, "two\n");
	disk_refuses("logs/a");
	output_log_grown(rig.job, "a");
	fake_run();
	fake_pass(3000);
	output_log_end(rig.job, "a", NULL, NULL);
	output_job_end(rig.job);
	fake_run();
	fake_pass(500000);
	assert_false(output_is_merged(rig.output, "job"));
	fake_pass(200000); /* the job must not wait for ever until it is archived */
	assert_true(output_is_merged(rig.output, "job"));
	disk_gives("logs/a");
	merged_is("r/0 one\nr/0 two\n");
	assert_false(is_there("job/unmerged"));
}

/* A job ends just before the stop. The stop waits until its merged log is complete. */
static void test_stop_after_the_end(void **state)
{
	char path[200];

	begin_elsewhere(path);
	output_log_end(rig.job, "a", NULL, NULL);
	output_job_end(rig.job);
	output_job_close(take_ptr(rig.job));
	assert_false(output_is_merged(rig.output, "job"));
	output_stop(rig.output, fake_nothing, NULL);
	fake_run();
	assert_true(output_is_merged(rig.output, "job"));
	merged_is("r/0 one\n");
	assert_false(is_there("job/unmerged"));
	fake_forget_timers();
	output_free(rig.output);
	up();
}

/* A log ends, and begins again while its end is being read. What it prints then is merged, too. */
static void test_begun_while_read(void **state)
{
	begin("a", "r/0 ");
	output_print(rig.job, "a", "one\n");
	output_log_end(rig.job, "a", NULL, NULL);
	while (fake_step(&fake.posted))
		;
	assert_non_null(fake.pool);
	assert_int_equal(output_log_begin(rig.job, "a", "r/0 ", false), 0);
	fake_run();
	output_print(rig.job, "a", "two\n");
	output_log_end(rig.job, "a", NULL, NULL);
	output_job_end(rig.job);
	merged_is("r/0 one\nr/0 two\n");
	fake_run();
	assert_false(is_there("job/unmerged"));
}

/*
 * The disk refuses the mark file that says that the merged log may be incomplete. The log gets no
 * bytes until the mark exists. Then a start after a crash rebuilds the merged log from the complete
 * logs.
 */
static void test_mark_refused(void **state)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/output/job", rig.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/unmerged");
	assert_int_equal(symlink("unmerged", path), 0);
	begin("a", "r/0 ");
	fake_run();
	assert_false(is_there("job/logs/a"));
	assert_int_equal(unlink(path), 0);
	fake_pass(1000);
	fake_run();
	assert_true(is_there("job/unmerged"));
	assert_true(is_there("job/logs/a"));
}

/*
 * The disk refuses the mark and the merged log until kxfs is killed, but the helper of a local job
 * writes a log. The next start must complete the merged log.
 */
static void test_neither_mark_nor_merged(void **state)
{
	char path[200];

	output_set_fetch(rig.output, NULL, NULL);
	assert_false(output_is_unmerged(rig.output, "job"));
	snprintf(path, sizeof(path), "%s/output/job", rig.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/logs");
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/a");
	append(path, "");
	assert_false(output_is_unmerged(rig.output, "job"));
	append(path, "one\n");
	assert_true(output_is_unmerged(rig.output, "job"));
	begin("a", "r/0 ");
	output_log_end(rig.job, "a", NULL, NULL);
	output_job_end(rig.job);
	fake_run();
	merged_is("r/0 one\n");
	assert_false(output_is_unmerged(rig.output, "job"));
}

/* If only containers that are not part of the merged log have printed, nothing must be merged. */
static void test_only_alone(void **state)
{
	begin("init", NULL);
	output_print(rig.job, "init", "one\n");
	output_log_end(rig.job, "init", NULL, NULL);
	output_job_end(rig.job);
	fake_run();
	assert_true(is_there("job/logs/init"));
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
	struct log *log = NULL;
	struct log_stat st = {0};

	begin("a", "r/0 ");
	output_print(rig.job, "a", "one\n");
	assert_int_equal(output_log(rig.output, "job", NULL, LOG_PLAIN, &log), 0);
	output_log_end(rig.job, "a", NULL, NULL);
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
	begin("b", "r/0 ");
	fake_run();
	assert_false(is_there("job/logs/b"));
	DL_APPEND(fake.pool, hung);
	fake_run();
	assert_true(is_there("job/unmerged"));
	assert_true(is_there("job/logs/b"));
}

/* Write the lines FIRST to LAST to the log KEY. They were printed 10 ms apart. */
static void print_lines_of(const char *key, unsigned first, unsigned last)
{
	const struct log_writer_events events = {.opened = output_print_opened,
						 .written = output_print_written};
	struct log_writer *w = log_writer_new(rig.job, key, &events);

	fake_run();
	for (unsigned i = first; i <= last; i++)
		log_writer_add(w, i * INT64_C(10000000), "a line of output\n", 17);
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
	enum { LOGS = 16, LINES = 30000, INDEX_WRITES = LOGS * LINES / 1000 };
	struct log_stat st;
	unsigned n = 0;
	char key[16];

	rig.job = output_job_open(rig.output, "job");
	assert_non_null(rig.job);
	for (unsigned i = 0; i < LOGS; i++) {
		begin_number(i);
		snprintf(key, sizeof(key), "k%u", i);
		output_log_expect(rig.job, key, true);
	}
	for (unsigned i = 0; i < LOGS; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		print_lines_of(key, 1, LINES);
	}
	for (unsigned i = 0; i < LOGS; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		output_log_expect(rig.job, key, false);
		output_log_end(rig.job, key, NULL, NULL);
	}
	output_job_end(rig.job);
	while (!output_is_merged(rig.output, "job")) {
		if (fake_step(&fake.posted))
			continue;
		assert_true(fake_step(&fake.pool));
		assert_true(++n < INDEX_WRITES + LOGS * 20);
	}
	assert_int_equal(output_log_stat(rig.output, "job", NULL, LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, 10 * LINES * strlen("r/0 a line of output\n") +
					  (LOGS - 10) * LINES * strlen("r/10 a line of output\n"));
}

#define BEHIND 20000

/* Print more lines to "a" than kxfs keeps in memory, and then a later line to "b". */
static void print_behind(void)
{
	begin("a", "r/0 ");
	begin("b", "r/1 ");
	output_log_expect(rig.job, "a", true);
	print_lines_of("a", 1, BEHIND);
	print_lines_of("b", BEHIND + 1, BEHIND + 1);
}

/* The merged log ends with the line of "b". */
static void expect_b_last(void)
{
	const char line[] = "r/1 a line of output\n";
	struct log_stat st;
	struct log *log = NULL;
	char got[sizeof(line)] = "";

	assert_int_equal(output_log_stat(rig.output, "job", NULL, LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, (BEHIND + 1) * strlen(line));
	assert_int_equal(output_log_kept(rig.output, "job", NULL, LOG_PLAIN, &log), 0);
	assert_int_equal(log_read(log, got, strlen(line), BEHIND * strlen(line)), strlen(line));
	assert_string_equal(got, line);
	log_unref(log);
}

/* A log of which kxfs must read a part from the disk keeps its position in the merged log. */
static void test_behind(void **state)
{
	print_behind();
	fake_pass(2000); /* the line of "b" has waited long enough */
	output_log_expect(rig.job, "a", false);
	fake_pass(5000);
	expect_b_last();
}

static void close_and_stop(void)
{
	output_job_close(take_ptr(rig.job));
	output_stop(rig.output, on_stopped, NULL);
	fake_run();
	assert_int_equal(rig.stopped, 1);
}

static void start_again(void)
{
	fake_run();
	fake_forget_timers();
	output_free(rig.output);
	up();
}

/* The job ends, and then kxfs stops: it still reads the rest of a log before it merges later lines. */
static void test_behind_at_the_stop(void **state)
{
	print_behind();
	output_log_end(rig.job, "a", NULL, NULL);
	output_log_end(rig.job, "b", NULL, NULL);
	output_job_end(rig.job);
	close_and_stop();
	expect_b_last();
	start_again();
}

/* A stop does not wait for a log that can't end. */
static void test_stop_without_the_end(void **state)
{
	begin("a", "r/0 ");
	output_print(rig.job, "a", "one\n");
	output_job_end(rig.job);
	close_and_stop();
	merged_is("r/0 one\n");
	start_again();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_begun_while_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop_after_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_neither_mark_nor_merged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mark_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unmark_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_few_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind_at_the_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop_without_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_index, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_at_the_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
