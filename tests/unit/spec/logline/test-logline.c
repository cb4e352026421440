/* SPDX-License-Identifier: MIT */
/*
 * Recovers a program's output from the streams of a kubelet. The test plays the kubelet, which
 * stores the parts into which a container runtime splits the output, and returns them from a given
 * second on. Streams are cut anywhere and fed in chunks of any size. Between streams, the log and
 * its table of lines are truncated, as a kill or a crash would do. The result must be exactly the
 * program's output.
 */
#include <errno.h>
#include <time.h>

#include "spec/logline/logline.h"
#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)
#define START  (1795252120 * SECOND)
#define PART   64    /* where the test's runtime splits lines */
#define ENTRY  16384 /* where a real runtime splits them */

/* --- the kubelet --- */

struct part {
	int64_t ns;
	size_t at, n;
};

static struct kubelet {
	char *out; /* the program's output */
	size_t n, room;
	struct part *parts;
	size_t n_parts, parts_room;
	size_t rotated; /* number of parts that were removed by log rotation */
	bool real;	/* lines are split at ENTRY, not at PART */
	int64_t now;
} k;

static uint64_t seed;

static uint64_t any(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % below;
}

static void add_part(const char *bytes, size_t n)
{
	if (k.n + n > k.room) {
		k.room = 2 * (k.n + n);
		k.out = realloc(k.out, k.room);
	}
	if (k.n_parts == k.parts_room) {
		k.parts_room = k.parts_room ? 2 * k.parts_room : 64;
		k.parts = realloc(k.parts, k.parts_room * sizeof(*k.parts));
	}
	if (!k.out || !k.parts)
		abort();
	memcpy(k.out + k.n, bytes, n);
	k.parts[k.n_parts++] = (struct part){k.now, k.n, n};
	k.n += n;
}

/* Print TEXT some time after the previous output. */
static void print(const char *text, int64_t later)
{
	k.now += later;
	add_part(text, strlen(text));
}

/* Print a line of random bytes. It may equal the previous one, or have no newline. */
static void print_any(void)
{
	static const char *const usual[] = {"x\n", "\n", "same line\n", "\r50%\r60%\r\n",
					    "\xff\xfe\n"};
	char line[5 * PART];
	size_t n = any(4 * PART);

	switch (any(4)) {
	case 0:
		print(usual[any(array_size(usual))], 0);
		return;
	case 1:
		n = any(3) ? any(9) : n;
		break;
	default:
		break;
	}
	for (size_t i = 0; i < n; i++) {
		line[i] = (char)any(256);
		if (line[i] == '\n')
			line[i] = '\0';
	}
	line[n++] = '\n';
	for (size_t at = 0; at < n; at += PART) {
		add_part(line + at, min_of(n - at, (size_t)PART));
		if (any(3) == 0)
			k.now += (int64_t)any(SECOND);
	}
}

/* Print N bytes of one line, which the runtime splits. If ENDS, print a newline too. */
static void print_long(size_t n, bool ends)
{
	static char line[5 * ENTRY + 1];

	for (size_t i = 0; i < n; i++)
		line[i] = (char)('a' + any(26));
	if (ends)
		line[n++] = '\n';
	for (size_t at = 0; at < n;) {
		/* A newline does not count toward the part's limit. */
		size_t rest = n - at,
		       part = rest == ENTRY + 1 && ends ? rest : min_of(rest, (size_t)ENTRY);

		add_part(line + at, part);
		k.now += (int64_t)any(SECOND);
		at += part;
	}
}

static void pass_time(void)
{
	switch (any(8)) {
	case 0:
		k.now += (int64_t)any(5 * SECOND);
		break;
	case 1:
	case 2:
		k.now += (int64_t)any(SECOND / 4);
		break;
	case 3:
		k.now++;
		break;
	case 4:
		k.now -= any(20) ? 0 : (int64_t)any(4 * SECOND); /* the clock is set back */
		break;
	default:
		break; /* many lines have the same time */
	}
}

