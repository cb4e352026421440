/* SPDX-License-Identifier: MIT */
/*
 * The order of lines in the merged log. Writers of fetched logs add lines with times. The test
 * checks what a reader of the merged log sees, in whichever order the lines arrive, and after a
 * restart of kxfs in between.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/backend/output/output_rig.h"
#include "tests/unit/clock.h"

#include "backend/output/order.h"
#include "backend/output/writer.h"

#define N_LOGS	8
#define N_LINES 2000

static struct follow {
	char key[32], prefix[32];
	struct log_writer *w;
	atomic_bool open, written;
	atomic_bool waits; /* the writer has unwritten lines */
} logs[N_LOGS];

/* --- changes of an index on disk --- */

/* number of truncated indexes, and of those that were synced */
static atomic_uint n_cut, n_cut_synced;
static atomic_uint bad_syncs; /* how many further syncs of an index fail */

static bool is_index(int fd)
{
	char link[32], path[200] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && strcmp(basename(path), "merged") == 0;
}

static struct {
	char bytes[256];
	size_t n; /* if not 0, the index gets BYTES before the next read of it */
} growth;

ssize_t pread(int fd, void *buf, size_t n, off_t off)
{
	if (growth.n > 0 && is_index(fd)) {
		const size_t grown = growth.n;
		char path[32];
		int index;

		growth.n = 0;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		index = open(path, O_WRONLY);
		assert_int_equal(pwrite(index, growth.bytes, grown, 0), grown);
		close(index);
	}
	return syscall(SYS_pread64, fd, buf, n, off);
}

int ftruncate(int fd, off_t size)
{
	atomic_fetch_add(&n_cut, is_index(fd));
	return (int)syscall(SYS_ftruncate, fd, size);
}

int fdatasync(int fd)
{
	if (is_index(fd) && atomic_load(&bad_syncs) > 0) {
		atomic_fetch_sub(&bad_syncs, 1);
		errno = EIO;
		return -1;
	}
	if (is_index(fd))
		atomic_store(&n_cut_synced, atomic_load(&n_cut));
	return (int)syscall(SYS_fdatasync, fd);
}

/* --- calls on the I/O thread --- */

static void on_opened(void *data, int err)
{
	struct follow *f = data;

	assert_int_equal(err, 0);
	atomic_store(&f->open, true);
}

static void on_written(void *data, int err)
{
	struct follow *f = data;

	assert_int_equal(err, 0);
	atomic_store(&f->waits, false);
	atomic_store(&f->written, true);
}

/* There are N logs. Those with a number of HELD or more are still to be fetched. */
struct world {
	size_t n, held;
};

/* Begin all logs at the same time, as when kxfs first sees a job. */
static void do_begin(void *data)
{
	const struct world *world = data;

	for (size_t i = 0; i < world->n; i++) {
		struct follow *f = &logs[i];
		const struct log_writer_events events = {.opened = on_opened,
							 .written = on_written,
							 .data = f};

		snprintf(f->key, sizeof(f->key), "k%zu", i);
		snprintf(f->prefix, sizeof(f->prefix), "r/%zu ", i);
		assert_int_equal(output_log_begin(rig.job, f->key, f->prefix, false), 0);
		if (i >= world->held)
			output_log_expect(rig.job, f->key, true);
		f->w = log_writer_new(rig.job, f->key, &events);
	}
}

static void do_close(void *data)
{
	struct follow *f = data;

	log_writer_close(take_ptr(f->w));
	atomic_store(&f->open, false);
}

static void do_hold(void *data)
{
	for (size_t i = 0; i < N_LOGS; i++)
		output_log_expect(rig.job, logs[i].key, *(const bool *)data);
}

static void hold(bool held)
{
	rig_here(do_hold, &held);
}

struct line {
	size_t log;
	int64_t ns;
	char text[32];
};

static void do_print(void *data)
{
	struct line *line = data;

	atomic_store(&logs[line->log].written, false);
	atomic_store(&logs[line->log].waits, true);
	log_writer_add(logs[line->log].w, line->ns, line->text, strlen(line->text));
	log_writer_flush(logs[line->log].w);
}

/* --- the same calls, from the test's thread --- */

