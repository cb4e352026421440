/* SPDX-License-Identifier: MIT */
/*
 * The index of the merged log. Its rendering is compared with a slow and simple one. Random writers
 * write logs, which must be exactly recoverable from the merged text: while they write, after they
 * end, and after the index was truncated. Random runs print their seed; KXFS_SEED=N repeats one.
 */
#include "tests/unit/backend/output/output_rig.h"

#include <errno.h>
#include <pthread.h>
#include <sys/random.h>

#include "backend/output/merge.h"

/* --- random --- */

static uint64_t seed;

static uint64_t next_random(uint64_t *r)
{
	*r += 0x9e3779b97f4a7c15u;
	uint64_t z = *r;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static size_t below(uint64_t *r, size_t n)
{
	return (size_t)(next_random(r) % n);
}

static uint64_t begin_random(void)
{
	const char *given = getenv("KXFS_SEED");

	if (given)
		seed = strtoull(given, NULL, 10);
	else
		assert_int_equal(getrandom(&seed, sizeof(seed), 0), sizeof(seed));
	print_message("KXFS_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

struct text {
	char *v;
	size_t n, room;
};

static void text_add(struct text *t, const char *bytes, size_t n)
{
	if (t->n + n > t->room) {
		t->room = 2 * (t->n + n) + 64;
		t->v = realloc(t->v, t->room);
		assert_non_null(t->v);
	}
	if (n > 0)
		memcpy(t->v + t->n, bytes, n);
	t->n += n;
}

static void text_clear(struct text *t)
{
	free(t->v);
	*t = (struct text){0};
}

static void expect_same(const char *a, size_t a_len, const char *b, size_t b_len)
{
	for (size_t i = 0; i < min_of(a_len, b_len); i++) {
		if (a[i] != b[i])
			fail_msg("differ at %zu of %zu and %zu: %d, %d", i, a_len, b_len, a[i],
				 b[i]);
	}
	assert_int_equal(a_len, b_len);
}

/* --- the format --- */

/* Render slowly, byte by byte, exactly by the definition. */
static void render_slowly(const struct merge_record *r, const char *prefix, const char *buf,
			  struct text *t)
{
	if (r->flags & MERGE_NEWLINE)
		text_add(t, "\n", 1);
	for (size_t i = 0; i < r->length; i++) {
		bool start = i == 0 ? r->flags & MERGE_START
				    : buf[i - 1] == '\n' || (buf[i - 1] == '\r' && buf[i] != '\n');

		if (start)
			text_add(t, prefix, strlen(prefix));
		text_add(t, buf + i, 1);
	}
}

static void on_stamp(void *data, uint64_t offset, char ret[STAMP])
{
	(void)snprintf(ret, STAMP, "%27llu", (unsigned long long)offset);
	ret[STAMP - 1] = ' ';
}

/*
 * Assert that the rendering with stamps has a stamp before each line, and is WHOLE without the
 * stamps.
 */
static void expect_stamped(const struct merge_record *rec, const char *prefix, const char *buf,
			   const struct text *whole, uint64_t *r)
{
	const struct merge_style style = {prefix, on_stamp, NULL};
	size_t total = whole->n + STAMP * rec->stamps, n = 0, stamps = 0, stamped = SIZE_MAX;
	cleanup_free char *out = malloc(total + 1), *part = malloc(total + 1);

	assert_int_equal(merge_render(rec, total, &style, buf, rec->length, 0, out, total + 1),
			 total);
	for (size_t i = 0; i < total; i++) {
		bool line = n > 0 ? whole->v[n - 1] == '\n'
				  : (rec->flags & (MERGE_LINE | MERGE_NEWLINE)) == MERGE_LINE;

		if (line && n != stamped) {
			unsigned long long at = strtoull(out + i, NULL, 10);

			assert_true(at == rec->offset || buf[at - rec->offset - 1] == '\n');
			i += STAMP - 1;
			stamps++;
			stamped = n;
			continue;
		}
		assert_int_equal(out[i], whole->v[n++]);
	}
	assert_int_equal(stamps, rec->stamps);
	for (unsigned k = 0; k < 5; k++) {
		size_t skip = below(r, total + 1);
		size_t got = merge_render(rec, total, &style, buf, rec->length, skip, part, total);

		assert_int_equal(got, total - skip);
		assert_memory_equal(part, out + skip, got);
	}
}

static struct chunks cut;

/* Feed the N bytes at BUF in parts of random size, and return them as one chunk. */
static struct chunk cut_to_one(const char *buf, size_t n, uint64_t *r)
{
	struct chunk p;
	struct cutter c;

	chunks_clear(&cut);
	cutter_begin(&c, 7, false, 0);
	for (size_t at = 0; at < n;) {
		size_t some = below(r, 3) ? n - at : 1 + below(r, n - at);

		cutter_add(&c, 0, buf + at, some, &cut);
		if (below(r, 2))
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
static char *random_lines(uint64_t *r, size_t n, const char *ends, size_t every)
{
	char *buf = malloc(n);

	for (size_t i = 0; i < n; i++)
		buf[i] = below(r, every) ? "ab"[below(r, 2)] : ends[below(r, strlen(ends))];
	return buf;
}

/*
 * Assert that the rendering of REC is WHOLE, from any start offset, and never longer than the
 * buffer.
 */
static void expect_rendered(const struct merge_record *rec, const struct merge_style *style,
			    const char *buf, const struct text *whole, uint64_t *r)
{
	size_t size = whole->n + 10;
	cleanup_free char *out = malloc(size);

	for (unsigned k = 0; k < 10; k++) {
		size_t skip = k ? below(r, whole->n + 1) : 0;
		size_t room = k ? below(r, size) : whole->n, got;

		memset(out, '?', size);
		got = merge_render(rec, whole->n, style, buf, rec->length, skip, out, room);
		assert_int_equal(got, min_of(room, whole->n - skip));
		assert_memory_equal(out, whole->v + skip, got);
		for (size_t i = got; i < size; i++)
			assert_int_equal(out[i], '?');
	}
}

static void test_render(void **state)
{
	static const char *const ends[] = {"\n", "\n\r", "\n\n\n\n\n\n\n\n\r", "\r"};
	static const char *const prefixes[] = {"", "t/0 ", "worker-with16/0 ",
					       "a-longer-trainer/17 "};
	static const size_t sizes[] = {40, 40, 40, 500, 5000, MERGE_LENGTH_MAX};
	uint64_t r = begin_random();

	for (unsigned round = 0; round < 3000; round++) {
		size_t n = 1 + below(&r, round % 10 ? 40 : sizes[below(&r, array_size(sizes))]);
		const struct merge_style style = {
			.prefix = prefixes[below(&r, array_size(prefixes))]};
		cleanup_free char *buf = random_lines(&r, n, ends[below(&r, array_size(ends))],
						      1 + below(&r, below(&r, 2) ? 3 : 200));
		struct merge_record last = {.end = below(&r, 1000), .log = (uint32_t)below(&r, 2)};
		struct merge_record rec;
		struct chunk p;
		struct text whole = {0};
		bool first;

		last.flags = (uint32_t)below(&r, 3) * MERGE_ENDS; /* no end, an end, or a '\r' */
		first = below(&r, 5) == 0;
		p = cut_to_one(buf, n, &r);
		rec = merge_next(first ? &merge_start : &last, 1, &p, strlen(style.prefix));
		render_slowly(&rec, style.prefix, buf, &whole);
		assert_int_equal(rec.end - (first ? 0 : last.end), whole.n);
		expect_rendered(&rec, &style, buf, &whole, &r);
		expect_stamped(&rec, style.prefix, buf, &whole, &r);
		text_clear(&whole);
	}
}

static struct merge_record next_of(const struct merge_record *last, uint32_t log, const char *text)
{
	struct cutter c;

	chunks_clear(&cut);
	cutter_begin(&c, 0, false, 0);
	cutter_add(&c, 0, text, strlen(text), &cut);
	cutter_end(&c, &cut);
	assert_int_equal(cut.n, 1);
	return merge_next(last, log, &cut.v[0], 3);
}

static void test_flags(void **state)
{
	struct merge_record chunk = {.end = 10, .log = 1, .flags = 0};
	struct merge_record cr = {.end = 10, .log = 1, .flags = MERGE_CR};
	struct merge_record line = {.end = 10, .log = 1, .flags = MERGE_ENDS};
	struct merge_record r;

	r = next_of(&merge_start, 0, "x\n");
	assert_int_equal(r.flags, MERGE_START | MERGE_LINE | MERGE_ENDS);
	assert_int_equal(r.end, 5);
	assert_int_equal(r.stamps, 1);
	r = next_of(&line, 2, "x\r");
	assert_int_equal(r.flags, MERGE_START | MERGE_LINE | MERGE_CR);
	r = next_of(&chunk, 1, "x"); /* the line continues */
	assert_int_equal(r.flags, 0);
	assert_int_equal(r.end, 11);
	assert_int_equal(r.stamps, 0);
	r = next_of(&chunk, 2, "x"); /* a chunk of another log follows */
	assert_int_equal(r.flags, MERGE_NEWLINE | MERGE_START | MERGE_LINE);
	assert_int_equal(r.end, 15);
	r = next_of(&cr, 1, "\n");
	assert_int_equal(r.flags, MERGE_ENDS);
	r = next_of(&cr, 1, "x");
	assert_int_equal(r.flags, MERGE_START);
	assert_int_equal(r.stamps, 0);
}

/*
 * Pass BUF as one part to the cutter. Assert how many bytes it cuts off now, and how many more when
 * the log pauses (AT_PAUSE).
 */
static void expect_cut(const char *buf, size_t n, size_t expected, size_t at_pause)
{
	struct cutter c;
	size_t sum = 0;

	chunks_clear(&cut);
	cutter_begin(&c, 0, false, 0);
	cutter_add(&c, 0, buf, n, &cut);
	for (size_t i = 0; i < cut.n; i++)
		sum += cut.v[i].length;
	assert_int_equal(sum, expected);
	cutter_pause(&c, &cut);
	sum = 0;
	for (size_t i = 0; i < cut.n; i++)
		sum += cut.v[i].length;
	assert_int_equal(sum, at_pause);
	cutter_end(&c, &cut);
	sum = 0;
	for (size_t i = 0; i < cut.n; i++) {
		assert_int_equal(cut.v[i].from, sum);
		sum += cut.v[i].length;
	}
	assert_int_equal(sum, n);
}

static void test_cut(void **state)
{
	static char buf[2 * CHUNK_MAX];

	memset(buf, 'x', sizeof(buf));
	expect_cut(buf, 100, 0, 0);
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

static void test_records(void **state)
{
	struct merge_record r = {.end = 1ull << 40,
				 .offset = 1ull << 33,
				 .stamps = 1ull << 34,
				 .length = 65536,
				 .log = 70000,
				 .flags = 15},
			    got;
	uint8_t bytes[MERGE_RECORD] = {0}, again[MERGE_RECORD] = {0};

	merge_encode(&r, 5, bytes);
	assert_int_equal(merge_decode(bytes, 5, &got), 0);
	merge_encode(&got, 5, again);
	assert_memory_equal(again, bytes, sizeof(bytes));
	assert_true(got.end == r.end && got.offset == r.offset && got.length == r.length);
	assert_true(got.log == r.log && got.flags == r.flags && got.stamps == r.stamps);
	assert_int_equal(merge_decode(bytes, 6, &got), -EINVAL);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 4;
		assert_int_equal(merge_decode(bytes, 5, &got), -EINVAL);
		bytes[i] ^= 4;
	}
}

static void test_keys(void **state)
{
	static const char text[] = "a-0.0\ta/0 \nb-0.0\tb/0 \nhalf\th";
	struct merge_keys keys = {0};

	assert_int_equal(merge_keys_parse(&keys, text, strlen(text)), 22);
	assert_int_equal(keys.n, 2);
	assert_string_equal(keys.v[1]->key, "b-0.0");
	assert_string_equal(keys.v[1]->prefix, "b/0 ");
	merge_keys_clear(&keys);
	assert_int_equal(merge_keys_parse(&keys, "../x\tp\n", 7), 0);
	assert_int_equal(keys.n, 0);
	merge_keys_clear(&keys);
}

/* The allowed prefixes of lines, and the longest one. */
static void test_prefixes(void **state)
{
	char longest[MERGE_PREFIX_MAX + 2];

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

/* --- random writers --- */

#define WRITERS 4
#define JOB	"job-1"

static const char *const keys[WRITERS] = {"a-0.0", "a-1.0", "b-0.0", "a-0.1"};
static const char *const prefixes[WRITERS] = {"a/0 ", "a/1 ", "longer-name/12 ", "A/0 "};

struct writer {
	struct text text;
	struct rig_writer out;
	uint64_t random;
	bool long_lines;
	pthread_t thread;
};

static struct writer writers[WRITERS];

/*
 * Return a random line without '\n'. It has no '/', so that it can't start with a prefix by chance.
 */
static size_t random_line(struct writer *w, char *buf)
{
	static const char alphabet[] = "abcdefgh .\0\r";
	uint64_t *r = &w->random;
	size_t n = below(r, 60);

	if (below(r, 50) == 0)
		n = w->long_lines ? below(r, 200000) : below(r, 60000);
	for (size_t i = 0; i < n; i++)
		buf[i] = alphabet[below(r, below(r, 8) ? 10 : sizeof(alphabet) - 1)];
	if (below(r, 6) == 0)
		buf[n++] = '\r';
	return n;
}

static void *write_log(void *data)
{
	struct writer *w = data;
	uint64_t *r = &w->random;
	cleanup_free char *buf = malloc(200002);

	for (unsigned i = 0, lines = 100 + (unsigned)below(r, 100); i < lines; i++) {
		size_t n = random_line(w, buf), at = 0;

		if (i + 1 < lines || below(r, 2))
			buf[n++] = '\n';
		text_add(&w->text, buf, n);
		while (at < n) {
			size_t some = below(r, 10) ? n - at : 1 + below(r, n - at);

			rig_append(&w->out, buf + at, some);
			rig_grown(&w->out);
			at += some;
			if (below(r, 30) == 0)
				rig_sleep((unsigned)below(r, 30));
		}
	}
	return NULL;
}

/* What a reader has read of the merged log so far, while the log grows. */
struct watcher {
	struct log *log;
	struct text seen;
	uint64_t random;
};

static void watch_more(struct watcher *w)
{
	size_t size = rig_stat(w->log).size;
	char buf[5000];

	assert_true(size >= w->seen.n);
	while (w->seen.n < size) {
		ssize_t n = log_read(w->log, buf, 1 + below(&w->random, sizeof(buf)), w->seen.n);

		assert_true(n > 0);
		text_add(&w->seen, buf, (size_t)n);
	}
	for (unsigned i = 0; w->seen.n > 0 && i < 5; i++) {
		size_t off = below(&w->random, w->seen.n);
		ssize_t n = log_read(w->log, buf, 1 + below(&w->random, sizeof(buf)), off);

		assert_true(n > 0);
		expect_same(buf, min_of((size_t)n, w->seen.n - off), w->seen.v + off,
			    min_of((size_t)n, w->seen.n - off));
	}
}

/* Assert that reads of any size from any offset return the same as reading everything. */
static void expect_chunks(struct log *log, const struct text *whole, uint64_t *r)
{
	for (unsigned i = 0; i < 100; i++) {
		size_t off = below(r, whole->n + 1);
		size_t room = 1 + below(r, i % 4 ? 300 : 300000);
		cleanup_free char *buf = malloc(room);
		ssize_t n = log_read(log, buf, room, off);

		assert_int_equal(n, min_of(room, whole->n - off));
		expect_same(buf, (size_t)n, whole->v + off, (size_t)n);
	}
}

/* Split WHOLE into the logs, by the prefix of each line. */
static void split(const struct text *whole, struct text out[WRITERS])
{
	for (size_t at = 0; at < whole->n;) {
		const char *nl = memchr(whole->v + at, '\n', whole->n - at);
		size_t end = (size_t)(nl - whole->v) + 1, len = 0;
		unsigned k;

		assert_non_null(nl);
		for (k = 0; k < WRITERS; k++) {
			len = strlen(prefixes[k]);
			if (end - at > len && memcmp(whole->v + at, prefixes[k], len) == 0)
				break;
		}
		assert_true(k < WRITERS);
		for (at += len; at < end; at++) {
			text_add(&out[k], whole->v + at, 1);
			if (whole->v[at] == '\r' && whole->v[at + 1] != '\n') {
				assert_memory_equal(whole->v + at + 1, prefixes[k], len);
				at += len;
			}
		}
	}
}

/*
 * Remove from OUT the newlines that T does not have. They follow a '\r' after which a line of
 * another log was inserted.
 */
static void join(struct text *out, const struct text *t)
{
	size_t n = 0;

	for (size_t i = 0; i < out->n; i++) {
		if (n > 0 && n < t->n && out->v[i] == '\n' && t->v[n] != '\n' &&
		    t->v[n - 1] == '\r')
			continue;
		out->v[n++] = out->v[i];
	}
	out->n = n;
}

/*
 * Assert that WHOLE contains each log byte for byte. Two differences are allowed: a newline after a
 * last line without one, and newlines in lines that were cut at a '\r'.
 */
static void expect_logs(const struct text *whole)
{
	struct text out[WRITERS] = {0};

	split(whole, out);
	for (unsigned k = 0; k < WRITERS; k++) {
		const struct text *t = &writers[k].text;

		join(&out[k], t);
		if (t->n > 0 && t->v[t->n - 1] != '\n')
			out[k].n--;
		expect_same(out[k].v, out[k].n, t->v, t->n);
		text_clear(&out[k]);
	}
}

/*
 * Check the same by the records, also for lines that are longer than a record. The records must
 * contain each log from the first to the last byte, and their slow rendering must be WHOLE.
 */
static void expect_records(const struct text *whole)
{
	cleanup_free char *path = file_path(rig.state, JOB, "merged");
	struct merge_record r, last = {.flags = MERGE_ENDS};
	uint64_t done[WRITERS] = {0};
	uint8_t bytes[MERGE_RECORD];
	struct text slow = {0};
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	assert_int_equal(fread(bytes, 1, MERGE_HEAD, f), MERGE_HEAD);
	assert_memory_equal(bytes, merge_head, MERGE_HEAD);
	for (uint64_t i = 0; fread(bytes, 1, sizeof(bytes), f) == sizeof(bytes); i++) {
		const struct text *t;

		assert_int_equal(merge_decode(bytes, i, &r), 0);
		t = &writers[r.log].text;
		assert_int_equal(r.offset, done[r.log]);
		done[r.log] += r.length;
		assert_true(done[r.log] <= t->n);
		/* A line of another log never starts in the middle of a line. */
		if (r.log != last.log && !(last.flags & MERGE_ENDS))
			assert_true(r.flags & MERGE_NEWLINE);
		render_slowly(&r, prefixes[r.log], t->v + r.offset, &slow);
		assert_int_equal(slow.n, r.end);
		last = r;
	}
	fclose(f);
	for (unsigned k = 0; k < WRITERS; k++)
		assert_int_equal(done[k], writers[k].text.n);
	expect_same(slow.v, slow.n, whole->v, whole->n);
	text_clear(&slow);
}

static void read_whole(struct text *ret)
{
	struct log *log = rig_log(JOB, NULL);
	struct log_stat st;

	rig_until(rig_stat(log).ended);
	ret->v = rig_read(log, &ret->n);
	assert_int_equal(output_log_stat(rig.output, JOB, NULL, LOG_PLAIN, &st), 0);
	assert_int_equal(st.size, ret->n);
	assert_true(st.ended);
	log_unref(log);
}

static void begin_all(void)
{
	rig_open(JOB);
	for (unsigned k = 0; k < WRITERS; k++)
		rig_writer_begin(&writers[k].out, JOB, keys[k], prefixes[k]);
}

static void end_all(void)
{
	atomic_store(&rig.ended, 0);
	for (unsigned k = 0; k < WRITERS; k++) {
		rig_writer_end(&writers[k].out);
		rig_end(keys[k]);
	}
	rig_here(rig_do_job_end, NULL);
	rig_until(atomic_load(&rig.ended) == WRITERS);
	rig_here(rig_do_close, NULL);
}

static void write_all(uint64_t *r, bool long_lines, struct text *ret)
{
	struct watcher watcher = {.random = next_random(r)};

	begin_all();
	watcher.log = rig_log(JOB, NULL);
	for (unsigned k = 0; k < WRITERS; k++) {
		writers[k].random = next_random(r);
		writers[k].long_lines = long_lines;
		pthread_create(&writers[k].thread, NULL, write_log, &writers[k]);
	}
	for (unsigned i = 0; i < 200; i++) {
		watch_more(&watcher);
		rig_sleep(1);
	}
	for (unsigned k = 0; k < WRITERS; k++)
		pthread_join(writers[k].thread, NULL);
	end_all();
	rig_until(rig_stat(watcher.log).ended);
	watch_more(&watcher);
	log_unref(watcher.log);
	*ret = watcher.seen;
}

static void run_writers(bool long_lines)
{
	uint64_t r = begin_random();
	struct text seen = {0}, whole = {0};
	struct log *log;

	write_all(&r, long_lines, &seen);
	read_whole(&whole);
	expect_same(whole.v, whole.n, seen.v, seen.n);
	if (!long_lines)
		expect_logs(&whole);
	expect_records(&whole);
	rig_down(true);
	rig_up();
	log = rig_log(JOB, NULL);
	expect_chunks(log, &whole, &r);
	log_unref(log);
	text_clear(&whole);
	text_clear(&seen);
}

static void test_writers(void **state)
{
	run_writers(false);
}

static void test_long_lines(void **state)
{
	run_writers(true);
}

/* Truncate FILE of the job at a random byte. Sometimes append garbage or zeros. */
static void tear(const char *file, uint64_t *r)
{
	char path[256];
	cleanup_fd int fd = -1;
	struct stat st;
	off_t at;

	snprintf(path, sizeof(path), "%s/output/" JOB "/%s", rig.state, file);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	at = (off_t)below(r, (size_t)st.st_size + 1);
	assert_int_equal(ftruncate(fd, at), 0);
	if (below(r, 3) == 0)
		assert_int_equal(ftruncate(fd, at + (off_t)below(r, 5000)), 0);
	if (below(r, 3) == 0)
		assert_int_equal(pwrite(fd, "rubbish that nobody wrote", 25, at), 25);
}

/*
 * However the index is damaged, its complete records are rendered as before, and the rest is
 * rebuilt. No byte of the logs is missing or doubled.
 */
static void test_torn(void **state)
{
	uint64_t r = begin_random();
	struct text whole = {0}, again = {0};

	write_all(&r, false, &whole);
	for (unsigned round = 0; round < 40; round++) {
		rig_down(round % 2);
		if (round % 10 != 9)
			tear("merged", &r);
		else
			tear("merged.keys", &r);
		rig_up();
		begin_all();
		end_all();
		read_whole(&again);
		expect_logs(&again);
		expect_records(&again);
		text_clear(&again);
	}
	text_clear(&whole);
}

/* What a reader has read of the merged log before a crash is the same after it. */
static void test_crash(void **state)
{
	struct text whole = {0};
	struct log *log;

	begin_all();
	log = rig_log(JOB, NULL);
	for (unsigned i = 0; i < 30; i++) {
		struct writer *w = &writers[i % WRITERS];
		char line[32];
		size_t before = rig_stat(log).size;

		text_add(&w->text, line, (size_t)snprintf(line, sizeof(line), "line %u\n", i));
		rig_write(&w->out, line);
		rig_until(rig_stat(log).size > before);
		if (i % 5 != 4)
			continue;
		text_clear(&whole);
		whole.v = rig_read(log, &whole.n);
		log_unref(log);
		rig_down(false);
		/* The program printed while kxfs was not running. */
		text_add(&w->text, "unseen\n", 7);
		rig_append(&w->out, "unseen\n", 7);
		for (unsigned k = 0; k < WRITERS; k++)
			rig_writer_end(&writers[k].out);
		rig_up();
		begin_all();
		log = rig_log(JOB, NULL);
		rig_until(rig_stat(log).size > whole.n);
		text_add(&whole, "", 1);
		whole.n--;
		{
			size_t n;
			cleanup_free char *now = rig_read(log, &n);

			assert_memory_equal(now, whole.v, whole.n);
		}
	}
	log_unref(log);
	end_all();
	text_clear(&whole);
	read_whole(&whole);
	expect_logs(&whole);
	text_clear(&whole);
}

/* --- special cases --- */

static void expect_merged(const char *text)
{
	struct log *log = rig_log(JOB, NULL);
	struct text whole = {0};

	rig_until(rig_stat(log).size >= strlen(text));
	whole.v = rig_read(log, &whole.n);
	assert_string_equal(whole.v, text);
	text_clear(&whole);
	log_unref(log);
}

static void test_partial_line(void **state)
{
	struct rig_writer a, b;

	rig_open(JOB);
	rig_writer_begin(&a, JOB, "a-0.0", "a/0 ");
	rig_writer_begin(&b, JOB, "b-0.0", "b/0 ");
	rig_write(&a, "one\nhalf");
	expect_merged("a/0 one\n");
	rig_write(&b, "other\n");
	expect_merged("a/0 one\nb/0 other\n");
	rig_write(&a, " whole\r\n10%\r20%\r\n");
	expect_merged("a/0 one\nb/0 other\na/0 half whole\r\na/0 10%\ra/0 20%\r\n");
	rig_write(&a, "no newline");
	rig_writer_end(&a);
	rig_end("a-0.0");
	expect_merged("a/0 one\nb/0 other\na/0 half whole\r\na/0 10%\ra/0 20%\r\na/0 no newline");
	rig_write(&b, "after\nthe last");
	rig_writer_end(&b);
	rig_end("b-0.0");
	rig_here(rig_do_job_end, NULL);
	expect_merged("a/0 one\nb/0 other\na/0 half whole\r\na/0 10%\ra/0 20%\r\na/0 no newline\n"
		      "b/0 after\nb/0 the last\n");
	rig_here(rig_do_close, NULL);
}

/*
 * A progress bar appears in the merged log as it is drawn. Between lines of other logs it continues
 * in lines of its own.
 */
static void test_progress_bar(void **state)
{
	struct rig_writer a, b;

	rig_open(JOB);
	rig_writer_begin(&a, JOB, "a-0.0", "a/0 ");
	rig_writer_begin(&b, JOB, "b-0.0", "b/0 ");
	rig_write(&a, "\r10%");
	rig_write(&a, "\r20%\r30%");
	expect_merged("a/0 \ra/0 10%\ra/0 20%\r");
	rig_write(&b, "other\n");
	expect_merged("a/0 \ra/0 10%\ra/0 20%\r\nb/0 other\n");
	rig_write(&a, "\r");
	rig_write(&a, "\n");
	expect_merged("a/0 \ra/0 10%\ra/0 20%\r\nb/0 other\na/0 30%\r\n");
	rig_writer_end(&a);
	rig_writer_end(&b);
	rig_end("a-0.0");
	rig_end("b-0.0");
	rig_here(rig_do_job_end, NULL);
	expect_merged("a/0 \ra/0 10%\ra/0 20%\r\nb/0 other\na/0 30%\r\n");
	rig_here(rig_do_close, NULL);
}

static void on_arrived(void *data)
{
	sem_post(data);
}

static void test_settle(void **state)
{
	struct log *log;
	sem_t settled;
	struct rig_writer w;

	sem_init(&settled, 0, 0);
	rig_open(JOB);
	rig_writer_begin(&w, JOB, "a-0.0", "a/0 ");
	log = rig_log(JOB, NULL);
	for (unsigned i = 1; i <= 200; i++) {
		rig_write(&w, "line\n");
		assert_false(log_has_arrived(log));
		log_when_arrived(log, on_arrived, &settled);
		while (sem_wait(&settled) < 0)
			;
		assert_int_equal(rig_stat(log).size, 9 * i);
	}
	/* kxfs does not wait for the rest of a line. */
	rig_write(&w, "half a line");
	log_when_arrived(log, on_arrived, &settled);
	while (sem_wait(&settled) < 0)
		;
	rig_writer_end(&w);
	rig_end("a-0.0");
	rig_here(rig_do_job_end, NULL);
	rig_until(log_has_arrived(log));
	log_when_arrived(log, on_arrived, &settled);
	while (sem_wait(&settled) < 0)
		;
	log_unref(log);
	rig_here(rig_do_close, NULL);
}

/*
 * If the index can't be written, the logs are still complete, and they end. The index follows when
 * it can be written again.
 */
static void test_no_room(void **state)
{
	char path[256];
	struct log *log;
	size_t len;
	char *text;
	struct rig_writer w;

	atomic_store(&rig.ended, 0);
	rig_open(JOB);
	rig_writer_begin(&w, JOB, "a-0.0", "a/0 ");
	snprintf(path, sizeof(path), "%s/output/" JOB "/merged", rig.state);
	assert_int_equal(mkdir(path, 0700), 0); /* so that opening the index as a file fails */
	rig_write(&w, "one\ntwo\n");
	rig_writer_end(&w);
	rig_end("a-0.0");
	rig_until(atomic_load(&rig.ended) == 1);
	rig_here(rig_do_job_end, NULL);
	rig_here(rig_do_close, NULL);
	log = rig_log(JOB, "a-0.0");
	assert_true(rig_stat(log).ended);
	text = rig_read(log, &len);
	assert_string_equal(text, "one\ntwo\n");
	free(text);
	log_unref(log);
	text = diag_text(&len);
	assert_non_null(strstr(text, JOB ": its merged log can't be written: Is a directory"));
	free(text);

	assert_int_equal(rmdir(path), 0);
	rig_until(access(path, F_OK) == 0);
	expect_merged("a/0 one\na/0 two\n");
	log = rig_log(JOB, NULL);
	rig_until(rig_stat(log).ended);
	log_unref(log);
}

static int teardown(void **state)
{
	for (unsigned k = 0; k < WRITERS; k++)
		text_clear(&writers[k].text);
	chunks_clear(&cut);
	return rig_teardown(state);
}

int main(void)
{
#define merge_test(t) cmocka_unit_test_setup_teardown(t, rig_setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_render), cmocka_unit_test(test_flags),
		cmocka_unit_test(test_cut),    cmocka_unit_test(test_records),
		cmocka_unit_test(test_keys),   cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_follow), merge_test(test_partial_line),
		merge_test(test_progress_bar), merge_test(test_settle),
		merge_test(test_no_room),      merge_test(test_writers),
		merge_test(test_long_lines),   merge_test(test_torn),
		merge_test(test_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
