/* SPDX-License-Identifier: MIT */
/*
 * Writers of fetched logs: how much data may wait for a slow disk, per log and for all logs
 * together, and what writers know of the end of a log. While the test blocks the I/O thread,
 * nothing counts as written, so the disk seems to hang.
 */
#include "tests/unit/backend/output/output_rig.h"

#include <signal.h>
#include <sys/resource.h>

#include "backend/output/writer.h"
#include "spec/base/mem.h"

#define MIB	  (1u << 20)
#define CHUNK	  (64u << 10)
#define N_WRITERS 7

static struct {
	const char *key;
	struct log_writer *w;
	atomic_bool open, written;
	size_t added;
} logs[N_WRITERS] = {{.key = "a"}, {.key = "b"}, {.key = "c"}, {.key = "d"},
		     {.key = "e"}, {.key = "f"}, {.key = "g"}};

static char chunk[CHUNK];

static void on_opened(void *data, int err)
{
	size_t i = *(const size_t *)data;

	assert_int_equal(err, 0);
	atomic_store(&logs[i].open, true);
}

static void on_written(void *data, int err)
{
	assert_int_equal(err, 0);
	atomic_store(&logs[*(const size_t *)data].written, true);
}

static struct {
	atomic_bool done;
	int err;
	uint64_t size;
	size_t n; /* number of bytes that match CHUNK */
} known;

static void on_known(void *data, int err, struct spec_logline_known *k)
{
	(void)data;
	known.err = err;
	known.size = k->size;
	known.n = err == 0 && k->size - k->from <= CHUNK &&
				  memcmp(k->bytes, chunk, (size_t)(k->size - k->from)) == 0
			  ? (size_t)(k->size - k->from)
			  : 0;
	atomic_store(&known.done, true);
}

static void do_new(void *data)
{
	const struct log_writer_events events = {.opened = on_opened,
						 .written = on_written,
						 .known = on_known,
						 .data = data};
	size_t i = *(const size_t *)data;

	logs[i].w = log_writer_new(rig.job, logs[i].key, &events);
}

static void fill(size_t i)
{
	while (log_writer_has_room(logs[i].w, CHUNK)) {
		log_writer_add(logs[i].w, -1, chunk, CHUNK);
		log_writer_flush(logs[i].w);
		logs[i].added += CHUNK;
	}
}

static void do_fill(void *data)
{
	for (size_t i = 0; i < N_WRITERS; i++)
		fill(i);
}

static void do_close(void *data)
{
	for (size_t i = 0; i < N_WRITERS; i++) {
		assert_true(log_writer_has_room(logs[i].w, 32 * MIB));
		log_writer_close(logs[i].w);
	}
}

static void test_room(void **state)
{
	static size_t numbers[N_WRITERS];

	rig_open("job");
	for (size_t i = 0; i < N_WRITERS; i++) {
		numbers[i] = i;
		rig_begin(logs[i].key, "a/0 ");
		rig_here(do_new, &numbers[i]);
		assert_non_null(logs[i].w);
		rig_until(atomic_load(&logs[i].open));
	}
	rig_here(do_fill, NULL);
	/*
	 * Four logs have as much as one log may have, which uses up the total. The others can add
	 * only a little.
	 */
	for (size_t i = 0; i < N_WRITERS; i++)
		assert_in_range(logs[i].added, (i < 4 ? 32 * MIB : 256 << 10) - CHUNK,
				i < 4 ? 32 * MIB : 256 << 10);
	for (size_t i = 0; i < N_WRITERS; i++) {
		struct log *log = rig_log("job", logs[i].key);

		rig_until(atomic_load(&logs[i].written));
		assert_int_equal(rig_stat(log).size, logs[i].added);
		log_unref(log);
		rig_end(logs[i].key);
	}
	rig_here(do_close, NULL);
}

static void do_add(void *data)
{
	log_writer_add(logs[0].w, -1, chunk, CHUNK);
	log_writer_flush(logs[0].w);
}

static void on_written_once(void *data, int err)
{
	assert_int_equal(err, 0);
	do_add(data);
	log_writer_close(logs[0].w);
}

static void do_new_closing(void *data)
{
	const struct log_writer_events events = {.opened = on_opened,
						 .written = on_written_once,
						 .data = data};

	logs[0].w = log_writer_new(rig.job, logs[0].key, &events);
}

