/* SPDX-License-Identifier: MIT */
/*
 * Logs with the times of their lines: their size, and what reads from any offset return while they
 * grow.
 */
#include "tests/unit/backend/output/output_rig.h"
#include "tests/unit/backend/output/print_lines.h"

#include "backend/output/stamp.h"

static struct {
	struct log_writer *w;
	atomic_bool open, written;
} writers[2];

static const char *const keys[] = {"a", "b"};

static void on_opened(void *data, int err)
{
	assert_int_equal(err, 0);
	atomic_store(&writers[*(size_t *)data].open, true);
}

static void on_written(void *data, int err)
{
	assert_int_equal(err, 0);
	atomic_store(&writers[*(size_t *)data].written, true);
}

static size_t numbers[] = {0, 1};

static void do_open(void *data)
{
	size_t i = *(size_t *)data;
	const struct log_writer_events events = {.opened = on_opened,
						 .written = on_written,
						 .data = data};

	writers[i].w = log_writer_new(rig.job, keys[i], &events);
}

static void begin(size_t i, const char *prefix)
{
	rig_begin(keys[i], prefix);
	atomic_store(&writers[i].open, false);
	rig_here(do_open, &numbers[i]);
	rig_until(atomic_load(&writers[i].open));
}

struct print {
	size_t i;
	int64_t ns;
	const char *text;
};

static void do_print(void *data)
{
	const struct print *p = data;

	print_lines(writers[p->i].w, p->ns, p->text);
}

static void print(size_t i, int64_t ns, const char *text)
{
	struct print p = {i, ns, text};

	atomic_store(&writers[i].written, false);
	rig_here(do_print, &p);
	rig_until(atomic_load(&writers[i].written));
}

static void do_close(void *data)
{
	log_writer_close(take_ptr(writers[*(size_t *)data].w));
}

static void end(size_t i)
{
	rig_here(do_close, &numbers[i]);
	rig_end(keys[i]);
}

static struct log *open_stamped(const char *key)
{
	struct log *log = NULL;

	assert_int_equal(output_log(rig.output, "job", key, LOG_STAMPED, &log), 0);
	return log;
}

/* Assert that LOG is TEXT, also when read from any offset. */
static void expect_text(struct log *log, const char *text)
{
	struct log_stat st;
	char buf[4096];

	rig_until(rig_stat(log).size >= strlen(text));
	st = rig_stat(log);
	assert_int_equal(st.size, strlen(text));
	for (size_t from = 0; from <= strlen(text); from++) {
		ssize_t n = log_read(log, buf, sizeof(buf), from);

		assert_int_equal(n, strlen(text) - from);
		assert_memory_equal(buf, text + from, (size_t)n);
	}
	for (size_t from = strlen(text); from-- > 0;)
		assert_int_equal(log_read(log, buf, 7, from),
				 min_of(strlen(text) - from, (size_t)7));
}

#define T INT64_C(1700000000000000000) /* 2023-11-14T22:13:20Z */

static void test_one(void **state)
{
	struct log_stat st;
	struct log *log;

	rig_open("job");
	begin(0, "r/0 ");
	log = open_stamped("a");
	expect_text(log, "");
	print(0, T + 123456789, "one\n");
	expect_text(log, "2023-11-14T22:13:20.123456Z one\n");
	print(0, T + 2000000000, "ha");
	expect_text(log, "2023-11-14T22:13:20.123456Z one\n2023-11-14T22:13:22.000000Z ha");
	print(0, T + 9000000000, "lf\r\nx\ry\n\n");
	expect_text(log, "2023-11-14T22:13:20.123456Z one\n2023-11-14T22:13:22.000000Z half\r\n"
			 "2023-11-14T22:13:29.000000Z x\ry\n2023-11-14T22:13:29.000000Z \n");
	end(0);
	rig_until(rig_stat(log).ended);
	log_unref(log);
	rig_here(rig_do_job_end, NULL);
	rig_here(rig_do_close, NULL);
	rig_down(true);
	rig_up();
	/* The table is kept as long as the log. */
	assert_int_equal(output_log_stat(rig.output, "job", "a", LOG_STAMPED, &st), 0);
	assert_int_equal(st.size, 28 * 4 + 4 + 6 + 4 + 1);
	assert_true(st.ended);
	assert_int_equal(output_log_stat(rig.output, "job", "b", LOG_STAMPED, &st), -ENOENT);
}

