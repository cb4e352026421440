/* SPDX-License-Identifier: MIT */
/* Logs of one container as readers see them, and the directories of jobs. */
#include "tests/unit/backend/output/output_rig.h"

/* A helper writes a log. Readers see its bytes at once, and then its end. */
static void test_grow(void **state)
{
	static const uint64_t beyond[] = {14, 1000, UINT64_MAX};
	struct log *log, *same, *merged;
	struct log_stat st;
	char buf[16];

	rig_begin("a", "a/0 ");
	fake_run();
	log = rig_log("a");
	same = rig_log("a");
	merged = rig_log(NULL);
	assert_ptr_equal(log, same);
	log_unref(same);
	assert_true(log_has_arrived(log));
	rig_reads(log, "");
	assert_false(rig_ended(log));

	rig_append("a", RIG_TIME, "one\n");
	rig_reads(log, "one\n"); /* before kxfs is notified */
	rig.told = 0;
	output_log_grown(rig.job, "a");
	fake_run();
	assert_true(rig.told >= 2);
	rig_reads(merged, "a/0 one\n");
	rig_append("a", RIG_TIME, "no newline");
	rig_reads(log, "one\nno newline");
	for (size_t i = 0; i < array_size(beyond); i++)
		assert_int_equal(log_read(log, buf, sizeof(buf), beyond[i]), 0);
	assert_int_equal(log_stat(log, &st), 0);
	assert_true(st.mtime > 0);

	rig.told = 0;
	rig_end("a");
	fake_run();
	assert_int_equal(rig.ended, 1);
	assert_true(rig.told >= 1);
	assert_true(rig_ended(log) && !rig_ended(merged));
	output_job_end(rig.job);
	fake_run();
	assert_true(rig_ended(merged));
	rig_reads(merged, "a/0 one\na/0 no newline\n");
	log_unref(log);
	log_unref(merged);

	rig_down();
	rig_up();
	rig_expect("a", "one\nno newline");
	rig_expect(NULL, "a/0 one\na/0 no newline\n");
	assert_int_equal(output_log_stat(rig.output, "job", NULL, LOG_PLAIN, &st), 0);
	assert_true(st.ended);
}

/* A job without output has an empty merged log, and no others. No name leads out of the output. */
static void test_absent(void **state)
{
	static const char *const names[][2] = {{"job", "none"},
					       {"job", "../job.json"},
					       {"..", "x"},
					       {"other", "a"}};
	struct log_stat st;
	struct log *log;

	rig_open();
	for (size_t i = 0; i < array_size(names); i++) {
		const char *id = names[i][0], *key = names[i][1];

		assert_int_equal(output_log(rig.output, id, key, LOG_PLAIN, &log), -ENOENT);
		assert_int_equal(output_log_stat(rig.output, id, key, LOG_PLAIN, &st), -ENOENT);
	}
	assert_null(output_job_open(rig.output, "../escape"));
	log = rig_log(NULL);
	rig_reads(log, "");
	assert_false(rig_ended(log));
	output_job_end(rig.job);
	fake_run();
	assert_true(rig_ended(log));
	log_unref(log);
}

/* Return the permissions of the file NAME of the job. */
static unsigned mode_of(const char *name)
{
	cleanup_free char *path = file_path(rig.dir, "job", name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

/* Only the user can read output, whatever the umask is. */
static void test_modes(void **state)
{
	static const char *const folders[] = {"..", ".", "logs", "lines"};
	mode_t old = umask(0777);

	rig_begin("a", "a/0 ");
	fake_run();
	umask(old);
	for (size_t i = 0; i < array_size(folders); i++)
		assert_int_equal(mode_of(folders[i]), 0700);
	assert_int_equal(mode_of("logs/a"), 0600);
}

/*
 * A reader that has a log open can continue to read after the output was removed. Nobody else finds
 * the log any more. A new job with that id does not affect the open logs.
 */
static void test_remove(void **state)
{
	struct log *log, *merged, *other;
	struct log_stat st;

	rig_begin("a", "a/0 ");
	fake_run();
	rig_append("a", RIG_TIME, "read on\n");
	rig_end("a");
	output_job_end(rig.job);
	fake_run();
	log = rig_log("a");
	merged = rig_log(NULL);
	rig_close();
	output_job_remove(rig.output, "job", rig_on_removed, NULL);
	fake_run();
	assert_int_equal(rig.removed, 1);
	assert_false(rig_there("job"));
	rig_reads(log, "read on\n");
	rig_reads(merged, "a/0 read on\n");
	assert_int_equal(output_log_stat(rig.output, "job", "a", LOG_PLAIN, &st), -ENOENT);
	rig_begin("a", "a/0 ");
	fake_run();
	other = rig_log("a");
	assert_ptr_not_equal(other, log);
	rig_reads(other, "");
	rig_reads(log, "read on\n");
	log_unref(other);
	log_unref(log);
	log_unref(merged);
}

static uint64_t on_disk(void)
{
	return rig_size("job/logs/a") + rig_size("job/lines/a") + rig_size("job/merged") +
	       rig_size("job/merged.keys");
}

/*
 * The count of output includes the table of short lines, which is larger than their log, the index,
 * and what a program of this run has printed before kxfs opened its log. Files of attempts are no
 * output. A removal subtracts only what was counted. A start completes an interrupted removal.
 */
static void test_count(void **state)
{
	rig_open();
	fake_run();
	rig_put("job/logs/a", "printed before\n");
	assert_int_equal(output_log_begin(rig.job, "a", "a/0 ", true), 0);
	fake_run();
	assert_true(output_bytes(rig.output) >= strlen("printed before\n"));
	for (int64_t i = 1; i <= 100; i++)
		rig_append("a", RIG_TIME + i * 1000000, "x\n");
	output_log_grown(rig.job, "a");
	rig_end("a");
	output_job_end(rig.job);
	fake_run();
	assert_int_equal(output_bytes(rig.output), on_disk());
	rig_mkdir("job/tasks");
	rig_put("job/tasks/a", "not output");
	rig_mkdir("other");
	rig_put("other/old", "old");
	rig_mkdir(".removed-17");
	rig_down();
	rig_up();
	assert_false(rig_there(".removed-17"));
	assert_int_equal(output_bytes(rig.output), on_disk() + 3);
	output_job_remove(rig.output, "job", rig_on_removed, NULL);
	fake_run();
	assert_int_equal(output_bytes(rig.output), 3);
}

static void test_unusable(void **state)
{
	cleanup_free char *path = text_print("%s/nothing/there", rig.dir), *text = NULL;
	const struct output_events events = {0};
	struct output *output;

	assert_int_equal(output_new(NULL, path, &events, &output, &text), -ENOENT);
	assert_non_null(strstr(text, "nothing/there/output: No such file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(test_grow),   rig_test(test_absent), rig_test(test_modes),
		rig_test(test_remove), rig_test(test_count),  rig_test(test_unusable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
