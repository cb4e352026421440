/* SPDX-License-Identifier: MIT */
/* Logs of one container as readers see them, and the directories of jobs. */
#include "tests/unit/backend/output/output_rig.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>

static void expect_text(struct log *log, const char *text)
{
	size_t len;
	cleanup_free char *got = rig_read(log, &len);

	assert_string_equal(got, text);
	assert_int_equal(len, strlen(text));
}

static void test_grow(void **state)
{
	struct log *log, *same, *merged;
	struct log_stat st;
	char buf[16];
	struct rig_writer w;

	rig_open("job-1");
	rig_writer_begin(&w, "job-1", "a-0.0", "a/0 ");
	log = rig_log("job-1", "a-0.0");
	same = rig_log("job-1", "a-0.0");
	merged = rig_log("job-1", NULL);
	assert_ptr_equal(log, same);
	log_unref(same);
	assert_true(log_has_arrived(log));
	st = rig_stat(log);
	assert_int_equal(st.size, 0);
	assert_false(st.ended);
	assert_int_equal(log_read(log, buf, sizeof(buf), 0), 0);

	atomic_store(&rig.told, 0);
	rig_append(&w, "one\n", 4);
	expect_text(log, "one\n"); /* immediately, before kxfs is notified */
	rig_grown(&w);
	rig_until(atomic_load(&rig.told) >= 2);
	rig_until(rig_stat(merged).size == 8);
	expect_text(merged, "a/0 one\n");
	rig_write(&w, "no newline");
	expect_text(log, "one\nno newline");
	assert_int_equal(log_read(log, buf, 4, 2), 4);
	assert_memory_equal(buf, "e\nno", 4);
	assert_int_equal(log_read(log, buf, 4, 14), 0);
	assert_int_equal(log_read(log, buf, 4, 1000), 0);
	assert_int_equal(log_read(log, buf, 4, UINT64_MAX), 0);
	assert_true(loop_time_ns() - rig_stat(log).mtime < 60 * INT64_C(1000000000));

	atomic_store(&rig.told, 0);
	rig_writer_end(&w);
	rig_end("a-0.0");
	rig_until(atomic_load(&rig.ended) == 1);
	assert_true(atomic_load(&rig.told) >= 1);
	assert_true(rig_stat(log).ended);
	assert_false(rig_stat(merged).ended);
	rig_here(rig_do_job_end, NULL);
	rig_until(rig_stat(merged).ended);
	expect_text(merged, "a/0 one\na/0 no newline\n");
	log_unref(log);
	log_unref(merged);
	rig_here(rig_do_close, NULL);
}

