/* SPDX-License-Identifier: MIT */
/*
 * The table of lines. Each added line must be found again, even if the table is truncated, grows,
 * has times that jump, or contains damaged records. The fuzz target for lines reads any bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "backend/output/lines.h"
#include "tests/unit/unit.h"

#define N 5000

static struct {
	int fd, log;
	struct lines_encoder e;
	struct spec_line lines[N + 1]; /* the lines that were added */
	size_t n;
} rig;

static int new_file(void)
{
	FILE *file = tmpfile();
	int fd;

	assert_non_null(file);
	fd = dup(fileno(file));
	fclose(file);
	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	rig.fd = new_file();
	rig.log = new_file();
	return 0;
}

static int teardown(void **state)
{
	close(rig.fd);
	close(rig.log);
	return 0;
}

static void add(int64_t ns, const char *bytes, size_t n)
{
	uint8_t table[LINES_ADDED_MAX];
	uint64_t at = rig.e.table;
	size_t len = lines_add(&rig.e, ns, bytes, n, table);

	assert_true(len <= sizeof(table) && rig.e.table == at + len);
	assert_int_equal(pwrite(rig.fd, table, len, (off_t)at), len);
	assert_int_equal(pwrite(rig.log, bytes, n, (off_t)(rig.e.size - n)), n);
}

/* Add a line of 1 to 10 bytes. */
static void add_line(int64_t ns)
{
	size_t n = 1 + rig.n % 10;
	char text[10];

	memset(text, 'x', sizeof(text));
	text[n - 1] = '\n';
	rig.lines[rig.n++] = (struct spec_line){rig.e.size, ns};
	add(ns, text, n);
}

/*
 * Assert that each line is found by its offset, and by the offset of its stamp, with the right
 * time.
 */
static void expect_all(size_t n)
{
	struct lines_record got;
	struct lines_reader r;

	lines_open(&r, rig.fd);
	for (size_t i = 0; i < n; i += 1 + n / 500) {
		assert_int_equal(lines_find(&r, 0, rig.lines[i].at, &got), 0);
		assert_true(got.line.at <= rig.lines[i].at && got.number <= i);
		assert_int_equal(got.line.ns, rig.lines[i].ns);
		assert_int_equal(got.line.at, rig.lines[got.number].at);
		assert_int_equal(lines_find(&r, 28, rig.lines[i].at + 28 * i, &got), 0);
		assert_int_equal(got.line.ns, rig.lines[i].ns);
		assert_int_equal(got.line.at, rig.lines[got.number].at);
	}
}

/*
 * Read the next record. The disk refuses the first read of a block. That changes nothing: the
 * caller gets the same record later.
 */
static int next_record(struct lines_reader *r, struct lines_record *ret, unsigned *refused)
{
	int err;

	r->fd = -1;
	err = lines_next(r, ret);
	r->fd = rig.fd;
	if (err != -EBADF)
		return err;
	++*refused;
	return lines_next(r, ret);
}

static void test_find(void **state)
{
	struct lines_record got, next;
	size_t records = 1;
	unsigned refused = 0;
	struct lines_reader r;

	lines_open(&r, rig.fd);
	assert_int_equal(lines_find(&r, 0, 0, &got), -ENOENT);
	/* Sometimes the clock goes back, or stands still. */
	for (int64_t i = 0; i < N; i++)
		add_line(1700000000000000000 + i / 3 * 1000 - (i % 17 ? 0 : 5000000000));
	assert_int_equal(rig.e.lines, N);
	assert_true(rig.e.table > 2 * LINES_BLOCK && rig.e.table < 6 * N);
	expect_all(N);
	assert_int_equal(lines_find(&r, 0, 0, &got), 0);
	for (; next_record(&r, &next, &refused) == 0; got = next) {
		assert_true(next.line.at > got.line.at);
		assert_int_equal(next.line.ns, rig.lines[next.number].ns);
		records++;
	}
	assert_true(records > N / 3 && records < N);
	assert_true(refused >= 2);
	/* The table grows while it is read. */
	add_line(5);
	assert_int_equal(lines_next(&r, &got), 0);
	assert_int_equal(got.number, N);
	assert_int_equal(got.line.ns, 5);
	assert_int_equal(lines_next(&r, &got), -ENOENT);
}

