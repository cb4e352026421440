/* SPDX-License-Identifier: MIT */
/*
 * The merged log, while threads write logs and another thread reads: real threads, loop and pool.
 * Random writers write logs, and the merged log must be exactly what its definition says: while
 * they write, after they end, and after its index was damaged.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/waiting.h"

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/output/lines.h"
#include "backend/output/merge.h"
#include "backend/output/output.h"
#include "spec/base/mem.h"

#define WRITERS 4
#define JOB	"job"
#define LONGEST 200000 /* a line has at most so many bytes, which are several chunks */

static const char *const keys[WRITERS] = {"a-0.0", "a-1.0", "b-0.0", "a-0.1"};
static const char *const prefixes[WRITERS] = {"a/0 ", "a/1 ", "longer-name/12 ", "A/0 "};

static struct {
	char dir[64];
	struct loop *loop;
	struct output *output;
	struct output_job *job;
	sem_t done; /* posted when a log has ended, and when the output has stopped */
} rig;

/* The helper process of a replica. */
struct writer {
	const char *key;
	char *text; /* everything that was written */
	size_t n;
	unsigned seed;
	int fd, lines_fd;
	struct lines_encoder lines;
	pthread_t thread;
};

static struct writer writers[WRITERS];
static unsigned seed;

#define wait_until(condition)                                                                      \
	do {                                                                                       \
		for (unsigned ms_ = 0; !(condition); ms_++) {                                      \
			if (ms_ > WAIT_S * 1000)                                                   \
				fail_msg("never came: %s", #condition);                            \
			pause_ms(1);                                                               \
		}                                                                                  \
	} while (0)

static size_t below(unsigned *r, size_t n)
{
	return (size_t)rand_r(r) % n;
}

static void pause_ms(unsigned ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000L};

	nanosleep(&t, NULL);
}

static void post(void *data)
{
	sem_post(&rig.done);
}

/* --- calls on the I/O thread --- */

static void do_start(void *data)
{
	output_start(rig.output);
}

static void do_stop(void *data)
{
	output_stop(rig.output, post, NULL);
}

static void do_begin(void *data)
{
	rig.job = output_job_open(rig.output, JOB);
	assert_non_null(rig.job);
	for (size_t i = 0; i < WRITERS; i++)
		assert_int_equal(output_log_begin(rig.job, keys[i], prefixes[i], false), 0);
}

static void do_grown(void *data)
{
	const struct writer *w = data;

	output_log_grown(rig.job, w->key);
}

static void do_end(void *data)
{
	for (size_t i = 0; i < WRITERS; i++)
		output_log_end(rig.job, keys[i], post, NULL);
	output_job_end(rig.job);
}

static void do_close(void *data)
{
	output_job_close(take_ptr(rig.job));
}

/* --- runs of kxfs --- */

static void up(void)
{
	static const struct output_events no_events;
	char *text = NULL;

	loop_new(&rig.loop);
	assert_int_equal(output_new(rig.loop, rig.dir, &no_events, &rig.output, &text), 0);
	assert_int_equal(loop_start(rig.loop), 0);
	run_on(rig.loop, do_start, NULL);
}

/* If CLEAN, free everything as at an unmount. Otherwise, do it as similarly to a crash as possible. */
static void down(bool clean)
{
	if (clean) {
		run_on(rig.loop, do_stop, NULL);
		sem_wait_or_fail(&rig.done);
	}
	loop_stop(rig.loop);
	output_free(rig.output);
	loop_free(rig.loop);
}

