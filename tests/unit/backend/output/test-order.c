/* SPDX-License-Identifier: MIT */
/* The order of lines in the merged log. The test counts the clock's ticks. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/output/order.h"
#include "tests/unit/unit.h"

#define N 4

static struct {
	struct order *o;
	struct order_source *s[N];
	uint64_t at[N]; /* where the next chunk starts */
	char got[256];
} rig;

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	rig.o = order_new();
	for (size_t i = 0; i < N; i++)
		rig.s[i] = order_add(rig.o, &rig.at[i]);
	return 0;
}

static int teardown(void **state)
{
	order_free(rig.o);
	return 0;
}

static void open_sources(size_t n)
{
	for (size_t i = 0; i < n; i++)
		order_open(rig.s[i]);
}

static void feed_long(size_t i, int64_t ns, uint32_t length)
{
	struct chunk p = {
		.from = rig.at[i], .ns = ns, .length = length, .flags = CHUNK_ENDS, .lines = 1};

	order_feed(rig.s[i], &p);
	rig.at[i] += length;
}

/* Feed the chunks in TEXT, with "SOURCE:TIME " for each. */
static void feed(const char *text)
{
	long long ns;
	size_t i;
	int n;

	for (; sscanf(text, "%zu:%lld %n", &i, &ns, &n) == 2; text += n)
		feed_long(i, ns, 10);
}

/* Assert that the chunks that are released now are TEXT. */
static void expect(const char *text)
{
	struct order_source *s;
	struct chunk p;
	size_t n = 0;

	rig.got[0] = '\0';
	while (order_next(rig.o, &s, &p))
		n += (size_t)snprintf(rig.got + n, sizeof(rig.got) - n, "%td:%lld ",
				      (uint64_t *)order_data(s) - rig.at, (long long)p.ns);
	assert_string_equal(rig.got, text);
}

static void tick(unsigned n)
{
	while (n-- > 0)
		order_tick(rig.o);
}

static void test_by_time(void **state)
{
	open_sources(2);
	assert_false(order_waits(rig.o));
	feed("0:1 0:3 0:5");
	expect("");
	feed("1:2 1:4 1:6");
	/* The first source may still deliver a chunk before 6. */
	expect("0:1 1:2 0:3 1:4 0:5 ");
	assert_true(order_waits(rig.o) && order_is_empty(rig.s[0]));
	tick(ORDER_WAIT_TICKS - 1);
	expect("");
	tick(1);
	expect("1:6 ");
	assert_false(order_waits(rig.o));
}

/*
 * Of chunks with the same time, the first to arrive is released first. Each source gets a turn
 * before any source gets a second one.
 */
static void test_equal_times(void **state)
{
	open_sources(3);
	feed("0:5 0:6 1:5 1:6 2:5 2:6");
	expect("0:5 1:5 2:5 0:6 ");
}

/* A closed source is not waited for. */
static void test_closed(void **state)
{
	open_sources(3);
	feed("0:2 1:1");
	order_close(rig.s[2]);
	expect("1:1 ");
	order_close(rig.s[1]);
	expect("0:2 ");
	/* The remaining chunks of a closed source are released too. */
	feed("1:4");
	expect("");
	feed("0:9");
	expect("1:4 0:9 ");
}

/* A chunk that has waited long enough is released, with all chunks before it, and no others. */
static void test_late(void **state)
{
	open_sources(3);
	feed("1:9");
	tick(2);
	feed("0:3 0:10");
	tick(ORDER_WAIT_TICKS - 2);
	expect("0:3 1:9 ");
	tick(2);
	expect("0:10 ");
	feed("2:5");
	tick(ORDER_WAIT_TICKS);
	expect("2:5 ");
}