static void test_shared(void **state)
{
	static char chunk[LINES_SPAN];

	memset(chunk, 'x', sizeof(chunk));
	add(7, "begun", 5);
	add(8, " and", 4); /* this continues the line with time 7 */
	assert_int_equal(rig.e.lines, 1);
	/* the rest of the line keeps time 7; the next line has time 9 */
	add(9, " ended\nnext\n", 12);
	add(9, "third\n", 6);
	add(0, "fourth\n", 7); /* time unknown: use the time of the previous line */
	assert_int_equal(rig.e.lines, 4);
	assert_int_equal(rig.e.last.line.ns, 9);
	assert_int_equal(rig.e.last.line.at, 16);
	assert_int_equal(rig.e.last.number, 1);
	/*
	 * A line that is far after the last record gets its own record. A long line needs only one.
	 */
	add(9, chunk, sizeof(chunk));
	add(9, chunk, sizeof(chunk));
	assert_int_equal(rig.e.last.number, 1);
	add(9, "\nx", 2);
	assert_int_equal(rig.e.last.number, 5);
	assert_true(rig.e.midline);
}

static void test_mend(void **state)
{
	for (unsigned i = 0; i < N - 250; i++)
		add_line(1000 + i * i);
	/*
	 * However much of the table and the log is cut off, the table matches the log afterwards.
	 */
	for (unsigned cut = 0; cut < 100; cut++) {
		struct lines_encoder e;
		uint64_t size = rig.e.size - 3 * cut, table = rig.e.table - 2 * cut;

		assert_int_equal(ftruncate(rig.fd, (off_t)table), 0);
		assert_int_equal(lines_mend(rig.fd, rig.log, size, &e), 0);
		assert_int_equal(e.size, size);
		assert_true(e.last.line.at < size);
		assert_int_equal(lseek(rig.fd, 0, SEEK_END), e.table);
		rig.e = e;
		expect_all(e.last.number);
		if (rig.e.midline)
			add(1, "\n", 1);
		rig.n = e.lines;
		add_line(4000 + cut);
		assert_int_equal(rig.e.last.line.ns, 4000 + cut);
	}
}

/* Lines without a table get one with unknown times. */
static void test_none(void **state)
{
	struct lines_record got;
	struct lines_reader r;

	for (unsigned i = 0; i < N; i++)
		add_line(1000 + i);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ftruncate(rig.fd, i ? 24 + 3 : 0), 0);
		assert_int_equal(lines_mend(rig.fd, rig.log, rig.e.size, &rig.e), 0);
		assert_int_equal(rig.e.lines, N);
	}
	lines_open(&r, rig.fd);
	assert_int_equal(lines_find(&r, 0, 0, &got), 0);
	assert_int_equal(got.line.ns, 0);
}

static void put_bytes(size_t at, const char *bytes, size_t n)
{
	assert_int_equal(pwrite(rig.fd, bytes, n, (off_t)at), n);
}

/* An impossible record is ignored. The previous record then counts as the last one. */
static void test_damaged_records(void **state)
{
	static const char zeros[LINES_BLOCK];
	/* 9 lines of 5 bytes; a number of more than 64 bits; 2 lines of 1 byte */
	static const char more[24] = "\5\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\11\0\0\0\0\0\0";
	static const char large[] = "\377\377\377\377\377\377\377\377\377\2\0\1";
	static const char lines[] = "\1\0\2";
	struct lines_record got;
	struct lines_reader r;

	add_line(1000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ftruncate(rig.fd, 24), 0);
		put_bytes(24, i ? lines : large, i ? sizeof(lines) - 1 : sizeof(large) - 1);
		lines_open(&r, rig.fd);
		assert_int_equal(lines_find(&r, 0, INT64_MAX, &got), 0);
		assert_int_equal(got.line.at, 0);
	}
	put_bytes(0, more, sizeof(more));
	lines_open(&r, rig.fd);
	assert_int_equal(lines_find(&r, 0, INT64_MAX, &got), -ENOENT);
	/* A block that is empty after a crash of the machine. */
	rig.e = (struct lines_encoder){0};
	rig.n = 0;
	while (rig.e.table <= LINES_BLOCK)
		add_line(1000 + (int64_t)rig.n * 1000);
	put_bytes(LINES_BLOCK, zeros, sizeof(zeros));
	lines_open(&r, rig.fd);
	assert_int_equal(lines_find(&r, 0, INT64_MAX, &got), 0);
	assert_int_equal(got.number, rig.n - 2);
}

int main(void)
{
#define lines_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		lines_test(test_find), lines_test(test_shared),		 lines_test(test_mend),
		lines_test(test_none), lines_test(test_damaged_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
