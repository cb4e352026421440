/* SPDX-License-Identifier: MIT */
/*
 * The merged log, as its readers see it: the order of its lines, in whichever order they arrive,
 * incomplete lines, and what a restart makes of missing, additional or damaged files.
 */
#include <sys/syscall.h>

#include "tests/unit/backend/output/output_rig.h"

/* --- changes of an index on disk --- */

/* number of truncated indexes, of those that were synced, and of further syncs that fail */
static unsigned n_cut, n_cut_synced, bad_syncs;

static struct {
	char bytes[256];
	size_t n; /* if not 0, the index gets BYTES before the next read of it */
} growth;

static bool is_index(int fd)
{
	char link[32], path[200] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && strcmp(basename(path), "merged") == 0;
}

ssize_t pread(int fd, void *buf, size_t n, off_t off)
{
	if (growth.n > 0 && is_index(fd)) {
		cleanup_free char *path = rig_path("job/merged");
		cleanup_fd int index = open(path, O_WRONLY);

		assert_int_equal(pwrite(index, growth.bytes, growth.n, 0), growth.n);
		growth.n = 0;
	}
	return syscall(SYS_pread64, fd, buf, n, off);
}

int ftruncate(int fd, off_t size)
{
	n_cut += is_index(fd);
	return (int)syscall(SYS_ftruncate, fd, size);
}

int fdatasync(int fd)
{
	if (is_index(fd) && bad_syncs > 0) {
		bad_syncs--;
		errno = EIO;
		return -1;
	}
	if (is_index(fd))
		n_cut_synced = n_cut;
	return (int)syscall(SYS_fdatasync, fd);
}

/* --- logs with numbers --- */

static char *key_of(size_t i)
{
	return text_print("k%zu", i);
}

/* Begin N logs, as when kxfs first sees a job. */
static void begin(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *key = key_of(i), *prefix = text_print("r/%zu ", i);

		rig_begin(key, prefix);
	}
}

/* HELD: earlier lines of the first N logs are still to be fetched. */
static void hold(size_t n, bool held)
{
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *key = key_of(i);

		output_log_expect(rig.job, key, held);
	}
}

/* Print a line in log I at the time NS. The text of the line is that time. */
static void print(size_t i, int64_t ns)
{
	cleanup_free char *key = key_of(i), *line = text_print("%lld\n", (long long)ns);

	rig_print(key, ns, line);
}

static void expect(const char *text)
{
	rig_expect(NULL, text);
}

/* --- the tests --- */

/*
 * A log may still print earlier lines. kxfs waits for them, but only for a limited time. It waits
 * longer for lines that are still to be fetched. Within a log, lines never change their order.
 */
static void test_late(void **state)
{
	begin(3);
	hold(1, true);
	print(1, 9);
	print(0, 10);
	print(0, 8);
	expect("");
	hold(1, false);
	expect("r/1 9\nr/0 10\nr/0 8\n");
	print(2, 5);
	expect("r/1 9\nr/0 10\nr/0 8\nr/2 5\n");
}

/* The time of a line is the time of its first part. A line gets into the merged log as a whole. */
static void test_parts(void **state)
{
	begin(2);
	rig_print("k0", 1, "be");
	print(1, 2);
	expect("r/1 2\n");
	rig_print("k0", 1, "gun\n");
	expect("r/1 2\nr/0 begun\n");
	print(1, 3);
	expect("r/1 2\nr/0 begun\nr/1 3\n");
	rig_print("k0", 4, "never ended");
	rig_end("k0");
	expect("r/1 2\nr/0 begun\nr/1 3\nr/0 never ended");
	print(1, 5);
	rig_print("k1", 6, "the last");
	rig_end("k1");
	output_job_end(rig.job);
	expect("r/1 2\nr/0 begun\nr/1 3\nr/0 never ended\nr/1 5\nr/1 the last\n");
}

/*
 * A progress bar appears in the merged log as it is drawn. Between lines of other logs it continues
 * in lines of its own. Its last '\r' waits, because a '\n' may follow.
 */
static void test_progress_bar(void **state)
{
	begin(2);
	rig_print("k0", 1, "\r10%");
	rig_print("k0", 1, "\r20%\r30%");
	expect("r/0 \rr/0 10%\rr/0 20%\r");
	print(1, 2);
	expect("r/0 \rr/0 10%\rr/0 20%\r\nr/1 2\n");
	rig_print("k0", 3, "\r");
	rig_print("k0", 3, "\n");
	expect("r/0 \rr/0 10%\rr/0 20%\r\nr/1 2\nr/0 30%\r\n");
}

/* Somebody truncates a log whose lines wait. The rest of the log ends all the same. */
static void test_emptied(void **state)
{
	cleanup_free char *path = rig_path("job/logs/k0");
	struct log *merged;

	begin(1);
	hold(1, true);
	print(0, 1);
	assert_int_equal(truncate(path, 0), 0);
	rig_end("k0");
	output_job_end(rig.job);
	fake_pass(5000);
	assert_int_equal(rig.ended, 1);
	merged = rig_log(NULL);
	assert_true(rig_ended(merged));
	log_unref(merged);
}

/*
 * While the disk can't read the bytes of a log, no other bytes replace them. They are read when the
 * disk works again.
 */
