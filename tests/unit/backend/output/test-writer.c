/* SPDX-License-Identifier: MIT */
/*
 * Writers of fetched logs: how much data may wait for a slow disk, per log and for all logs
 * together, and what writers know of the end of a log.
 */
#include "tests/unit/backend/output/output_rig.h"

#include <signal.h>
#include <sys/resource.h>

#define MIB   (1u << 20)
#define CHUNK (64u << 10)

static char chunk[CHUNK];

/* What the last callbacks of the writer have passed. */
static struct {
	unsigned opened, written;
	int err;
	struct spec_logline_known end; /* without LINES and BYTES */
	bool same;		       /* the bytes of END are those of CHUNK */
} seen;

static void on_opened(void *data, int err)
{
	assert_int_equal(err, 0);
	seen.opened++;
}

static void on_written(void *data, int err)
{
	seen.err = err;
	seen.written++;
}

static void on_known(void *data, int err, struct spec_logline_known *k)
{
	seen.err = err;
	seen.end = *k;
	seen.same = !err && memcmp(k->bytes, chunk, (size_t)(k->size - k->from)) == 0;
}

static struct log_writer *new_writer(const char *key, void (*written)(void *data, int err))
{
	const struct log_writer_events events = {.opened = on_opened,
						 .written = written,
						 .known = on_known};
	struct log_writer *w = log_writer_new(rig.job, key, &events);

	assert_non_null(w);
	seen.opened = 0;
	fake_run();
	assert_int_equal(seen.opened, 1);
	return w;
}

/* Return a writer of a new log. */
static struct log_writer *begin(const char *key)
{
	rig_begin(key, "a/0 ");
	return new_writer(key, on_written);
}

static void add(struct log_writer *w)
{
	log_writer_add(w, -1, chunk, CHUNK);
	log_writer_flush(w);
}

/*
 * While the disk hangs, four logs can add as much as one log may, which uses up the total. The
 * others can add only a little.
 */
static void test_room(void **state)
{
	static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g"};
	struct log_writer *writers[array_size(keys)];
	size_t added[array_size(keys)] = {0};

	for (size_t i = 0; i < array_size(keys); i++)
		writers[i] = begin(keys[i]);
	for (size_t i = 0; i < array_size(keys); i++) {
		const size_t most = i < 4 ? 32 * MIB : 256 << 10;

		for (; log_writer_has_room(writers[i], CHUNK); added[i] += CHUNK)
			add(writers[i]);
		assert_in_range(added[i], most - CHUNK, most);
	}
	fake_run();
	for (size_t i = 0; i < array_size(keys); i++) {
		struct log_stat st;

		assert_int_equal(output_log_stat(rig.output, "job", keys[i], LOG_PLAIN, &st), 0);
		assert_int_equal(st.size, added[i]);
		assert_true(log_writer_has_room(writers[i], 32 * MIB));
		log_writer_close(writers[i]);
	}
}

static struct log_writer *closing;

static void on_written_once(void *data, int err)
{
	assert_int_equal(err, 0);
	add(closing);
	log_writer_close(closing);
}

/* Flushed data is written, even if its writer is closed before that. */
static void test_closed_at_once(void **state)
{
	rig_begin("a", "a/0 ");
	closing = new_writer("a", on_written_once);
	add(closing);
	fake_run();
	assert_int_equal(rig_size("job/logs/a"), 2 * CHUNK);
}

/* A writer that opens a log again knows of its gaps, even if they were not recorded elsewhere. */
static void test_gaps(void **state)
{
	struct log_writer *w = begin("a");

	assert_int_equal(log_writer_gaps(w), 0);
	add(w);
	log_writer_lost(w);
	add(w);
	log_writer_lost(w); /* kxfs is killed before any bytes follow this gap */
	fake_run();
	log_writer_close(w);
	for (int i = 0; i < 2; i++) {
		w = new_writer("a", on_written);
		assert_int_equal(log_writer_gaps(w), 1);
		log_writer_close(w);
	}
}

/*
 * If somebody truncated a log, its end counts as unknown. Bytes that are gone are not compared with
 * anything.
 */
static void test_cut(void **state)
{
	cleanup_free char *path = rig_path("job/logs/a");
	struct log_writer *w;

	memset(chunk, 'x', sizeof(chunk));
	w = begin("a");
	add(w);
	fake_run();
	for (size_t least = CHUNK - 1; least <= CHUNK; least++) {
		log_writer_known(w, least);
		fake_run();
		assert_int_equal(seen.err, 0);
		assert_true(seen.same && seen.end.size == CHUNK);
		assert_int_equal(seen.end.from, CHUNK - least);
	}
	assert_int_equal(truncate(path, CHUNK - 1), 0);
	log_writer_known(w, CHUNK);
	fake_run();
	assert_int_equal(seen.err, -EIO);
	log_writer_close(w);
}

/* A write that fails adds nothing to the count of bytes on disk. */
static void test_failed_write(void **state)
{
	const struct rlimit none = {0, RLIM_INFINITY}, any = {RLIM_INFINITY, RLIM_INFINITY};

	signal(SIGXFSZ, SIG_IGN);
	rig_begin("a", "a/0 ");
	for (int i = 0; i < 2; i++) {
		struct log_writer *w = new_writer("a", on_written);

		seen.written = 0;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
		add(w);
		fake_run();
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &any), 0);
		assert_int_equal(seen.written, 1);
		assert_int_equal(seen.err, -EFBIG);
		assert_int_equal(output_bytes(rig.output), 0);
		log_writer_close(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(test_room), rig_test(test_closed_at_once), rig_test(test_gaps),
		rig_test(test_cut),  rig_test(test_failed_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