static void test_merged(void **state)
{
	static const char text[] = "2023-11-14T22:13:20.000000Z r/0 one\n"
				   "2023-11-14T22:13:21.000000Z r/1 two\n"
				   "2023-11-14T22:13:22.000000Z r/0 \rr/0 10%\rr/0 20%\n"
				   "2023-11-14T22:13:22.000000Z r/0 next\n"
				   "2023-11-14T22:13:23.000000Z r/1 no end\n";
	struct log_stat st;
	struct log *log;

	rig_open("job");
	begin(0, "r/0 ");
	begin(1, "r/1 ");
	log = open_stamped(NULL);
	print(0, T, "one\n");
	print(1, T + 1000000000, "two\n");
	print(0, T + 2000000000, "\r10%\r20%\nnext\n");
	print(1, T + 3000000000, "no end");
	end(0);
	end(1);
	rig_here(rig_do_job_end, NULL);
	rig_until(rig_stat(log).ended);
	expect_text(log, text);
	log_unref(log);
	rig_here(rig_do_close, NULL);
	rig_down(true);
	rig_up();
	assert_int_equal(output_log_stat(rig.output, "job", NULL, LOG_STAMPED, &st), 0);
	assert_int_equal(st.size, strlen(text));
	log = open_stamped(NULL);
	expect_text(log, text);
	log_unref(log);
}

/* In a log without known times, all lines have the time 1970. */
static void test_unknown(void **state)
{
	char path[200];
	struct log *log;
	int fd;

	snprintf(path, sizeof(path), "%s/output/job", rig.state);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/logs");
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/a");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "one\ntwo", 7), 7);
	close(fd);
	log = open_stamped("a");
	expect_text(log, "1970-01-01T00:00:00.000000Z one\n1970-01-01T00:00:00.000000Z two");
	log_unref(log);
}

static void print_at(struct rig_writer *w, int64_t ns, const char *text)
{
	rig_append_at(w, ns, text, strlen(text));
}

/*
 * The times of a local log are in its table, which another process writes. kxfs reads that table
 * and never changes it, even if the log grew before kxfs started.
 */
static void test_local(void **state)
{
	struct rig_writer w;
	cleanup_free char *path = file_path(rig.state, "job", "lines/a");
	cleanup_free char *before = NULL, *after = NULL;
	size_t n_before, n_after;
	struct log *log;

	rig_open("job");
	rig_writer_begin(&w, "job", "a", "r/0 ");
	log = open_stamped("a");
	print_at(&w, T + 5000, "one\ntwo\n");
	expect_text(log, "2023-11-14T22:13:20.000005Z one\n2023-11-14T22:13:20.000005Z two\n");
	rig_grown(&w);
	print_at(&w, T + 7000, "half");
	print_at(&w, T + 9000, " a line\nlast");
	rig_grown(&w);
	log_unref(log);
	rig_down(false);
	print_at(&w, T + 11000, "\nunseen\n");
	rig_writer_end(&w);
	assert_int_equal(file_read(path, 4096, &before, &n_before), 0);
	rig_up();
	rig_open("job");
	rig_begin("a", "r/0 ");
	log = open_stamped("a");
	rig_end("a");
	rig_until(rig_stat(log).ended);
	expect_text(log, "2023-11-14T22:13:20.000005Z one\n2023-11-14T22:13:20.000005Z two\n"
			 "2023-11-14T22:13:20.000007Z half a line\n"
			 "2023-11-14T22:13:20.000009Z last\n"
			 "2023-11-14T22:13:20.000011Z unseen\n");
	assert_int_equal(file_read(path, 4096, &after, &n_after), 0);
	assert_int_equal(n_after, n_before);
	assert_memory_equal(after, before, n_before);
	log_unref(log);
}

/* A long log: each line has its own stamp, wherever a read starts. */
static void test_long(void **state)
{
	enum { LINES = 20000 };
	struct log *log;
	size_t len, at = 0;
	char *text;

	rig_open("job");
	begin(0, "r/0 ");
	for (int64_t i = 0; i < LINES; i += 100) {
		char lines[4096];
		size_t n = 0;

		for (int64_t k = i; k < i + 100; k++)
			n += (size_t)snprintf(lines + n, sizeof(lines) - n, "%06d%s\n", (int)k,
					      k % 3 ? "" : " and more");
		print(0, T + i * 1000000, lines);
	}
	log = open_stamped("a");
	text = rig_read(log, &len);
	for (int i = 0; i < LINES; i++) {
		char stamp[28], number[8], part[64];
		size_t n = 28 + 6 + (i % 3 ? 0 : 9) + 1;

		stamp_print(T + i / 100 * INT64_C(100000000), stamp);
		snprintf(number, sizeof(number), "%06d", i);
		assert_memory_equal(text + at, stamp, 28);
		assert_memory_equal(text + at + 28, number, 6);
		if (i % 997 == 0) {
			assert_int_equal(log_read(log, part, n - 3, at + 3), n - 3);
			assert_memory_equal(part, text + at + 3, n - 3);
		}
		at += n;
	}
	assert_int_equal(at, len);
	free(text);
	log_unref(log);
	end(0);
}

int main(void)
{
#define stamped_test(t) cmocka_unit_test_setup_teardown(t, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		stamped_test(test_one),	  stamped_test(test_merged), stamped_test(test_unknown),
		stamped_test(test_local), stamped_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
