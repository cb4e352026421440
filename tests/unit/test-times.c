/* SPDX-License-Identifier: MIT */
/* Times beside a log: finding, mending what was torn, and files that hold anything. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/times.h"

#define N 200

static int setup(void **state)
{
	static int fd;
	FILE *file = tmpfile();

	assert_non_null(file);
	fd = dup(fileno(file));
	fclose(file);
	assert_true(fd >= 0);
	*state = &fd;
	return 0;
}

static int teardown(void **state)
{
	return close(*(int *)*state);
}

/* Lines of 10 bytes from byte 5 on, a ns each. */
static int fill(void **state)
{
	int fd = *(int *)*state;

	for (unsigned i = 0; i < N; i++) {
		struct times_record r = {.at = 5 + 10 * i, .ns = 1000 + i};
		uint8_t bytes[TIMES_RECORD];

		times_encode(&r, bytes);
		assert_int_equal(pwrite(fd, bytes, sizeof(bytes), i * TIMES_RECORD), sizeof(bytes));
	}
	return fd;
}

static void test_find(void **state)
{
	int fd = fill(state);
	struct times_record v[N + 1];
	uint64_t i;

	assert_int_equal(times_find(fd, 4, &i), -ENOENT);
	for (uint64_t at = 5; at < 10 * N + 100; at++) {
		assert_int_equal(times_find(fd, at, &i), 0);
		assert_int_equal(i, min_of((at - 5) / 10, (uint64_t)N - 1));
	}
	assert_int_equal(times_read(fd, 3, v, N + 1), N - 3);
	for (unsigned k = 0; k < N - 3; k++) {
		assert_int_equal(v[k].at, 35 + 10 * k);
		assert_int_equal(v[k].ns, 1003 + k);
	}
	assert_int_equal(times_read(fd, N, v, 1), 0);
}

static uint64_t mended(int fd, uint64_t size)
{
	struct stat st;

	assert_int_equal(times_mend(fd, size), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size % TIMES_RECORD, 0);
	return (uint64_t)st.st_size / TIMES_RECORD;
}

static void test_mend(void **state)
{
	int fd = fill(state);

	assert_int_equal(pwrite(fd, "torn", 4, N * TIMES_RECORD), 4);
	assert_int_equal(mended(fd, 100000), N);
	/* The line at 1005 has a byte; that at 1015 was never written. */
	assert_int_equal(mended(fd, 1006), 101);
	assert_int_equal(mended(fd, 1005), 100);
	assert_int_equal(mended(fd, 0), 0);
	assert_int_equal(mended(fd, 10), 0);
}

/* What does not go on in order is not believed. */
static void test_rubbish(void **state)
{
	int fd = fill(state);
	struct times_record v[N];
	char rubbish[TIMES_RECORD];
	uint64_t i;

	for (unsigned k = 0; k < 256; k++) {
		ssize_t n;

		memset(rubbish, (int)k, sizeof(rubbish));
		assert_int_equal(pwrite(fd, rubbish, sizeof(rubbish), 50 * TIMES_RECORD), 16);
		n = times_read(fd, 0, v, N);
		assert_true(n == 50 || n == 51);
		for (ssize_t at = 1; at < n; at++)
			assert_true(v[at].at > v[at - 1].at);
		(void)times_find(fd, 505 + k, &i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mend, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rubbish, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