static int setup(void **state)
{
	diag_setup(DIAG_DEBUG, false);
	sem_init(&rig.done, 0, 0);
	strcpy(rig.dir, "/tmp/kxfs-threads-XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	assert_int_equal(getrandom(&seed, sizeof(seed), 0), sizeof(seed));
	print_message("seed %u\n", seed);
	up();
	return 0;
}

static int teardown(void **state)
{
	down(true);
	for (size_t i = 0; i < WRITERS; i++)
		free(take_ptr(writers[i].text));
	sem_destroy(&rig.done);
	return scratch_remove(rig.dir);
}

static void end_all(void)
{
	run_on(rig.loop, do_end, NULL);
	for (size_t i = 0; i < WRITERS; i++)
		sem_wait_or_fail(&rig.done);
	run_on(rig.loop, do_close, NULL);
}

/* --- writers --- */

/* Return the length of a random line in BUF. */
static size_t random_line(struct writer *w, char buf[LONGEST + 2])
{
	static const char alphabet[] = "abcdefgh ./\0\r";
	unsigned *r = &w->seed;
	size_t n = below(r, below(r, 50) ? 60 : LONGEST);

	for (size_t i = 0; i < n; i++)
		buf[i] = alphabet[below(r, below(r, 8) ? 11 : sizeof(alphabet) - 1)];
	if (below(r, 6) == 0)
		buf[n++] = '\r';
	buf[n++] = '\n';
	return n;
}

/* Append N bytes to the table, and then to the log. */
static void append(struct writer *w, const char *bytes, size_t n)
{
	while (n > 0) {
		uint8_t table[LINES_ADDED_MAX];
		size_t part = min_of(n, (size_t)LINES_SPAN);
		size_t len = lines_add(&w->lines, loop_time_ns(), bytes, part, table);

		assert_int_equal(file_write_all(w->lines_fd, (const char *)table, len), 0);
		assert_int_equal(file_write_all(w->fd, bytes, part), 0);
		bytes += part;
		n -= part;
	}
}

static void *write_log(void *data)
{
	struct writer *w = data;
	unsigned *r = &w->seed;
	FILE *text = text_stream(&w->text, &w->n);
	cleanup_free char *buf = malloc(LONGEST + 2);

	for (size_t lines = 100 + below(r, 100); lines > 0; lines--) {
		size_t n = random_line(w, buf);

		if (lines == 1 && below(r, 2))
			n--; /* the last line has no newline */
		fwrite(buf, 1, n, text);
		for (size_t at = 0; at < n;) {
			size_t some = below(r, 10) ? n - at : 1 + below(r, n - at);

			append(w, buf + at, some);
			run_on(rig.loop, do_grown, w);
			at += some;
			if (below(r, 30) == 0)
				pause_ms((unsigned)below(r, 30));
		}
	}
	text_stream_close(text);
	return NULL;
}

static void begin_writer(size_t i)
{
	const int flags = O_RDWR | O_APPEND | O_CLOEXEC;
	cleanup_free char *log = text_print("%s/output/" JOB "/logs/%s", rig.dir, keys[i]);
	cleanup_free char *lines = text_print("%s/output/" JOB "/lines/%s", rig.dir, keys[i]);
	struct writer *w = &writers[i];

	*w = (struct writer){.key = keys[i], .seed = seed + (unsigned)i};
	wait_until((w->fd = open(log, flags)) >= 0);
	wait_until((w->lines_fd = open(lines, flags | O_CREAT, 0600)) >= 0);
	pthread_create(&w->thread, NULL, write_log, w);
}

/* --- readers --- */

/* A reader that reads the merged log while it grows. */
struct watcher {
	struct log *log;
	char *text;
	size_t n;
};

static struct log_stat stat_of(struct log *log)
{
	struct log_stat st;

	assert_int_equal(log_stat(log, &st), 0);
	return st;
}

/* Read what is new, and some of the earlier bytes again. */
static void watch(struct watcher *w)
{
	const size_t size = stat_of(w->log).size;
	char buf[5000];

	assert_true(size >= w->n);
	w->text = realloc(w->text, size + 1);
	while (w->n < size) {
		ssize_t n = log_read(w->log, w->text + w->n,
				     min_of(1 + below(&seed, 5000), size - w->n), w->n);

		assert_true(n > 0);
		w->n += (size_t)n;
	}
	for (unsigned i = 0; w->n > 0 && i < 5; i++) {
		size_t off = below(&seed, w->n), room = 1 + below(&seed, sizeof(buf));
		ssize_t n = log_read(w->log, buf, room, off);

		assert_true(n >= (ssize_t)min_of(room, w->n - off));
		assert_memory_equal(buf, w->text + off, min_of((size_t)n, w->n - off));
	}
}

static struct watcher watcher_new(void)
{
	struct watcher w = {0};

	assert_int_equal(output_log(rig.output, JOB, NULL, LOG_PLAIN, &w.log), 0);
	return w;
}

/* Read LOG until its end. */
static void watch_to_the_end(struct watcher *w)
{
	wait_until(stat_of(w->log).ended);
	watch(w);
	log_unref(take_ptr(w->log));
}

/*
 * Return the merged log, rendered slowly, by the definition. Only the order of the chunks is that
 * of the index. Assert that they have all logs from the first to the last byte.
 */
static char *expected_text(size_t *ret_n)
{
	cleanup_free char *path = text_print("%s/output/" JOB "/merged", rig.dir), *ret = NULL;
	size_t done[WRITERS] = {0};
	uint8_t bytes[MERGE_RECORD];
	struct merge_record r = {0};
	FILE *f = fopen(path, "re"), *out = text_stream(&ret, ret_n);
	size_t last_log = WRITERS;
	char last = '\n';

	assert_non_null(f);
	assert_int_equal(fread(bytes, 1, MERGE_HEAD, f), MERGE_HEAD);
	assert_memory_equal(bytes, merge_head, MERGE_HEAD);
	for (uint64_t i = 0; fread(bytes, 1, sizeof(bytes), f) == sizeof(bytes); i++) {
		const struct writer *w;

		assert_int_equal(merge_decode(bytes, i, &r), 0);
		w = &writers[r.log];
		assert_int_equal(r.offset, done[r.log]);
		assert_true(r.length <= w->n - r.offset);
		/* A line of another log never starts in the middle of a line. */
		if (last != '\n' && (r.log != last_log || r.length == 0))
			fputc(last = '\n', out);
		for (size_t at = r.offset; at < r.offset + r.length; at++) {
			bool other = at == r.offset && r.log != last_log;

			if (other || at == 0 || w->text[at - 1] == '\n' ||
			    (w->text[at - 1] == '\r' && w->text[at] != '\n'))
				fputs(prefixes[r.log], out);
			fputc(last = w->text[at], out);
		}
		done[r.log] += r.length;
		last_log = r.log;
	}
	fclose(f);
	text_stream_close(out);
	for (size_t i = 0; i < WRITERS; i++)
		assert_int_equal(done[i], writers[i].n);
	assert_int_equal(r.end, *ret_n);
	return take_ptr(ret);
}

/* Assert that everybody who opens the merged log now gets what it must be, like SEEN. */
static void expect_merged(const struct watcher *seen)
{
	cleanup_free char *expected = NULL;
	struct watcher all = watcher_new();
	size_t n;

	watch_to_the_end(&all);
	expected = expected_text(&n);
	assert_int_equal(all.n, n);
	assert_memory_equal(all.text, expected, n);
	if (seen) {
		assert_int_equal(seen->n, n);
		assert_memory_equal(seen->text, expected, n);
	}
	free(all.text);
}

static void write_all(void)
{
	struct watcher w;

	run_on(rig.loop, do_begin, NULL);
	w = watcher_new();
	for (size_t i = 0; i < WRITERS; i++)
		begin_writer(i);
	for (unsigned i = 0; i < 200; i++) {
		watch(&w);
		pause_ms(1);
	}
	for (size_t i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		close(writers[i].fd);
		close(writers[i].lines_fd);
	}
	end_all();
	watch_to_the_end(&w);
	expect_merged(&w);
	down(true);
	up();
	expect_merged(&w);
	free(w.text);
}

static void test_growing(void **state)
{
	write_all();
}

/* Truncate FILE of the job at one of the first MOST bytes. Sometimes append garbage or zeros. */
static void tear(const char *file, size_t most)
{
	cleanup_free char *path = text_print("%s/output/" JOB "/%s", rig.dir, file);
	cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	off_t at;

	assert_int_equal(fstat(fd, &st), 0);
	at = (off_t)below(&seed, min_of((size_t)st.st_size, most) + 1);
	assert_int_equal(ftruncate(fd, at), 0);
	if (below(&seed, 3) == 0)
		assert_int_equal(ftruncate(fd, at + (off_t)below(&seed, 5000)), 0);
	if (below(&seed, 3) == 0)
		assert_int_equal(pwrite(fd, "rubbish that nobody wrote", 25, at), 25);
}

/*
 * However the index is damaged, its complete records are rendered as before, and the rest is
 * rebuilt. No byte of the logs is missing or doubled.
 */
static void test_torn(void **state)
{
	write_all();
	for (unsigned round = 0; round < 40; round++) {
		down(round % 2);
		if (round % 10 == 9)
			tear("merged.keys", SIZE_MAX);
		else
			tear("merged", round % 10 == 8 ? MERGE_HEAD - 1 : SIZE_MAX);
		up();
		run_on(rig.loop, do_begin, NULL);
		end_all();
		expect_merged(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_growing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