static void test_unread(void **state)
{
	char got[32] = "";
	struct log *merged;

	begin(2);
	print(0, 1);
	print(1, 2);
	expect("r/0 1\nr/1 2\n");
	rig_end("k0");
	rig_end("k1");
	fake_run();
	rig_refuse("logs/k1");
	merged = rig_log(NULL);
	assert_int_equal(log_read(merged, got, sizeof(got), 0), 6);
	assert_int_equal(log_read(merged, got + 6, sizeof(got) - 6, 6), -ELOOP);
	assert_string_equal(got, "r/0 1\n");
	log_unref(merged);
	rig_give("logs/k1");
	expect("r/0 1\nr/1 2\n");
}

/*
 * After a crash of the machine, the index may describe more than the logs contain. It is truncated
 * there and rebuilt. The truncation is synced first, although the first sync fails. Without the
 * sync, the wrong part would be back after another crash.
 */
static void test_lost(void **state)
{
	cleanup_free char *path = rig_path("job/logs/k1");

	begin(2);
	print(0, 1);
	print(1, 2);
	print(0, 3);
	expect("r/0 1\nr/1 2\nr/0 3\n");
	rig_down();
	assert_int_equal(truncate(path, 0), 0);
	rig_up();
	n_cut = n_cut_synced = 0;
	bad_syncs = 1;
	begin(2);
	expect("r/0 1\nr/0 3\n");
	assert_int_equal(n_cut, 1);
	assert_int_equal(n_cut_synced, 1);
	print(1, 2);
	expect("r/0 1\nr/0 3\nr/1 2\n");
}

#define N_LOGS	8
#define N_LINES 2000

static size_t any(size_t n)
{
	return (size_t)rand() % n;
}

static int by_number(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * In whatever order lines arrive, and wherever the index was when kxfs ended, all lines are in
 * order, provided that kxfs waits for the missing ones.
 */
static void test_any_order(void **state)
{
	static int64_t times[N_LINES];
	const unsigned seed = (unsigned)time(NULL);
	cleanup_free char *expected = NULL;
	int64_t ns[N_LOGS] = {0};
	size_t len;
	FILE *f;

	print_message("seed %u\n", seed);
	srand(seed);
	begin(N_LOGS);
	for (size_t i = 0; i < N_LINES; i++) {
		size_t log = any(1 + any(N_LOGS));

		hold(N_LOGS, true);
		/* No two lines have the same time: its last digit is the number of the log. */
		ns[log] += (int64_t)(1 + any(any(2) ? 3 : 3000)) * 10;
		times[i] = ns[log] + (int64_t)log;
		print(log, times[i]);
		if (any(10) == 0) {
			hold(N_LOGS, false);
			fake_run();
		}
		if (any(N_LINES / 3) == 0) {
			rig_crash();
			rig_up();
			begin(N_LOGS);
		}
	}
	hold(N_LOGS, false);
	qsort(times, N_LINES, sizeof(times[0]), by_number);
	f = text_stream(&expected, &len);
	for (size_t i = 0; i < N_LINES; i++)
		fprintf(f, "r/%d %lld\n", (int)(times[i] % 10), (long long)times[i]);
	text_stream_close(f);
	expect(expected);
}

/* The first records are written while a reader of the merged log gets its size. */
static void test_size_of_growing(void **state)
{
	cleanup_free char *path = rig_path("job/merged"), *bytes = NULL;
	struct log_stat st;

	begin(1);
	print(0, 1);
	expect("r/0 1\n");
	rig_end("k0");
	output_job_end(rig.job);
	rig_down();
	assert_int_equal(file_read(path, sizeof(growth.bytes), &bytes, &growth.n), 0);
	memcpy(growth.bytes, bytes, growth.n);
	assert_int_equal(truncate(path, 0), 0);
	rig_up();
	assert_int_equal(output_log_stat(rig.output, "job", NULL, LOG_PLAIN, &st), 0);
	assert_int_equal(growth.n, 0);
	assert_int_equal(st.size, 0);
	expect("r/0 1\n");
}

/* If the times of lines are damaged or missing, only the order is affected. */
static void test_damaged(void **state)
{
	struct log_stat st;
	char got[512] = "";
	struct log *merged;

	begin(2);
	hold(2, true);
	for (int64_t i = 1; i <= 50; i++)
		print((size_t)i % 2, i);
	rig_crash();
	for (size_t i = 0; i < 2; i++) {
		cleanup_free char *name = text_print("job/lines/k%zu", i), *path = rig_path(name);

		assert_int_equal(truncate(path, 0), 0);
		for (unsigned k = 0; i == 0 && k < 200; k++)
			rig_put(name, "rubbish");
	}
	rig_up();
	begin(2);
	fake_run();
	fake_pass(5000);
	merged = rig_log(NULL);
	assert_int_equal(log_stat(merged, &st), 0);
	assert_int_equal(st.size, 50 * strlen("r/0 10\n") - 9);
	assert_int_equal(log_read(merged, got, sizeof(got) - 1, 0), st.size);
	for (int i = 1; i <= 50; i++) {
		cleanup_free char *line = text_print("r/%d %d\n", i % 2, i);

		assert_non_null(strstr(got, line));
	}
	log_unref(merged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_fetched(test_late),
		rig_test_fetched(test_parts),
		rig_test_fetched(test_progress_bar),
		rig_test_fetched(test_emptied),
		rig_test_fetched(test_unread),
		rig_test_fetched(test_lost),
		rig_test_fetched(test_damaged),
		rig_test_fetched(test_any_order),
		rig_test_fetched(test_size_of_growing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
