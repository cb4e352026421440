/* SPDX-License-Identifier: MIT */
/*
 * The format of the index of the merged log: how bytes become chunks, chunks become records, and
 * how records are rendered. The rendering is compared with a slow and simple one. This prints a
 * seed; KXFS_SEED=N repeats it.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "backend/output/merge.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

static unsigned seed;

static size_t below(size_t n)
{
	return (size_t)rand_r(&seed) % n;
}

static struct chunks cut;

static int teardown(void **state)
{
	chunks_clear(&cut);
	return 0;
}

/* --- random records --- */

/* A stamp_fn. */
static void on_stamp(void *data, uint64_t offset, char ret[STAMP])
{
	(void)snprintf(ret, STAMP, "%27llu", (unsigned long long)offset);
	ret[STAMP - 1] = ' ';
}

/* Render slowly, byte by byte, exactly by the definition. */
static char *render_slowly(const struct merge_record *r, const struct merge_style *style,
			   const char *buf, size_t *ret_n)
{
	char *ret = NULL;
	FILE *f = text_stream(&ret, ret_n);

	if (r->flags & MERGE_NEWLINE)
		fputc('\n', f);
	for (size_t i = 0; i < r->length; i++) {
		bool line = i == 0 ? r->flags & MERGE_LINE : buf[i - 1] == '\n';
		bool start = i == 0 ? r->flags & MERGE_START
				    : line || (buf[i - 1] == '\r' && buf[i] != '\n');
		char stamp[STAMP];

		if (line && style->stamp) {
			style->stamp(NULL, r->offset + i, stamp);
			fwrite(stamp, 1, STAMP, f);
		}
		if (start)
			fputs(style->prefix, f);
		fputc(buf[i], f);
	}
	text_stream_close(f);
	return ret;
}

/*
 * Assert that the rendering of R is the slow one, from any start offset, and never longer than the
 * buffer. If bytes of the log are missing, it is a part of that. Return its length.
 */
static size_t expect_rendered(const struct merge_record *r, const struct merge_style *style,
			      const char *buf)
{
	size_t n;
	cleanup_free char *whole = render_slowly(r, style, buf, &n);
	cleanup_free char *out = malloc(n + 10);

	for (unsigned k = 0; k < 10; k++) {
		size_t skip = k ? below(n + 1) : 0;
		size_t room = k ? below(n + 10) : n, got;

		memset(out, '?', n + 10);
		got = merge_render(r, n, style, buf, r->length, skip, out, room);
		assert_int_equal(got, min_of(room, n - skip));
		assert_memory_equal(out, whole + skip, got);
		for (size_t i = got; i < n + 10; i++)
			assert_int_equal(out[i], '?');
	}
	for (size_t have = below(2); have < r->length; have += 1 + below(r->length)) {
		size_t got = merge_render(r, n, style, buf, have, 0, out, n);

		assert_in_range(got, have, n);
		assert_memory_equal(out, whole, got);
	}
	return n;
}

/* Feed the N bytes at BUF in parts of random size, and return them as one chunk. */
static struct chunk cut_to_one(const char *buf, size_t n)
{
	struct chunk p;
	struct cutter c;

	chunks_clear(&cut);
	cutter_begin(&c, 7, false, 0);
	for (size_t at = 0; at < n;) {
		size_t some = below(3) ? n - at : 1 + below(n - at);

		cutter_add(&c, 0, buf + at, some, &cut);
		if (below(2))
			cutter_pause(&c, &cut);
		at += some;
	}
	cutter_end(&c, &cut);
	p = cut.v[0];
	for (size_t i = 1; i < cut.n; i++)
		assert_true(chunk_join(&p, &cut.v[i]));
	assert_int_equal(p.from, 7);
	assert_int_equal(p.length, n);
	return p;
}

/*
 * Return N random bytes, in lines of about EVERY bytes. Each line ends in one of the ways that ENDS
 * lists.
 */
static char *random_lines(size_t n, const char *ends, size_t every)
{
	char *buf = malloc(n);

	for (size_t i = 0; i < n; i++)
		buf[i] = below(every) ? "ab"[below(2)] : ends[below(strlen(ends))];
	return buf;
}