/* Flushed data is written, even if its writer is closed before that. */
static void test_closed_at_once(void **state)
{
	static size_t number;
	struct log *log;

	rig_open("job");
	rig_begin(logs[0].key, "a/0 ");
	atomic_store(&logs[0].open, false);
	rig_here(do_new_closing, &number);
	rig_until(atomic_load(&logs[0].open));
	rig_here(do_add, NULL);
	log = rig_log("job", logs[0].key);
	rig_until(rig_stat(log).size == 2 * CHUNK);
	log_unref(log);
	rig_end(logs[0].key);
}

static void do_lose(void *data)
{
	(void)data;
	/*
	 * Bytes follow the first gap. After the second gap kxfs is killed, so no bytes follow it.
	 */
	log_writer_add(logs[0].w, -1, chunk, CHUNK);
	log_writer_lost(logs[0].w);
	log_writer_add(logs[0].w, -1, chunk, CHUNK);
	log_writer_flush(logs[0].w);
	log_writer_lost(logs[0].w);
}

static void do_close_one(void *data)
{
	(void)data;
	log_writer_close(logs[0].w);
}

static void open_one(size_t *number)
{
	atomic_store(&logs[0].open, false);
	rig_here(do_new, number);
	rig_until(atomic_load(&logs[0].open));
}

/* A writer that opens a log again knows of its gaps, even if they were not recorded elsewhere. */
static void test_gaps(void **state)
{
	static size_t number;

	rig_open("job");
	rig_begin(logs[0].key, "a/0 ");
	open_one(&number);
	assert_int_equal(log_writer_gaps(logs[0].w), 0);
	atomic_store(&logs[0].written, false);
	rig_here(do_lose, NULL);
	rig_until(atomic_load(&logs[0].written));
	rig_here(do_close_one, NULL);
	for (int i = 0; i < 2; i++) {
		open_one(&number);
		assert_int_equal(log_writer_gaps(logs[0].w), 1);
		rig_here(do_close_one, NULL);
	}
	rig_end(logs[0].key);
}

static void do_known(void *data)
{
	log_writer_known(logs[0].w, *(const size_t *)data);
}

static void ask_known(size_t least)
{
	atomic_store(&known.done, false);
	rig_here(do_known, &least);
	rig_until(atomic_load(&known.done));
}

/*
 * If somebody truncated a log, its end counts as unknown. Bytes that are gone are not compared with
 * anything.
 */
static void test_cut(void **state)
{
	static size_t number;
	cleanup_free char *path = text_print("%s/output/job/logs/%s", rig.state, logs[0].key);

	memset(chunk, 'x', sizeof(chunk));
	rig_open("job");
	rig_begin(logs[0].key, "a/0 ");
	open_one(&number);
	atomic_store(&logs[0].written, false);
	rig_here(do_add, NULL);
	rig_until(atomic_load(&logs[0].written));
	for (size_t least = CHUNK - 1; least <= CHUNK; least++) {
		ask_known(least);
		assert_int_equal(known.err, 0);
		assert_int_equal(known.size, CHUNK);
		assert_int_equal(known.n, least);
	}
	assert_int_equal(truncate(path, CHUNK - 1), 0);
	ask_known(CHUNK);
	assert_int_equal(known.err, -EIO);
	rig_here(do_close_one, NULL);
	rig_end(logs[0].key);
}

static void on_failed(void *data, int err)
{
	assert_int_equal(err, -EFBIG);
	atomic_store(&logs[*(const size_t *)data].written, true);
}

static void do_new_failing(void *data)
{
	const struct log_writer_events events = {.opened = on_opened,
						 .written = on_failed,
						 .data = data};

	logs[0].w = log_writer_new(rig.job, logs[0].key, &events);
}

/* A write that fails adds nothing to the count of bytes on disk. */
static void test_failed_write(void **state)
{
	const struct rlimit none = {0, RLIM_INFINITY}, any = {RLIM_INFINITY, RLIM_INFINITY};
	static size_t number;

	signal(SIGXFSZ, SIG_IGN);
	rig_open("job");
	rig_begin(logs[0].key, "a/0 ");
	for (int i = 0; i < 2; i++) {
		atomic_store(&logs[0].open, false);
		rig_here(do_new_failing, &number);
		rig_until(atomic_load(&logs[0].open));
		atomic_store(&logs[0].written, false);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
		rig_here(do_add, NULL);
		rig_until(atomic_load(&logs[0].written));
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &any), 0);
		assert_int_equal(output_bytes(rig.output), 0);
		rig_here(do_close_one, NULL);
	}
	rig_end(logs[0].key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_room, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_closed_at_once, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_gaps, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_cut, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_failed_write, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
