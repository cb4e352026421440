/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing whole files. The disk transfers only a few bytes per call, and calls are
 * interrupted. The test replaces libc's functions.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/base/file.h"
#include "backend/base/random.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#define PIECE 7

static char dir[64];
static unsigned calls;
static bool full;	    /* write(2) returns 0 */
static const char *no_room; /* the disk is full for files whose name contains this */

/* Interrupt every third call. */
static bool interrupted(void)
{
	errno = EINTR;
	return ++calls % 3 == 0;
}

ssize_t write(int fd, const void *p, size_t n)
{
	char link[32], path[128] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	errno = ENOSPC;
	if (no_room && readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, no_room))
		return -1;
	if (full)
		return 0;
	return interrupted() ? -1 : syscall(SYS_write, fd, p, min_of(n, (size_t)PIECE));
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
	return interrupted() ? -1 : syscall(SYS_pwrite64, fd, p, min_of(n, (size_t)PIECE), off);
}

ssize_t pread(int fd, void *p, size_t n, off_t off)
{
	return interrupted() ? -1 : syscall(SYS_pread64, fd, p, min_of(n, (size_t)PIECE), off);
}

/* The calls so far: 'f' is the sync of a file, 'd' the sync of a directory, 'r' a rename. */
static char asked[16];
static char broken; /* which of these calls fails */

static int ask(char what)
{
	size_t n = strlen(asked);

	if (n + 1 < sizeof(asked))
		asked[n] = what;
	errno = EIO;
	return what == broken ? -1 : 0;
}

int fsync(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return ask(S_ISDIR(st.st_mode) ? 'd' : 'f');
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	return ask('r') ? -1 : (int)syscall(SYS_renameat2, from_at, from, to_at, to, 0);
}

static char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void expect(const char *name, const char *text)
{
	cleanup_free char *got = NULL;
	size_t len = 0;

	assert_int_equal(file_read(in_dir(name), 1000, &got, &len), 0);
	assert_int_equal(len, strlen(text));
	assert_string_equal(got, text);
}

static void test_write_and_read(void **state)
{
	static const char text[] = "a text that is written and read in more than one piece";
	cleanup_free char *got = NULL;
	size_t len;

	assert_int_equal(file_write(dir, "a", text, strlen(text)), 0);
	expect("a", text);
	assert_int_equal(file_write(dir, "a", "", 0), 0);
	expect("a", "");
	assert_int_equal(access(in_dir(".a.new"), F_OK), -1);

	assert_int_equal(file_write(dir, "a", "12345", 5), 0);
	assert_int_equal(file_read(in_dir("a"), 4, &got, &len), -EFBIG);
	assert_int_equal(file_read(in_dir("none"), 4, &got, &len), -ENOENT);
	assert_int_equal(file_read(dir, 4000, &got, &len), -EINVAL);
	assert_int_equal(file_sync_dir(dir), 0);
}

/*
 * All writes are synced before file_write or file_rename returns. A file that replaces another one
 * is never visible in part.
 */
static void test_order(void **state)
{
	memset(asked, 0, sizeof(asked));
	assert_int_equal(file_write(dir, "o", "old", 3), 0);
	assert_string_equal(asked, "frd");
	memset(asked, 0, sizeof(asked));
	assert_int_equal(file_make(dir, "m", "new", 3), 0);
	assert_string_equal(asked, "rfd");
	expect("m", "new");
	for (const char *p = "rfd"; *p; p++) {
		broken = *p;
		assert_int_equal(file_make(dir, "n", "new", 3), -EIO);
		assert_int_equal(access(in_dir("n"), F_OK), -1);
		assert_int_equal(access(in_dir(".n.new"), F_OK), -1);
		assert_int_equal(file_write(dir, "o", "new", 3), -EIO);
		expect("o", *p == 'd' ? "new" : "old");
		assert_int_equal(access(in_dir(".o.new"), F_OK), -1);
	}
	broken = 0;
}

static void test_links(void **state)
{
	cleanup_free char *got = NULL;
	size_t len;

	assert_int_equal(file_write(dir, "b", "text", 4), 0);
	assert_int_equal(symlink("b", in_dir("link")), 0);
	assert_int_equal(file_read(in_dir("link"), 10, &got, &len), -ELOOP);
	assert_int_equal(file_read_other(in_dir("link"), 10, &got, &len), 0);
	assert_string_equal(got, "text");
}

/*
 * After a crash of the machine, a file may exist under both its old and its new name. Later writes
 * do not change that file.
 */