static void time_text(int64_t ns, char ret[48])
{
	time_t seconds = ns / SECOND;
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(ret, 48, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(ret + n, 48 - n, ".%09lldZ ", (long long)(ns % SECOND));
}

/*
 * Return the body of the kubelet's reply to GET .../log. If SINCE, the log starts at the time NS.
 */
static char *body(bool since, int64_t ns, size_t *ret_n)
{
	char *ret = NULL;
	FILE *out = open_memstream(&ret, ret_n);
	bool begins = true;

	for (size_t i = k.rotated; i < k.n_parts; i++) {
		const struct part *p = &k.parts[i];
		char time[48];

		if (!since || p->ns >= ns) {
			time_text(p->ns, time);
			if (begins)
				fputs(time, out);
			fwrite(k.out + p->at, 1, p->n, out);
		}
		begins = k.out[p->at + p->n - 1] == '\n';
	}
	fclose(out);
	return ret;
}

/* --- the reader --- */

static struct reader {
	char *got;
	size_t n, room;
	bool balks; /* the reader sometimes accepts nothing */
	/*
	 * The table of the log's lines. A line is in it if its time differs from that of the
	 * previous line.
	 */
	struct spec_line *lines;
	size_t n_lines, lines_room;
	int64_t last_ns; /* the last time that was passed on */
	/* The sizes of the log before and after its last write. */
	size_t before, written;
	size_t window; /* how many bytes of the log's end are compared first */
	struct spec_logline_past past;
	unsigned gaps;
} r;

static void note_line(int64_t ns)
{
	bool begins = r.n == 0 || r.got[r.n - 1] == '\n';

	if (!begins || (r.n_lines > 0 && r.lines[r.n_lines - 1].ns == ns))
		return;
	if (r.n_lines == r.lines_room) {
		r.lines_room = 2 * r.lines_room + 64;
		r.lines = realloc(r.lines, r.lines_room * sizeof(r.lines[0]));
	}
	r.lines[r.n_lines++] = (struct spec_line){r.n, ns};
}

static int keep(void *data, int64_t ns, const char *bytes, size_t n)
{
	assert_true(ns >= 0 && n > 0);
	if (r.balks && any(10) == 0)
		return -ENOMEM;
	note_line(ns);
	r.last_ns = ns;
	if (r.n + n > r.room) {
		r.room = 2 * (r.n + n);
		r.got = realloc(r.got, r.room);
	}
	memcpy(r.got + r.n, bytes, n);
	r.n += n;
	return 0;
}

/* Begin a new log. Its random numbers follow from SEED. */
static void fresh(uint64_t from)
{
	free(k.out);
	free(k.parts);
	free(r.got);
	free(r.lines);
	k = (struct kubelet){.now = START};
	r = (struct reader){.window = 64 << 10};
	seed = from;
}

static int setup(void **state)
{
	fresh(1);
	return 0;
}

static int teardown(void **state)
{
	fresh(0);
	return 0;
}

/* Write everything that is buffered, in one write. */
static void flush(void)
{
	if (r.n == r.written)
		return;
	r.before = r.written;
	r.written = r.n;
}

/* Begin a stream. It compares about the last WINDOW bytes of the log. */
static struct spec_logline *begin(bool force, size_t window)
{
	struct spec_logline_known known = {.from = r.n - min_of(r.n, window), .size = r.n};
	struct spec_logline *l;
	size_t first = 0;

	while (first + 1 < r.n_lines && r.lines[first + 1].at <= known.from)
		first++;
	known.n_lines = r.n_lines - first;
	known.bytes = malloc(r.n - known.from + 1);
	known.lines = malloc(known.n_lines * sizeof(known.lines[0]) + 1);
	if (r.n > 0)
		memcpy(known.bytes, r.got + known.from, r.n - known.from);
	if (known.n_lines > 0)
		memcpy(known.lines, r.lines + first, known.n_lines * sizeof(known.lines[0]));
	l = spec_logline_new(&known, force, &r.past);
	assert_non_null(l);
	free(known.bytes); /* may be empty */
	free(known.lines);
	return l;
}

/* Feed N bytes in chunks. One write contains one or several chunks. */
static int feed(struct spec_logline *l, const char *bytes, size_t n)
{
	int err = 0;

	for (size_t at = 0; at < n && err == 0;) {
		size_t piece = min_of(n - at, (size_t)(any(3) ? 1 + any(20) : 1 + any(2000)));

		err = spec_logline_feed(l, bytes + at, piece, keep, NULL);
		at += piece;
		if (any(3))
			flush();
	}
	flush();
	return err;
}

static int end(struct spec_logline *l)
{
	int err = spec_logline_end(l, keep, NULL);

	flush();
	return err;
}

enum how {
	WHOLE, /* the stream is complete */
	CUT,   /* the stream breaks anywhere */
	/*
	 * The stream ends normally, but too early, as that of a server that lost its connection to
	 * the kubelet.
	 */
	ENDING,
};

static int stream_window(enum how how, bool force, size_t window)
{
	struct spec_logline *l = begin(force, window);
	int64_t since = 0;
	bool from = spec_logline_since(l, &since);
	size_t n;
	cleanup_free char *text = body(from, since, &n);
	int err;

	assert_true(!from || since % SECOND == 0);
	err = feed(l, text, how == WHOLE ? n : any(n + 1));
	if (err == 0 && how != CUT)
		err = end(l);
	/* Output is not mistaken for a message. */
	if (err == 0 && how == WHOLE && spec_logline_has_lines(l))
		assert_string_equal(spec_logline_text(l), "");
	r.gaps += spec_logline_gap(l);
	spec_logline_free(l);
	return err;
}

/*
 * Read one stream. If it does not show the known end, compare with more of the log before giving
 * up.
 */
static int stream(enum how how, bool force)
{
	size_t window = force ? SIZE_MAX : r.window;
	int err = stream_window(how, force, window);

	while (err == -ESTALE && window < r.n) {
		window *= 16;
		err = stream_window(how, force, window);
	}
	return err;
}

static void expect_stream(int expected)
{
	assert_int_equal(stream(WHOLE, false), expected);
}

/* Start again, as kxfs does after finding N bytes. */
static void restart(size_t n)
{
	assert_true(n <= r.n);
	while (r.n_lines > 0 && r.lines[r.n_lines - 1].at >= n)
		r.n_lines--;
	r.past = (struct spec_logline_past){0};
	r.n = r.before = r.written = n;
}

static void assert_whole(void)
{
	assert_int_equal(r.n, k.n);
	assert_memory_equal(r.got, k.out, k.n);
	assert_int_equal(r.gaps, 0);
}

/* Read streams until one has shown everything, and assert that the log is the program's output. */
static void finish(void)
{
	int err;

	for (unsigned i = 0; (err = stream(WHOLE, false)) == -EAGAIN && i < 20; i++)
		;
	if (err)
		fail_msg("the last stream: %d", err);
	assert_whole();
}

/* Follow the log as capture does, until it is complete. */
static void follow(void)
{
	bool force = false;
	int err = -EAGAIN;

	/*
	 * A stream that ends normally may be incomplete. Two such streams are unlikely to end at
	 * the same place.
	 */
	if (any(3) == 0)
		force |= stream(ENDING, force) == -ESTALE;
	for (int i = 0; err != 0 && i < 20; i++) {
		err = stream(WHOLE, force);
		force |= err == -ESTALE;
	}
	assert_int_equal(err, 0);
}

/* --- random logs --- */

/* Streams break anywhere, sometimes because the reader fails. kxfs may restart in between. */
static void test_any_cut(void **state)
{
	for (uint64_t i = 1; i < 3000; i++) {
		fresh(i);
		k.now += (int64_t)any(SECOND);
		for (unsigned round = 0; round < 12; round++) {
			int err;

			for (uint64_t lines = any(40); lines > 0; lines--) {
				print_any();
				pass_time();
			}
			r.balks = any(4) == 0;
			err = stream(any(4) ? CUT : WHOLE, false);
			r.balks = false;
			if (err != -EAGAIN && err != -ENOMEM && err != 0)
				fail_msg("%d in round %u", err, round);
			if (any(3) == 0)
				restart(r.n);
		}
		/* The program exits, without a last newline. */
		if (any(2))
			print("the end", 0);
		finish();
	}
}

/*
 * The table's end is lost, from any record on, and the known end of the log starts anywhere. Its
 * bytes show where to continue.
 */
static void test_lost_lines(void **state)
{
	for (uint64_t i = 1; i < 300; i++) {
		fresh(i);
		for (int n = 0; i % 3 && n < 100; n++) {
			print_any();
			k.now += 1 + (int64_t)any(SECOND / 4);
		}
		for (int n = 0; i % 3 == 0 && n < 5; n++)
			print_long(1 + any(3 * ENTRY), true);
		expect_stream(0);
		r.n_lines = any(r.n_lines + 1);
		r.window = 1 + any(r.n);
		print("more\n", SECOND);
		expect_stream(0);
		assert_whole();
	}
}

/*
 * The ends of the log and of its table are cut off. The position is found again, even if the log
 * was rotated.
 */
static void test_torn(void **state)
{
	for (uint64_t i = 1; i < 300; i++) {
		fresh(i);
		for (int n = 0; n < 100; n++) {
			print_any();
			pass_time();
		}
		expect_stream(0);
		restart(r.n - any(min_of(r.n, (size_t)600) + 1));
		if (any(2))
			k.rotated = k.n_parts - min_of(k.n_parts, (size_t)60);
		print("more\n", SECOND);
		finish();
	}
}

static void print_many(void)
{
	for (uint64_t lines = any(60); lines > 0; lines--) {
		if (k.real && any(4) == 0)
			print_long(any(3 * ENTRY), true);
		else if (any(2))
			print("the same\n", 0);
		else if (k.real)
			print("\n", 1);
		else
			print_any();
		k.now += any(2) ? 0 : (int64_t)any(SECOND / 4);
	}
}

/*
 * Rotate all parts away, except the last KEEP of those that start within the first N bytes. Also
 * keep parts with the same time as the first of these. (Of two equal lines with the same time,
 * nothing would show which one is left.)
 */
static void rotate(size_t n, size_t keep)
{
	size_t i = k.n_parts;

	while (i > 0 && k.parts[i - 1].at >= n)
		i--;
	i -= min_of(i, keep);
	while (i > 0 && (k.parts[i].ns == k.parts[i - 1].ns ||
			 (!k.real && k.out[k.parts[i].at - 1] != '\n')))
		i--;
	k.rotated = max_of(k.rotated, i);
}

/*
 * The log is rotated, and kxfs is killed, at any time. Enough of the log remains to continue.
 * Nothing is lost or doubled, and no gap is reported, even if many lines have the same time and
 * text.
 */
static void test_any_end(void **state)
{
	const char *more = getenv("KXFS_LOGLINE_SEEDS");
	const uint64_t seeds = more ? strtoull(more, NULL, 10) : 300;

	for (uint64_t i = 1; i <= seeds; i++) {
		/* In 759, the end of a long line's part must not count as the known end. */
		const uint64_t this = i < seeds ? i : 759;

		fresh(this);
		k.real = this % 3 == 0;
		for (int round = 0; round < 10; round++) {
			print_many();
			if (any(2))
				stream(CUT, false);
			else
				follow();
			if (any(2))
				rotate(r.before, 1 + any(60));
			if (any(3) == 0) /* kxfs is killed, maybe during its last write */
				restart(r.before + any(r.written - r.before + 1));
		}
		follow();
		if (r.n != k.n || memcmp(r.got, k.out, r.n) != 0 || r.gaps > 0)
			fail_msg("seed %u: %zu of %zu bytes, gaps: %u", (unsigned)this, r.n, k.n,
				 r.gaps);
	}
}

/* --- cases --- */

/* The program itself prints a time, or its beginning, where the runtime splits the line. */
static void test_own_times(void **state)
{
	static const char *const own[] = {
		"2026-11-21T09:08:40.123456789Z x\n",
		"2026-11-21T09:08:40.1234567",
		"20",
		"2026-11-21 \n",
		" \n",
		"\n",
		"2026-11-21T\n",
	};

	for (size_t i = 0; i < array_size(own); i++) {
		fresh(i);
		k.now += 86400 * SECOND;
		print_long(ENTRY, false);
		print(own[i], SECOND);
		for (int tries = 0; tries < 4; tries++)
			stream(CUT, false);
		follow();
		assert_whole();
	}
}

/*
 * The clock is set back while a stream is open (test_any_cut sets it back between streams). After
 * that, a stream that starts at a later second lacks some lines.
 */
static void test_clock_back_seen(void **state)
{
	print("one\n", 0);
	print("two\n", 5 * SECOND);
	print("three\n", -3 * SECOND);
	for (int i = 0; i < 3000; i++)
		print("more than may be repeated without need\n", 1);
	expect_stream(0);
	print("four\n", 1);
	expect_stream(0);
	assert_whole();
}

/* The log was rotated while no stream was open, with and without an overlap. A loss is reported. */
static void test_rotated(void **state)
{
	for (int i = 0; i < 50; i++)
		print(i % 2 ? "odd\n" : "even\n", 1000);
	expect_stream(0);
	k.rotated = 45;
	print("more\n", SECOND);
	expect_stream(0);
	assert_whole();
	k.rotated = k.n_parts + 3;
	for (int i = 0; i < 6; i++)
		print("lost or not\n", SECOND);
	expect_stream(-ESTALE);
	assert_int_equal(stream(WHOLE, true), 0);
	assert_int_equal(r.gaps, 1);
	assert_int_equal(r.n, k.n - 3 * strlen("lost or not\n"));
	expect_stream(0);
	assert_int_equal(r.gaps, 1);
}

/* The table of lines is older than the log, or is missing. */
static void test_known(void **state)
{
	size_t size;

	print("one\n", 0);
	print("two\n", SECOND);
	expect_stream(0);
	print("three\n", SECOND);
	expect_stream(0);
	/* The machine has crashed, so the table is older. */
	assert_int_equal(r.n_lines--, 3);
	restart(r.n);
	print("four", SECOND);
	expect_stream(0);
	assert_whole();
	/* The table is missing. */
	r.n_lines = 0;
	restart(r.n);
	print(" and\n", SECOND);
	print("five\n", SECOND);
	expect_stream(0);
	assert_whole();
	print("six\n", SECOND);
	expect_stream(0);
	assert_whole();
	/* The log has other bytes than the server. */
	r.n = r.n_lines = 0;
	keep(NULL, START, "other", 5);
	r.n_lines = 0;
	expect_stream(-ESTALE);
	assert_int_equal(r.gaps, 0);
	size = r.n;
	follow();
	assert_int_equal(r.gaps, 1);
	assert_int_equal(r.n - size, k.n);
	assert_memory_equal(r.got + size, k.out, k.n);
}

/*
 * A crash of the machine lost the times of all lines except the last one, which is truncated. The
 * log was rotated since. Few lines before the truncated one remain, but its time identifies it.
 */
static void test_torn_and_untimed(void **state)
{
	for (size_t torn = 0; torn < strlen("line 9\n"); torn++) {
		fresh(torn);
		for (int i = 0; i < 10; i++) {
			char line[64];

			snprintf(line, sizeof(line), "line %d\n", i);
			print(line, SECOND);
		}
		expect_stream(0);
		assert_int_equal(r.n_lines, 10);
		r.lines[0].ns = 0;
		r.lines[1] = r.lines[9];
		r.n_lines = 2;
		restart(r.n - torn);
		k.rotated = 6;
		print("more\n", SECOND);
		finish();
	}
}

/* What the kubelet returns in place of output. */
static void test_messages(void **state)
{
	static const char gone[] = "unable to retrieve container logs for containerd://4711";
	static const char late[] = "2026-11-21T09:08:40.1Z out\nfailed to watch log file\n"
				   "2026-11-21T09:08:40.2Z put\n";
	struct spec_logline *l;

	for (size_t piece = 1; piece <= sizeof(gone); piece += sizeof(gone) - 1) {
		l = begin(false, r.window);
		for (size_t at = 0; at < strlen(gone); at += piece) {
			size_t n = min_of(piece, strlen(gone) - at);

			assert_int_equal(spec_logline_feed(l, gone + at, n, keep, NULL), 0);
		}
		assert_int_equal(end(l), 0);
		assert_string_equal(spec_logline_text(l), gone);
		assert_int_equal(r.n, 0);
		spec_logline_free(l);
	}
	l = begin(false, r.window);
	assert_string_equal(spec_logline_text(l), "");
	assert_int_equal(feed(l, late, strlen(late)), 0);
	assert_int_equal(r.n, 8);
	assert_memory_equal(r.got, "out\nput\n", 8);
	assert_string_equal(spec_logline_text(l), "");
	assert_int_equal(r.last_ns, START + SECOND / 5);
	assert_true(spec_logline_has_lines(l));
	/* The kubelet ends the stream with a message. */
	assert_int_equal(feed(l, gone, 6), 0);
	assert_int_equal(end(l), 0);
	assert_string_equal(spec_logline_text(l), "unable");
	assert_int_equal(r.n, 8);
	spec_logline_free(l);
	/* No byte of the log exists any more. */
	l = begin(false, r.window);
	assert_int_equal(feed(l, gone, strlen(gone)), 0);
	assert_int_equal(end(l), -ESTALE);
	spec_logline_free(l);
}

/*
 * The table is older than the log. Beyond its end, parts of lines may start where a runtime splits
 * them.
 */
static void test_known_parts(void **state)
{
	for (size_t rotated = 0; rotated < 4; rotated++) {
		fresh(rotated);
		print("one\n", 0);
		expect_stream(0);
		print_long(3 * ENTRY - 100, true);
		expect_stream(0);
		r.n_lines = 1;
		restart(r.n);
		k.rotated = rotated;
		print("two\n", SECOND);
		follow();
		assert_whole();
	}
}

/*
 * The known end is a few bytes of the last part of a long line, and the stream of another run
 * starts with the same bytes. That stream is not accepted as the rest of this run. But if nothing
 * else is available (FORCE), a stream that starts there after a rotation is accepted.
 */
static void test_like_a_part(void **state)
{
	static const char *const firsts[] = {"\n", "\nnext\n", "x", "xx\nnext\n"};

	for (size_t i = 0; i < array_size(firsts); i++) {
		struct kubelet this;
		char line[ENTRY + 1];
		size_t n;

		memset(line, 'x', ENTRY);
		line[ENTRY] = '\0';
		fresh(i);
		print("one\n", 0);
		print(line, SECOND);
		print(*firsts[i] == 'x' ? "x" : "\n", 0);
		expect_stream(0);
		n = r.n;
		this = k;
		k = (struct kubelet){.now = START + 5 * SECOND};
		print(firsts[i], 0);
		print("more\n", SECOND);
		expect_stream(-ESTALE);
		assert_int_equal(r.n, n);
		free(k.out);
		free(k.parts);
		k = this;
		k.rotated = 2;
		print("last\n", SECOND);
		follow();
		assert_whole();
	}
}

static int collect(void *data, int64_t ns, const char *bytes, size_t n)
{
	fwrite(bytes, 1, n, data);
	return 0;
}

/*
 * Read a stream of TEXT, which adds EXPECTED to the log. The known end of a log of 100 bytes is
 * BYTES, a line with the time NS. Return how the stream ends.
 */
static int one_stream(const char *bytes, int64_t ns, const char *text, const char *expected)
{
	struct spec_logline_known known = {.from = 100,
					   .size = 100 + strlen(bytes),
					   .bytes = strdup(bytes),
					   .lines = calloc(1, sizeof(struct spec_line)),
					   .n_lines = 1};
	struct spec_logline *l;
	cleanup_free char *got = NULL;
	size_t n;
	FILE *out = open_memstream(&got, &n);
	int err;

	known.lines[0] = (struct spec_line){100, ns};
	l = spec_logline_new(&known, false, &r.past);
	err = spec_logline_feed(l, text, strlen(text), collect, out);
	if (!err)
		err = spec_logline_end(l, collect, out);
	spec_logline_free(l);
	fclose(out);
	assert_string_equal(got, expected);
	return err;
}

/*
 * A line whose time was not stored is recognized by its text if that is long. A short text may
 * belong to any line.
 */
static void test_untimed(void **state)
{
	for (size_t n = 200; n <= 300; n += 100) {
		char line[512] = "", text[640];
		int err;

		fresh(n);
		memset(line, 'a', n);
		line[n] = '\n';
		snprintf(text, sizeof(text),
			 "2026-11-21T09:08:40.1Z %s2026-11-21T09:08:41.1Z new\n", line);
		err = one_stream(line, 0, text, n > 256 ? "new\n" : "");
		assert_int_equal(err, n > 256 ? 0 : -ESTALE);
	}
}

/*
 * Two streams that end at the same place are complete only if they were requested from the same
 * time on.
 */
static void test_ended_twice(void **state)
{
	static const char first[] = "2026-11-21T09:08:40.1Z x\n2026-11-21T09:08:40.1Z x\n";
	static const char later[] = "2026-11-21T09:08:45.1Z x\n2026-11-21T09:08:45.1Z x\n";
	const int64_t ns = START + SECOND / 10;

	assert_int_equal(one_stream("x\nx\nx\n", ns, first, ""), -EAGAIN);
	assert_int_equal(one_stream("x\nx\nx\n", ns + 5 * SECOND, later, ""), -EAGAIN);
	assert_int_equal(one_stream("x\nx\nx\n", ns + 5 * SECOND, later, ""), 0);
}

int main(void)
{
#define logline_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		logline_test(test_any_cut),
		logline_test(test_lost_lines),
		logline_test(test_torn),
		logline_test(test_any_end),
		logline_test(test_own_times),
		logline_test(test_clock_back_seen),
		logline_test(test_rotated),
		logline_test(test_known),
		logline_test(test_torn_and_untimed),
		logline_test(test_messages),
		logline_test(test_known_parts),
		logline_test(test_like_a_part),
		logline_test(test_untimed),
		logline_test(test_ended_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
