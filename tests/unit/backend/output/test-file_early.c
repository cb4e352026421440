/* SPDX-License-Identifier: MIT */
/*
 * What a reader that follows a log gets before it is on disk. These bytes must be the ones that the
 * log gets, even if the disk refuses them at first. If they are lost, the reader must be notified.
 */
#include "tests/unit/backend/output/output_rig.h"
#include "tests/unit/backend/output/print_lines.h"

#include <signal.h>
#include <sys/resource.h>

/*
 * The disk accepts no file that is longer than LIMIT. The first line and the table fit, but the
 * second line does not.
 */
#define FIRST "the first line is as long as the table of all of them: 24 bytes and some more\n"
#define LIMIT strlen(FIRST)

static struct {
	struct log_writer *w;
	struct log *log;
	struct log_early early;
	char got[64]; /* what the reader got early of the last line */
	atomic_bool open, done;
	atomic_size_t followed; /* number of bytes that log events took from memory */
	int err;
} t;

static void on_opened(void *data, int err)
{
	assert_int_equal(err, 0);
	atomic_store(&t.open, true);
}

static void on_written(void *data, int err)
{
	t.err = err;
	atomic_store(&t.done, true);
}

static void do_open(void *data)
{
	const struct log_writer_events events = {.opened = on_opened, .written = on_written};

	atomic_store(&t.open, false);
	t.w = log_writer_new(rig.job, "key", &events);
}

static void do_close(void *data)
{
	log_writer_close(take_ptr(t.w));
}

static void do_lose(void *data)
{
	log_writer_lost(t.w);
}

/* While this function runs on the I/O thread, nothing counts as written. */
static void do_print(void *data)
{
	uint64_t from = log_writer_size(t.w);
	const char *got = "";
	size_t n;

	atomic_store(&t.done, false);
	print_lines(t.w, 1, data);
	n = log_read_early(t.log, &t.early, NULL, sizeof(t.got) - 1, from);
	assert_int_equal(log_read_early(t.log, &t.early, &got, sizeof(t.got) - 1, from), n);
	memcpy(t.got, got, n);
	t.got[n] = '\0';
}

/*
 * Assert that the log has SIZE bytes and, as ENDED says, has ended or not. This must be known
 * without a disk access.
 */
static void expect_peek(uint64_t size, bool ended)
{
	struct log_stat st;

	log_peek(t.log, &st);
	assert_int_equal(st.size, size);
	assert_int_equal(st.ended, ended);
}

/* Print TEXT. ERR is the result that the log's writer must report. */
static void print(const char *text, int err)
{
	rig_here(do_print, (void *)(uintptr_t)text);
	rig_until(atomic_load(&t.done));
	assert_int_equal(t.err, err);
}

static void do_check(void *data)
{
	*(bool *)data = log_is_kept(t.log, &t.early);
}

static bool is_kept(void)
{
	bool kept;

	rig_here(do_check, &kept);
	return kept;
}

static void expect_log(const char *text)
{
	size_t len;
	char *got = rig_read(t.log, &len);

	assert_int_equal(len, strlen(text));
	assert_memory_equal(got, text, len);
	free(got);
}

static void reopen(void)
{
	if (t.w)
		rig_here(do_close, NULL);
	rig_here(do_open, NULL);
	rig_until(atomic_load(&t.open));
}

static void limit(rlim_t bytes)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static int setup(void **state)
{
	signal(SIGXFSZ, SIG_IGN);
	t.early = (struct log_early){0};
	rig_setup(state);
	rig_open("job");
	rig_begin("key", NULL);
	reopen();
	t.log = rig_log("job", "key");
	return 0;
}

static int teardown(void **state)
{
	limit(RLIM_INFINITY);
	if (t.w)
		rig_here(do_close, NULL);
	log_unref(take_ptr(t.log));
	return rig_teardown(state);
}

static void test_early(void **state)
{
	print("one\n", 0);
	/* kxfs does not know yet whether the disk accepts anything */
	assert_string_equal(t.got, "");
	assert_true(is_kept());
	expect_peek(4, false);
	print("two\n", 0);
	assert_string_equal(t.got, "two\n");
	assert_int_equal(t.early.end, 8);
	expect_peek(8, false);
	assert_true(is_kept());
	assert_int_equal(t.early.end, 0);
	expect_log("one\ntwo\n");
}

/* A reader gets the second line early. Then the disk refuses that line. */
static void refuse(void)
{
	print(FIRST, 0);
	limit(LIMIT);
	print("two\n", -EFBIG);
	assert_string_equal(t.got, "two\n");
	assert_true(is_kept());
	expect_log(FIRST);
	limit(RLIM_INFINITY);
	reopen();
}

static void test_again(void **state)
{
	refuse();
	assert_true(is_kept());
	print("two\n", 0);
	assert_string_equal(t.got, "");
	assert_true(is_kept());
	assert_int_equal(t.early.end, 0);
	expect_log(FIRST "two\n");
}

static void test_lost(void **state)
{
	refuse();
	rig_here(do_lose, NULL);
	print("another\n", 0);
	assert_false(is_kept());
	/* A reader that opens the log now does not see the lost line. */
	t.early = (struct log_early){0};
	assert_true(is_kept());
	expect_log(FIRST "another\n");
}

static void test_ended(void **state)
{
	refuse();
	rig_here(do_close, NULL);
	rig_end("key");
	rig_until(rig_stat(t.log).ended);
	expect_peek(LIMIT, true);
	assert_false(is_kept());
}

/* At a log event, take the next line from memory. */
static void on_log(struct log *log)
{
	const char *got = "";
	size_t n, at = atomic_load(&t.followed);

	if (log != t.log)
		return;
	n = log_read_early(log, &t.early, &got, sizeof(t.got) - 1 - at, at);
	memcpy(t.got + at, got, n);
	atomic_store(&t.followed, at + n);
}

/* True if the merged log contains LINE. */
static bool is_merged(struct log *merged, const char *line)
{
	size_t len;
	char *text = rig_read(merged, &len);
	bool ret = strstr(text, line) != NULL;

	free(text);
	return ret;
}

/*
 * Another process writes a log. A reader that follows it gets from memory what was read for the
 * merged log. Output from before that is read from disk, as in any file.
 */
static void test_local(void **state)
{
	struct log *merged = rig_log("job", NULL);
	struct rig_writer w;

	rig_writer_begin(&w, "job", "other", "main/0 ");
	rig_write(&w, "first\n");
	rig_until(is_merged(merged, "main/0 first\n"));
	log_unref(t.log);
	t.log = rig_log("job", "other");
	atomic_store(&t.followed, 6);
	rig.on_log = on_log;
	rig_write(&w, "one\n");
	rig_until(atomic_load(&t.followed) == 10);
	rig_write(&w, "two\nthree");
	rig_until(atomic_load(&t.followed) == 19);
	assert_memory_equal(t.got + 6, "one\ntwo\nthree", 13);
	assert_true(is_kept());
	assert_int_equal(t.early.end, 0);
	rig.on_log = NULL;
	log_unref(merged);
	rig_writer_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_early, setup, teardown),
		cmocka_unit_test_setup_teardown(test_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_local, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