static void begin(size_t n, size_t held)
{
	struct world world = {n, held};

	rig_open("job");
	rig_here(do_begin, &world);
	for (size_t i = 0; i < n; i++)
		rig_until(atomic_load(&logs[i].open));
}

static void end(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		rig_here(do_close, &logs[i]);
		rig_end(logs[i].key);
	}
}

/* Print a line in log I at the time NS. The text of the line is that time. */
static void print(size_t i, int64_t ns)
{
	struct line line = {.log = i, .ns = ns};

	snprintf(line.text, sizeof(line.text), "%lld\n", (long long)ns);
	rig_here(do_print, &line);
}

/* Wait until the merged log was notified of everything that the logs have printed. */
static void written(size_t n)
{
	for (size_t i = 0; i < n; i++)
		rig_until(atomic_load(&logs[i].written));
}

/* Let the longest waiting time of a line pass. Each tick is due in the next loop iteration. */
static void pass_ticks(void)
{
	for (int i = 0; i < 2 * ORDER_WAIT_TICKS + 2; i++) {
		clock_pass(rig.loop, 1);
		rig_here(clock_nothing, NULL);
	}
}

/*
 * Wait until all output is written and no line waits any longer. Then assert that the merged log is
 * TEXT.
 */
static void expect_merged(const char *text)
{
	struct log *merged = rig_log("job", NULL);
	cleanup_free char *got = NULL;
	size_t n;

	for (size_t i = 0; i < N_LOGS; i++)
		rig_until(!atomic_load(&logs[i].waits));
	pass_ticks();
	rig_until(rig_stat(merged).size >= strlen(text));
	got = rig_read(merged, &n);
	assert_string_equal(got, text);
	log_unref(merged);
}

static void on_arrived(void *data)
{
	sem_post(data);
}

static uint64_t file_size(const char *name)
{
	char path[200];
	struct stat st;

	snprintf(path, sizeof(path), "%s/output/job/%s", rig.state, name);
	return stat(path, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

/* Return the size of all logs together. */
static uint64_t logged(size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "logs/k%zu", i);
		sum += file_size(name);
	}
	return sum;
}

/* --- the tests --- */

static void test_by_time(void **state)
{
	begin(2, 0);
	print(0, 1);
	print(0, 3);
	print(0, 5);
	print(1, 2);
	print(1, 4);
	print(1, 6);
	written(2);
	hold(false);
	/*
	 * Log 0 may still print a line with a time before 6. kxfs waits for it, but only for a
	 * limited time.
	 */
	expect_merged("r/0 1\nr/1 2\nr/0 3\nr/1 4\nr/0 5\nr/1 6\n");
	end(2);
	/* The times are kept as long as the logs. */
	assert_true(file_size("lines/k0") > 0 && file_size("lines/k1") > 0);
}

/* A third log may still print an earlier line. kxfs waits for it, but only for a limited time. */
static void test_late(void **state)
{
	begin(3, 3);
	print(1, 9);
	print(0, 10);
	print(0, 11);
	expect_merged("r/1 9\nr/0 10\nr/0 11\n");
	print(2, 5);
	expect_merged("r/1 9\nr/0 10\nr/0 11\nr/2 5\n");
	end(3);
}

/* kxfs waits for earlier lines of a log that is still to be fetched. */
static void test_hold(void **state)
{
	struct log *merged;

	begin(2, 1);
	print(0, 20);
	print(0, 40);
	merged = rig_log("job", NULL);
	written(1);
	pass_ticks(); /* only the fetch makes kxfs wait this long */
	assert_int_equal(rig_stat(merged).size, 0);
	print(1, 10);
	print(1, 30);
	written(2);
	hold(false);
	expect_merged("r/1 10\nr/0 20\nr/1 30\nr/0 40\n");
	log_unref(merged);
	end(2);
}