static void test_expected(void **state)
{
	open_sources(2);
	order_expect(rig.s[1], true);
	feed("0:20");
	tick(3 * ORDER_WAIT_TICKS);
	expect("");
	feed("1:10 1:30");
	expect("");
	order_expect(rig.s[1], false);
	expect("1:10 0:20 ");
	tick(ORDER_WAIT_TICKS);
	expect("1:30 ");
	/* An expected chunk is waited for only for a limited time. */
	order_expect(rig.s[1], true);
	feed("0:40");
	tick(ORDER_EXPECT_TICKS - 1);
	expect("");
	tick(1);
	expect("0:40 ");
	/* A source that is closed is no longer expected to deliver a chunk. */
	order_expect(rig.s[1], true);
	feed("0:50");
	order_close(rig.s[1]);
	expect("0:50 ");
}

/*
 * A source that is still being read from disk is waited for as long as that takes, except at the
 * end (order_drain).
 */
static void test_read(void **state)
{
	open_sources(2);
	order_read(rig.s[1], true);
	feed("0:20");
	tick(10 * ORDER_EXPECT_TICKS);
	expect("");
	feed("1:10");
	order_read(rig.s[1], false);
	expect("1:10 0:20 ");
	order_read(rig.s[1], true);
	feed("0:30");
	expect("");
	order_drain(rig.o);
	expect("0:30 ");
}

static void test_hurry(void **state)
{
	open_sources(2);
	feed("0:1");
	order_flush_early(rig.s[0], 15);
	expect("");
	tick(1);
	expect("0:1 ");
	feed("0:2 0:3"); /* 2 starts before byte 15, 3 at byte 20 */
	order_flush_early(rig.s[0], 20);
	tick(1);
	expect("0:2 ");
	tick(ORDER_WAIT_TICKS - 1);
	expect("0:3 ");
}

/* Chunks without times do not wait. A source with many chunks does not block others. */
static void test_untimed(void **state)
{
	open_sources(3);
	for (unsigned i = 0; i < 2; i++) {
		feed_long(0, CHUNK_UNTIMED, CHUNK_MAX);
		feed_long(1, CHUNK_UNTIMED, CHUNK_MAX);
	}
	order_expect(rig.s[2], true);
	expect("0:-9223372036854775808 1:-9223372036854775808 "
	       "0:-9223372036854775808 1:-9223372036854775808 ");
}

/*
 * Chunks with the same time are joined. If a source is far behind, chunks with almost the same time
 * are joined too. No chunk is lost.
 */
static void test_behind(void **state)
{
	uint64_t fed = 0, got = 0;
	struct order_source *s;
	struct chunk p;
	size_t n = 0;

	open_sources(1);
	while (!order_is_full(rig.s[0])) {
		feed_long(0, (int64_t)fed, 100);
		fed += 100;
	}
	while (order_next(rig.o, &s, &p)) {
		assert_int_equal(p.from, got);
		got += p.length;
		n++;
	}
	assert_int_equal(got, fed);
	assert_true(n < fed / 100 / 2);
	assert_true(order_is_empty(rig.s[0]));
}

static int64_t last_ns;
static size_t n_bytes;

/* Take all chunks that are released now. Their times must increase. */
static void take(void)
{
	struct order_source *s;
	struct chunk p;

	while (order_next(rig.o, &s, &p)) {
		assert_true(p.ns > last_ns);
		last_ns = p.ns;
		n_bytes += p.length;
	}
}

/*
 * While all sources have waiting chunks, chunks are released in the order of their times, in
 * whatever order they arrive.
 */
static void test_any_order(void **state)
{
	enum { CHUNKS = 20000 };
	int64_t next[N] = {0};
	unsigned seed = 1;

	open_sources(N);
	for (unsigned i = 0; i < CHUNKS; i++) {
		size_t k = (size_t)rand_r(&seed) % N;

		next[k] += 10 + rand_r(&seed) % 1000 * 10;
		feed_long(k, next[k] + (int64_t)k, 10); /* no two have the same time */
		take();
	}
	order_drain(rig.o);
	take();
	assert_int_equal(n_bytes, 10 * CHUNKS);
}

int main(void)
{
#define order_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		order_test(test_by_time),   order_test(test_equal_times), order_test(test_closed),
		order_test(test_late),	    order_test(test_expected),	  order_test(test_read),
		order_test(test_hurry),	    order_test(test_untimed),	  order_test(test_behind),
		order_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