static void test_render(void **state)
{
	static const char *const ends[] = {"\n", "\n\r", "\n\n\n\n\n\n\n\n\r", "\r"};
	static const char *const prefixes[] = {"", "t/0 ", "worker-with16/0 ",
					       "a-longer-trainer/17 "};
	static const size_t sizes[] = {40, 40, 40, 500, 5000, MERGE_LENGTH_MAX};
	const char *given = getenv("KXFS_SEED");

	if (given)
		seed = (unsigned)strtoul(given, NULL, 10);
	else
		assert_int_equal(getrandom(&seed, sizeof(seed), 0), sizeof(seed));
	print_message("KXFS_SEED=%u\n", seed);
	for (unsigned round = 0; round < 3000; round++) {
		size_t n = 1 + below(round % 10 ? 40 : sizes[below(array_size(sizes))]), plain;
		const char *prefix = prefixes[below(array_size(prefixes))];
		cleanup_free char *buf = random_lines(n, ends[below(array_size(ends))],
						      1 + below(below(2) ? 3 : 200));
		struct merge_record last = {.end = below(1000), .log = (uint32_t)below(2)}, r;
		struct chunk p = cut_to_one(buf, n);

		last.flags = (uint32_t)below(3) * MERGE_ENDS; /* no end, an end, or a '\r' */
		if (below(5) == 0)
			last = merge_start;
		r = merge_next(&last, 1, &p, strlen(prefix));
		plain = expect_rendered(&r, &(struct merge_style){.prefix = prefix}, buf);
		assert_int_equal(r.end - last.end, plain);
		assert_int_equal(expect_rendered(&r, &(struct merge_style){prefix, on_stamp, NULL},
						 buf),
				 plain + STAMP * r.stamps);
	}
}

/* --- cases --- */

/* The flags, the end and the stamps of a record after the last one, which is of log 1. */
static void test_flags(void **state)
{
	static const struct {
		uint32_t last_flags, log;
		const char *text;
		uint32_t flags;
		uint64_t end, stamps;
	} rows[] = {
		{MERGE_ENDS, 2, "x\n", MERGE_START | MERGE_LINE | MERGE_ENDS, 15, 1},
		{MERGE_ENDS, 2, "x\r", MERGE_START | MERGE_LINE | MERGE_CR, 15, 1},
		/* The line continues. */
		{0, 1, "x", 0, 11, 0},
		{MERGE_CR, 1, "\n", MERGE_ENDS, 11, 0},
		{MERGE_CR, 1, "x", MERGE_START, 14, 0},
		/* A chunk of another log follows. */
		{0, 2, "x", MERGE_NEWLINE | MERGE_START | MERGE_LINE, 15, 1},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct merge_record last = {.end = 10, .log = 1, .flags = rows[i].last_flags}, r;
		struct cutter c;

		chunks_clear(&cut);
		cutter_begin(&c, 0, false, 0);
		cutter_add(&c, 0, rows[i].text, strlen(rows[i].text), &cut);
		cutter_end(&c, &cut);
		assert_int_equal(cut.n, 1);
		r = merge_next(&last, rows[i].log, &cut.v[0], strlen("a/0"));
		assert_int_equal(r.flags, rows[i].flags);
		assert_int_equal(r.end, rows[i].end);
		assert_int_equal(r.stamps, rows[i].stamps);
	}
}

static size_t length_of_cut(void)
{
	size_t n = 0;

	for (size_t i = 0; i < cut.n; i++) {
		assert_int_equal(cut.v[i].from, n);
		n += cut.v[i].length;
	}
	return n;
}

/*
 * Pass the N bytes at BUF as one part to the cutter. Assert how many bytes it cuts off now, and how
 * many when the log pauses.
 */
static void expect_cut(const char *buf, size_t n, size_t now, size_t at_pause)
{
	struct cutter c;

	chunks_clear(&cut);
	cutter_begin(&c, 0, false, 0);
	cutter_add(&c, 0, buf, n, &cut);
	assert_int_equal(length_of_cut(), now);
	cutter_pause(&c, &cut);
	assert_int_equal(length_of_cut(), at_pause);
	cutter_end(&c, &cut);
	assert_int_equal(length_of_cut(), n);
}

static void test_cut(void **state)
{
	static char buf[2 * CHUNK_MAX];

	memset(buf, 'x', sizeof(buf));
	expect_cut(buf, CHUNK_MAX - 1, 0, 0);
	expect_cut(buf, CHUNK_MAX, CHUNK_MAX, CHUNK_MAX);
	expect_cut("\r10%\r20%\r", 9, 0, 5); /* a '\n' may follow the last '\r' */
	expect_cut("\r10%\r20%\r3", 10, 0, 9);
	expect_cut("10%\r", 4, 0, 0);
	expect_cut("x\r\n1\r2", 6, 3, 5);
	/* The cutter never cuts between '\r' and '\n'. */
	buf[CHUNK_MAX - 1] = '\r';
	expect_cut(buf, CHUNK_MAX, CHUNK_MAX - 1, CHUNK_MAX - 1);
	buf[CHUNK_MAX] = '\n';
	expect_cut(buf, CHUNK_MAX + 1, CHUNK_MAX + 1, CHUNK_MAX + 1);
	assert_int_equal(cut.v[0].length, CHUNK_MAX - 1);
	buf[CHUNK_MAX - 2] = '\r';
	expect_cut(buf, CHUNK_MAX + 1, CHUNK_MAX + 1, CHUNK_MAX + 1);
	buf[10] = '\n';
	buf[20] = '\n';
	expect_cut(buf, 100, 21, 21);
}