/* A reader that opens the merged log gets all existing output. */
static void test_settle(void **state)
{
	struct log *merged;
	sem_t done;

	sem_init(&done, 0, 0);
	begin(2, 2);
	merged = rig_log("job", NULL);
	print(1, 1);
	print(0, 2);
	written(2);
	log_when_arrived(merged, on_arrived, &done);
	while (sem_wait(&done) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(rig_stat(merged).size, 12);
	expect_merged("r/1 1\nr/0 2\n");
	log_unref(merged);
	sem_destroy(&done);
	end(2);
}

/* The time of a line is the time of its first part. */
static void test_parts(void **state)
{
	struct line part = {.log = 0, .ns = 1, .text = "be"};

	begin(2, 2);
	rig_here(do_print, &part);
	print(1, 2);
	expect_merged("r/1 2\n");
	strcpy(part.text, "gun\n");
	rig_here(do_print, &part);
	expect_merged("r/1 2\nr/0 begun\n");
	print(1, 3);
	expect_merged("r/1 2\nr/0 begun\nr/1 3\n");
	strcpy(part.text, "never ended");
	rig_here(do_print, &part);
	written(1);
	end(2);
	expect_merged("r/1 2\nr/0 begun\nr/1 3\nr/0 never ended");
}

/* Somebody truncates a log whose lines wait. The rest of the log ends all the same. */
static void test_emptied(void **state)
{
	char path[200];
	struct log *merged;

	atomic_store(&rig.ended, 0);
	begin(1, 0);
	print(0, 1);
	written(1);
	snprintf(path, sizeof(path), "%s/output/job/logs/k0", rig.state);
	assert_int_equal(truncate(path, 0), 0);
	end(1);
	rig_until(atomic_load(&rig.ended) == 1);
	rig_here(rig_do_job_end, NULL);
	merged = rig_log("job", NULL);
	rig_until(rig_stat(merged).ended);
	log_unref(merged);
}

/*
 * While the disk can't read the bytes of a log, no other bytes replace them. They are read when the
 * disk works again.
 */
static void test_unread(void **state)
{
	char path[200], aside[200], got[32] = "";
	struct log *merged;

	begin(2, 0);
	print(0, 1);
	print(1, 2);
	written(2);
	hold(false);
	expect_merged("r/0 1\nr/1 2\n");
	end(2);
	snprintf(path, sizeof(path), "%s/output/job/logs/k1", rig.state);
	snprintf(aside, sizeof(aside), "%s/k1", rig.state);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0700), 0); /* a directory can be opened, but not read */
	merged = rig_log("job", NULL);
	assert_int_equal(log_read(merged, got, sizeof(got), 0), 6);
	assert_int_equal(log_read(merged, got + 6, sizeof(got) - 6, 6), -EISDIR);
	assert_string_equal(got, "r/0 1\n");
	log_unref(merged);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(aside, path), 0);
	expect_merged("r/0 1\nr/1 2\n");
}

/*
 * After a crash of the machine, the index may describe more than the logs contain. It is truncated
 * there and rebuilt. The truncation is synced first, although the first sync fails. Without the
 * sync, the wrong part would be back after another crash.
 */
static void test_lost(void **state)
{
	char path[200];

	begin(2, 0);
	print(0, 1);
	print(1, 2);
	print(0, 3);
	written(2);
	hold(false);
	expect_merged("r/0 1\nr/1 2\nr/0 3\n");
	for (size_t i = 0; i < 2; i++)
		rig_here(do_close, &logs[i]);
	rig_down(true);
	snprintf(path, sizeof(path), "%s/output/job/logs/k1", rig.state);
	assert_int_equal(truncate(path, 0), 0);
	rig_up();
	atomic_store(&n_cut, 0);
	atomic_store(&bad_syncs, 1);
	begin(2, 2);
	expect_merged("r/0 1\nr/0 3\n");
	assert_int_equal(atomic_load(&n_cut), 1);
	assert_int_equal(atomic_load(&n_cut_synced), 1);
	print(1, 2);
	expect_merged("r/0 1\nr/0 3\nr/1 2\n");
	end(2);
}

static size_t any(size_t n)
{
	return (size_t)rand() % n;
}

/* Start again as after a crash, once BYTES were written. */
static void again(uint64_t bytes)
{
	rig_until(logged(N_LOGS) == bytes);
	for (size_t i = 0; i < N_LOGS; i++)
		rig_here(do_close, &logs[i]);
	rig_down(false);
	rig_up();
	begin(N_LOGS, 0);
}

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static char *sorted(struct line *lines, size_t n)
{
	char *text = malloc(n * 64), *at = text;

	qsort(lines, n, sizeof(*lines), by_time);
	for (size_t i = 0; i < n; i++)
		at += sprintf(at, "r/%zu %s", lines[i].log, lines[i].text);
	return text;
}