static void test_finished(void **state)
{
	struct log_stat st;
	struct log *log;
	struct rig_writer w;

	rig_open("job-1");
	rig_writer_begin(&w, "job-1", "a-0.0", "a/0 ");
	rig_write(&w, "text\n");
	rig_writer_end(&w);
	rig_end("a-0.0");
	rig_here(rig_do_job_end, NULL);
	rig_until(atomic_load(&rig.ended) == 1);
	rig_here(rig_do_close, NULL);
	rig_down(true);
	rig_up();

	assert_int_equal(output_log_stat(rig.output, "job-1", "a-0.0", LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, 5);
	assert_true(st.ended);
	assert_true(st.mtime > 0);
	assert_int_equal(output_log_stat(rig.output, "job-1", NULL, LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, 9);
	assert_true(st.ended);
	log = rig_log("job-1", "a-0.0");
	expect_text(log, "text\n");
	assert_true(rig_stat(log).ended);
	log_unref(log);
	log = rig_log("job-1", NULL);
	assert_true(log_has_arrived(log));
	expect_text(log, "a/0 text\n");
	log_unref(log);
	rig_until(output_bytes(rig.output) > 0);
}

static void test_absent(void **state)
{
	struct log_stat st;
	struct log *log;

	rig_open("job-1");
	assert_int_equal(output_log(rig.output, "job-1", "none", LOG_PLAIN, &log), -ENOENT);
	assert_int_equal(output_log(rig.output, "job-1", "../job.json", LOG_PLAIN, &log), -ENOENT);
	assert_int_equal(output_log(rig.output, "..", "x", LOG_PLAIN, &log), -ENOENT);
	assert_int_equal(output_log_stat(rig.output, "job-1", "none", LOG_PLAIN, &st), -ENOENT);
	/* The job has no output yet. */
	assert_int_equal(output_log(rig.output, "job-1", NULL, LOG_PLAIN, &log), 0);
	expect_text(log, "");
	assert_false(rig_stat(log).ended);
	rig_here(rig_do_job_end, NULL);
	rig_until(rig_stat(log).ended);
	log_unref(log);
	assert_int_equal(output_log_stat(rig.output, "job-1", NULL, LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, 0);
	rig_here(rig_do_close, NULL);
	rig_here(rig_do_open, (void *)(uintptr_t) "../escape");
	assert_null(rig.job);
}

/* Return the permissions of the file, or 0 if it does not exist. */
static unsigned mode_of(const char *name)
{
	cleanup_free char *path = file_path(rig.state, "job-1", name);
	struct stat st = {0};

	return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void test_modes(void **state)
{
	mode_t old = umask(0777);

	rig_open("job-1");
	rig_begin("a-0.0", "a/0 ");
	rig_until(mode_of("logs/a-0.0") && mode_of("lines"));
	umask(old);
	assert_int_equal(mode_of("."), 0700);
	assert_int_equal(mode_of(".."), 0700);
	assert_int_equal(mode_of("logs"), 0700);
	assert_int_equal(mode_of("lines"), 0700);
	assert_int_equal(mode_of("logs/a-0.0"), 0600);
	rig_here(rig_do_close, NULL);
}

static sem_t removed;

static void on_removed(void *data, int err)
{
	assert_int_equal(err, 0);
	sem_post(&removed);
}

static void do_remove(void *data)
{
	output_job_remove(rig.output, data, on_removed, NULL);
}

static void test_remove(void **state)
{
	char outside[128], path[256];
	struct log *log, *merged, *other;
	struct log_stat st;
	struct rig_writer w;

	sem_init(&removed, 0, 0);
	snprintf(outside, sizeof(outside), "%s/outside", rig.state);
	mkdir(outside, 0700);
	snprintf(path, sizeof(path), "%s/kept", outside);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	rig_open("job-1");
	rig_writer_begin(&w, "job-1", "a-0.0", "a/0 ");
	rig_write(&w, "read on\n");
	rig_writer_end(&w);
	snprintf(path, sizeof(path), "%s/output/job-1/link", rig.state);
	assert_int_equal(symlink(outside, path), 0);
	rig_end("a-0.0");
	rig_here(rig_do_job_end, NULL);
	log = rig_log("job-1", "a-0.0");
	merged = rig_log("job-1", NULL);
	rig_until(rig_stat(merged).ended);
	rig_here(rig_do_close, NULL);
	rig_until(output_bytes(rig.output) >= 8);

	rig_here(do_remove, (void *)(uintptr_t) "job-1");
	while (sem_wait(&removed) < 0)
		;
	rig_until(output_bytes(rig.output) == 0);
	snprintf(path, sizeof(path), "%s/output/job-1", rig.state);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/kept", outside);
	assert_int_equal(access(path, F_OK), 0);
	/*
	 * A reader that has the log open can continue to read. Nobody else finds the log any more.
	 */
	expect_text(log, "read on\n");
	expect_text(merged, "a/0 read on\n");
	assert_int_equal(output_log_stat(rig.output, "job-1", "a-0.0", LOG_PLAIN, &st), -ENOENT);
	/* A new job with that id does not affect the open logs. */
	rig_open("job-1");
	rig_writer_begin(&w, "job-1", "a-0.0", "a/0 ");
	other = rig_log("job-1", "a-0.0");
	assert_ptr_not_equal(other, log);
	expect_text(other, "");
	log_unref(other);
	rig_writer_end(&w);
	rig_here(rig_do_close, NULL);
	log_unref(log);
	log_unref(merged);
}

/* A removal that a crash interrupted is completed at the next start. */
static void test_remove_crash(void **state)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/output/.removed-17", rig.state);
	assert_int_equal(mkdir(path, 0700), 0);
	rig_down(true);
	rig_up();
	rig_until(access(path, F_OK) < 0);
}

/*
 * How kxfs reads folders to count their contents: whether such a read hangs, how many reads began,
 * and how many ended.
 */
static atomic_bool slow_folders;
static atomic_uint n_begun, n_folders;

ssize_t getdents64(int fd, void *buf, size_t n)
{
	atomic_fetch_add(&n_begun, 1);
	while (atomic_load(&slow_folders))
		rig_sleep(1);
	atomic_fetch_add(&n_folders, 1);
	return syscall(SYS_getdents64, fd, buf, n);
}

/* Output that is printed while a start counts the existing output is counted too. */
static void test_count(void **state)
{
	char path[256];
	struct rig_writer w;
	unsigned before;

	snprintf(path, sizeof(path), "%s/output/old", rig.state);
	assert_int_equal(mkdir(path, 0700), 0);
	rig_down(true);
	atomic_store(&slow_folders, true);
	before = atomic_load(&n_begun);
	rig_up();
	rig_until(atomic_load(&n_begun) > before); /* kxfs has listed the jobs */
	rig_open("job-1");
	rig_writer_begin(&w, "job-1", "a-0.0", "a/0 ");
	rig_write(&w, "printed meanwhile\n");
	rig_until(output_bytes(rig.output) >= 18);
	before = atomic_load(&n_folders);
	atomic_store(&slow_folders, false);
	/* Wait for at least these folders: the rest of "old", and then both jobs again. */
	rig_until(atomic_load(&n_folders) > before + 4);
	for (int i = 0; i < 100; i++) {
		assert_true(output_bytes(rig.output) >= 18);
		rig_sleep(1);
	}
	rig_writer_end(&w);
	rig_here(rig_do_close, NULL);
}

static void put_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/output/%s", rig.state, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void do_begin_anew(void *data)
{
	assert_int_equal(output_log_begin(rig.job, "a-0.0", "a/0 ", true), 0);
}

static void post(void *data)
{
	sem_post(data);
}

/* Wait until the logs of job ID are open. */
static void wait_for_logs(const char *id)
{
	struct log *log = rig_log(id, NULL);
	sem_t arrived;

	sem_init(&arrived, 0, 0);
	log_when_arrived(log, post, &arrived);
	while (sem_wait(&arrived) < 0)
		;
	log_unref(log);
}

/* Let job ID print short lines, whose table is larger than the log. Return its size on disk. */
static uint64_t print_short_lines(const char *id)
{
	static const char *const names[] = {"logs/a-0.0", "lines/a-0.0", "merged", "merged.keys"};
	struct rig_writer w;
	uint64_t bytes = 0;

	atomic_store(&rig.ended, 0);
	rig_open(id);
	rig_writer_begin(&w, id, "a-0.0", "a/0 ");
	wait_for_logs(id);
	for (int64_t i = 1; i <= 1000; i++)
		rig_append_at(&w, i * 1000000, "x\n", 2);
	rig_grown(&w);
	rig_writer_end(&w);
	rig_end("a-0.0");
	rig_here(rig_do_job_end, NULL);
	rig_until(atomic_load(&rig.ended) == 1);
	for (size_t i = 0; i < array_size(names); i++) {
		char path[256];
		struct stat st;

		snprintf(path, sizeof(path), "%s/output/%s/%s", rig.state, id, names[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size > 0);
		bytes += (uint64_t)st.st_size;
	}
	return bytes;
}

/* The count includes all files with output, and a removal subtracts only what was counted. */
static void test_all_counted(void **state)
{
	char path[256];
	uint64_t one, two;

	sem_init(&removed, 0, 0);
	snprintf(path, sizeof(path), "%s/output/job-1", rig.state);
	assert_int_equal(mkdir(path, 0700), 0);
	put_file("job-1/old", "old");
	rig_down(true);
	rig_up();
	rig_until(output_bytes(rig.output) == 3); /* the first count has ended */
	one = 3 + print_short_lines("job-1");
	rig_until(output_bytes(rig.output) == one);
	snprintf(path, sizeof(path), "%s/output/job-1/tasks", rig.state);
	assert_int_equal(mkdir(path, 0700), 0);
	put_file("job-1/tasks/a-0.0", "not output");
	rig_here(rig_do_close, NULL);
	two = print_short_lines("job-2");
	rig_until(output_bytes(rig.output) == one + two);
	rig_here(rig_do_close, NULL);
	rig_here(do_remove, (void *)(uintptr_t) "job-1");
	while (sem_wait(&removed) < 0)
		;
	assert_int_equal(output_bytes(rig.output), two);
	rig_down(true);
	rig_up();
	rig_until(output_bytes(rig.output) == two);
}

/* A program may print before kxfs opens its log. */
static void test_printed_before(void **state)
{
	char path[256], text[1001];

	memset(text, '.', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/output/old", rig.state);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/output/old/logs", rig.state);
	assert_int_equal(mkdir(path, 0700), 0);
	put_file("old/logs/a-0.0", "old\n");
	rig_down(true);
	rig_up();
	rig_until(output_bytes(rig.output) == 4); /* all existing output was counted */
	rig_open("job-1");
	snprintf(path, sizeof(path), "%s/output/job-1/logs", rig.state);
	rig_until(access(path, W_OK) == 0);
	put_file("job-1/logs/a-0.0", text);
	rig_here(do_begin_anew, NULL);
	rig_until(output_bytes(rig.output) >= 1004);
	rig_here(rig_do_close, NULL);
}

static void test_unusable(void **state)
{
	char path[128];
	struct output *output;
	char *text = NULL;

	snprintf(path, sizeof(path), "%s/nothing/there", rig.state);
	assert_int_equal(output_new(rig.loop, path, &rig_events, &output, &text), -ENOENT);
	assert_non_null(strstr(text, "nothing/there/output: No such file"));
	free(text);
}

/* A fast program. The loop must stay responsive, and all output must arrive. */
static void *flood(void *data)
{
	static char block[1 << 16];
	struct rig_writer *w = data;

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = i % 64 == 63 ? '\n' : 'x';
	for (unsigned i = 0; i < 1600; i++) {
		rig_append(w, block, sizeof(block));
		rig_grown(w);
	}
	return NULL;
}

static void nothing(void *data)
{
}

static void test_flood(void **state)
{
	uint64_t slowest = 0, total = 1600ull << 16;
	struct log *merged;
	pthread_t thread;
	struct rig_writer w;

	rig_open("job-1");
	rig_writer_begin(&w, "job-1", "a-0.0", "a/0 ");
	merged = rig_log("job-1", NULL);
	pthread_create(&thread, NULL, flood, &w);
	while (rig_stat(merged).size < total / 64 * 68) {
		uint64_t since = loop_now_ms();

		rig_here(nothing, NULL);
		slowest = max_of(slowest, loop_now_ms() - since);
	}
	pthread_join(thread, NULL);
	rig_writer_end(&w);
	log_unref(merged);
	rig_here(rig_do_close, NULL);
	/* One iteration takes microseconds. The limit allows for a slow machine. */
	assert_true(slowest < 10000);
}

static int setup(void **state)
{
	atomic_store(&rig.ended, 0);
	return rig_setup(state);
}

/*
 * A disk that hangs delays one merged log and nothing else. If a disk access fails, it is retried.
 */
static void test_hanging_disk(void **state)
{
	char path[200];
	struct output_job *job;
	struct log *slow, *other, *merged;
	struct rig_writer w, other_w;
	int hold;

	rig_open("slow");
	rig_writer_begin(&w, "slow", "a-0.0", "a/0 ");
	job = rig.job;
	snprintf(path, sizeof(path), "%s/output/slow/merged", rig.state);
	assert_int_equal(mkfifo(path, 0600), 0); /* no byte can be written before somebody reads */
	slow = rig_log("slow", "a-0.0");
	rig_write(&w, "one\n");
	rig_until(atomic_load(&rig.told) >= 1);
	rig_open("other");
	rig_writer_begin(&other_w, "other", "b-0.0", "b/0 ");
	other = rig_log("other", NULL);
	rig_write(&other_w, "goes on\n");
	rig_until(rig_stat(other).size == 12);
	rig_write(&w, "two\n");
	rig_until(rig_stat(slow).size == 8);
	hold = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(hold >= 0);
	assert_int_equal(unlink(path), 0);
	merged = rig_log("slow", NULL);
	rig_until(rig_stat(merged).size == 16);
	expect_text(merged, "a/0 one\na/0 two\n");
	close(hold);
	rig_writer_end(&w);
	rig_writer_end(&other_w);
	rig_end("b-0.0");
	rig.job = job;
	rig_end("a-0.0");
	log_unref(slow);
	log_unref(other);
	log_unref(merged);
}

int main(void)
{
#define log_test(t) cmocka_unit_test_setup_teardown(t, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		log_test(test_grow),	 log_test(test_finished),	log_test(test_absent),
		log_test(test_modes),	 log_test(test_remove),		log_test(test_remove_crash),
		log_test(test_unusable), log_test(test_flood),		log_test(test_hanging_disk),
		log_test(test_count),	 log_test(test_printed_before), log_test(test_all_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