/* A record is read back as it was written. At another place, or with a wrong bit, it is refused. */
static void test_records(void **state)
{
	struct merge_record r = {.end = 1ull << 40,
				 .offset = 1ull << 33,
				 .stamps = 1ull << 34,
				 .length = 65536,
				 .log = 70000,
				 .flags = 15},
			    got;
	uint8_t bytes[MERGE_RECORD] = {0};

	merge_encode(&r, 5, bytes);
	assert_int_equal(merge_decode(bytes, 5, &got), 0);
	assert_true(got.end == r.end && got.offset == r.offset && got.length == r.length);
	assert_true(got.log == r.log && got.flags == r.flags && got.stamps == r.stamps);
	assert_int_equal(merge_decode(bytes, 6, &got), -EINVAL);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 4;
		assert_int_equal(merge_decode(bytes, 5, &got), -EINVAL);
		bytes[i] ^= 4;
	}
}

/* The table of keys is read up to the first line that is not valid. */
static void test_keys(void **state)
{
	static const char text[] = "a-0.0\ta/0 \nb-0.0\tb/0 \nhalf\th";
	char longest[MERGE_PREFIX_MAX + 2];
	struct merge_keys keys = {0};

	assert_int_equal(merge_keys_parse(&keys, text, strlen(text)), 22);
	assert_int_equal(keys.n, 2);
	assert_string_equal(keys.v[1]->key, "b-0.0");
	assert_string_equal(keys.v[1]->prefix, "b/0 ");
	assert_int_equal(merge_keys_parse(&keys, "../x\tp\n", 7), 0);
	assert_int_equal(keys.n, 2);
	merge_keys_clear(&keys);

	memset(longest, 'x', sizeof(longest));
	longest[MERGE_PREFIX_MAX + 1] = '\0';
	assert_false(merge_key_is_valid("k", longest));
	longest[MERGE_PREFIX_MAX] = '\0';
	assert_true(merge_key_is_valid("k", longest));
	for (const char *c = "\t\r\n"; *c; c++) {
		*longest = *c;
		assert_false(merge_key_is_valid("k", longest));
	}
}

/* A record that can't follow the previous one is rejected, even if its checksum is correct. */
static void test_follow(void **state)
{
	const struct merge_record first = {.end = 14,
					   .length = 10,
					   .stamps = 1,
					   .flags = MERGE_ENDS};
	static const struct {
		struct merge_record r;
		int err;
	} rows[] = {
		{{.offset = 10, .length = 4, .end = 22, .stamps = 2}, 0},
		{{.offset = 10, .length = 4, .end = 18, .stamps = 1}, 0},
		/* Too few bytes for these lines. */
		{{.offset = 10, .length = 4, .end = 17, .stamps = 2}, -EINVAL},
		{{.offset = 10, .length = 4, .end = 35, .stamps = 2}, 0},
		/* Too many bytes for these lines. */
		{{.offset = 10, .length = 4, .end = 36, .stamps = 2}, -EINVAL},
		/* A byte is missing. */
		{{.offset = 11, .length = 4, .end = 22, .stamps = 2}, -EINVAL},
		/* A byte occurs twice. */
		{{.offset = 9, .length = 4, .end = 22, .stamps = 2}, -EINVAL},
		{{.offset = 10, .length = 4, .end = 22, .stamps = 5}, 0},
		/* Too many lines for these bytes. */
		{{.offset = 10, .length = 4, .end = 22, .stamps = 6}, -EINVAL},
		/* Too few lines for these bytes. */
		{{.offset = 10, .length = 4, .end = 22, .stamps = 0}, -EINVAL},
		/* A chunk without bytes. */
		{{.offset = 10, .length = 0, .end = 14, .stamps = 1}, -EINVAL},
		/* There is no such log. */
		{{.log = 1, .length = 4, .end = 22, .stamps = 2}, -EINVAL},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct merge_keys keys = {0};
		int err;

		merge_keys_add(&keys, "a-0.0", "a/0 ");
		assert_int_equal(merge_follow(&keys, &merge_start, &first), 0);
		err = merge_follow(&keys, &first, &rows[i].r);
		if (err != rows[i].err)
			fail_msg("row %zu: %d", i, err);
		merge_keys_clear(&keys);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_render, teardown),
		cmocka_unit_test_teardown(test_flags, teardown),
		cmocka_unit_test_teardown(test_cut, teardown),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_follow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