/*
 * In whatever order lines arrive, and wherever the index was when kxfs ended, all lines are in
 * order, provided that kxfs waits for the missing ones.
 */
static void test_any_order(void **state)
{
	static struct line lines[N_LINES];
	cleanup_free char *expected = NULL;
	int64_t ns[N_LOGS] = {0};
	uint64_t bytes = 0;
	unsigned seed = (unsigned)loop_time_ns();

	print_message("seed %u\n", seed);
	srand(seed);
	begin(N_LOGS, 0);
	for (size_t i = 0; i < N_LINES; i++) {
		size_t log = any(1 + any(N_LOGS));

		/* No two lines have the same time: its last digit is the number of the log. */
		ns[log] += (int64_t)(1 + any(any(2) ? 3 : 3000)) * 10;
		print(log, ns[log] + (int64_t)log);
		lines[i] = (struct line){.log = log, .ns = ns[log] + (int64_t)log};
		snprintf(lines[i].text, sizeof(lines[i].text), "%lld\n", (long long)lines[i].ns);
		bytes += strlen(lines[i].text);
		if (any(N_LINES / 3) == 0)
			again(bytes);
		hold(true); /* lines from before the restart are still waiting */
	}
	written(N_LOGS);
	hold(false);
	expected = sorted(lines, N_LINES);
	expect_merged(expected);
	end(N_LOGS);
}

/* The first records are written while a reader of the merged log gets its size. */
static void test_size_of_growing(void **state)
{
	struct log_stat st;
	char path[200];
	FILE *f;

	begin(1, 0);
	print(0, 1);
	expect_merged("r/0 1\n");
	end(1);
	rig_here(rig_do_job_end, NULL);
	rig_here(rig_do_close, NULL);
	rig_down(true);
	snprintf(path, sizeof(path), "%s/output/job/merged", rig.state);
	f = fopen(path, "re");
	assert_non_null(f);
	growth.n = fread(growth.bytes, 1, sizeof(growth.bytes), f);
	fclose(f);
	assert_int_equal(truncate(path, 0), 0);
	rig_up();
	assert_int_equal(output_log_stat(rig.output, "job", NULL, LOG_PLAIN, &st), 0);
	assert_int_equal(growth.n, 0);
	assert_int_equal(st.size, 0);
	assert_int_equal(output_log_stat(rig.output, "job", NULL, LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, strlen("r/0 1\n"));
}

/* If the times of lines are damaged or missing, only the order is affected. */
static void test_damaged(void **state)
{
	static const char *const files[] = {"lines/k0", "lines/k1"};
	struct log *merged;
	cleanup_free char *got = NULL;
	size_t n;

	begin(3, 2);
	for (int64_t i = 1; i <= 50; i++)
		print((size_t)i % 2, i);
	rig_until(logged(2) == 50 * 3 - 9);
	for (size_t i = 0; i < 3; i++)
		rig_here(do_close, &logs[i]);
	rig_down(false);
	for (size_t i = 0; i < array_size(files); i++) {
		char path[200];
		int fd;

		snprintf(path, sizeof(path), "%s/output/job/%s", rig.state, files[i]);
		fd = open(path, O_WRONLY | O_TRUNC);
		assert_true(fd >= 0);
		for (unsigned k = 0; i == 0 && k < 200; k++)
			assert_int_equal(write(fd, "rubbish", 7), 7);
		close(fd);
	}
	rig_up();
	begin(3, 3);
	end(3);
	merged = rig_log("job", NULL);
	rig_until(rig_stat(merged).size == 50 * 7 - 9);
	got = rig_read(merged, &n);
	for (int i = 1; i <= 50; i++) {
		char line[32];

		snprintf(line, sizeof(line), "r/%d %d\n", i % 2, i);
		assert_non_null(strstr(got, line));
	}
	log_unref(merged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_by_time, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_late, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_hold, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_settle, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_parts, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_emptied, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unread, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_lost, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_any_order, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_size_of_growing, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_damaged, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