static void test_two_names(void **state)
{
	cleanup_free char *begun = text_copy(in_dir(".u.new"));

	assert_int_equal(file_write(dir, "t", "text", 4), 0);
	assert_int_equal(link(in_dir("t"), begun), 0);
	assert_int_equal(file_write(dir, "u", "other", 5), 0);
	expect("t", "text");
	expect("u", "other");
}

static void test_places(void **state)
{
	cleanup_fd int fd = open(in_dir("c"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cleanup_free char *got = NULL;
	size_t len;

	assert_int_equal(file_write_all(fd, "0123456789", 10), 0);
	assert_int_equal(file_pwrite_all(fd, "abcdefghij", 10, 5), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 10);
	assert_int_equal(file_read_fd(fd, 15, &got, &len), 0);
	assert_int_equal(len, 15);
	assert_string_equal(got, "01234abcdefghij");
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 10);
	full = true;
	assert_int_equal(file_write_all(fd, "x", 1), -EIO);
	full = false;
}

static void test_aside(void **state)
{
	cleanup_free char *from = strdup(in_dir("d")), *to = strdup(in_dir("aside/e"));
	cleanup_free char *first = NULL, *second = NULL;

	assert_int_equal(file_write(dir, "d", "1", 1), 0);
	assert_int_equal(file_aside_state(from, dir, "e", &first), 0);
	assert_string_equal(first, to);
	assert_int_equal(file_write(dir, "d", "2", 1), 0);
	assert_int_equal(file_aside_state(from, dir, "e", &second), 0);
	assert_string_equal(second, in_dir("aside/e.1"));
	expect("aside/e", "1");
	expect("aside/e.1", "2");
}

/* Reserved disk space is used once, when the disk is full. If it is not needed, it is released. */
static void test_room(void **state)
{
	static const char text[] = "the last one, of 33 bytes in all.";

	assert_int_equal(file_write(dir, "r", "first", 5), 0);
	no_room = ".new";
	assert_int_equal(file_write_last(dir, "r", text, strlen(text)), -ENOSPC);
	assert_int_equal(file_keep_room(dir, "r", strlen(text) - 1), 0);
	assert_int_equal(file_write_last(dir, "r", text, strlen(text)), -ENOSPC);
	expect("r", "first");
	assert_int_equal(file_keep_room(dir, "r", 1000), 0);
	assert_int_equal(file_write_last(dir, "r", text, strlen(text)), 0);
	expect("r", text);
	assert_int_equal(file_write_last(dir, "r", "more", 4), -ENOSPC);
	expect("r", text);
	no_room = NULL;
	assert_int_equal(file_keep_room(dir, "r", 1000), 0);
	assert_int_equal(access(in_dir(".r.room"), F_OK), 0);
	assert_int_equal(file_write_last(dir, "r", "more", 4), 0);
	assert_int_equal(access(in_dir(".r.room"), F_OK), -1);
	expect("r", "more");
	unlink(in_dir("r"));
}

static void test_backoff(void **state)
{
	static const unsigned pauses[] = {100, 200, 400, 800, 1000, 1000};
	struct backoff b = backoff_begin(100, 1000);

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < array_size(pauses); i++) {
			assert_in_range(backoff_next(&b, 0), pauses[i] * 3 / 4, pauses[i] * 5 / 4);
			assert_int_equal(b.failures, i + 1);
		}
		backoff_reset(&b);
	}
	for (int i = 0; i < 100; i++)
		assert_in_range(backoff_next(&b, 5000), 5000, 8400);
	b.failures = UINT32_MAX - 1;
	assert_in_range(backoff_next(&b, 0), 750, 1250);
}

/*
 * For one random number in 2000, the suffix is too short to be recognized. Then another number is
 * drawn.
 */
static void test_name(void **state)
{
	for (int i = 0; i < 100000; i++) {
		char suffix[SPEC_SUFFIX_MAX];
		uint64_t v;

		assert_int_equal(random_name(&v), 0);
		spec_name_suffix(v, suffix);
		assert_true(spec_name_is_suffix(suffix));
	}
}

static int setup(void **state)
{
	strcpy(dir, "/tmp/kxfs-file-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	return scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),	  cmocka_unit_test(test_write_and_read),
		cmocka_unit_test(test_order),	  cmocka_unit_test(test_links),
		cmocka_unit_test(test_places),	  cmocka_unit_test(test_aside),
		cmocka_unit_test(test_backoff),	  cmocka_unit_test(test_name),
		cmocka_unit_test(test_two_names),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
