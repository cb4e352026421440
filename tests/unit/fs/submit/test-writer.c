/* SPDX-License-Identifier: MIT */
/* fs/submit/writer.c: parsing texts of /proc, and this process's own /proc. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fs/submit/writer.h"
#include "tests/unit/unit.h"

static void test_tgid(void **state)
{
	static const struct {
		const char *status;
		pid_t tgid; /* 0: refused */
	} rows[] = {
		{"Name:\tcp\nUmask:\t0022\nTgid:\t4711\nNgid:\t0\n", 4711},
		{"Name:\tTgid:\t12\nTgid:\t34\n", 34},
		{"\nTgid:\t2147483647\n", INT32_MAX},
		{"\nTgid:\t4294967297\n", 0}, /* not truncated to 1 */
		{"\nTgid:\t99999999999999999999999\n", 0},
		{"Name:\tcp\nTgid:\t-5\n", 0},
		{"Name:\tcp\nNoTgid:\t12\n", 0},
		{"", 0},
	};

	for (size_t i = 0; i < array_size(rows); i++)
		assert_int_equal(writer_parse_tgid(rows[i].status), rows[i].tgid);
}

static void test_exec(void **state)
{
	bool in_exec = true;

	assert_true(writer_parse_exec("Name:\ttrue\nVmStk:\t     132 kB\nVmExe:\t       0 kB\n"));
	assert_false(writer_parse_exec("Name:\ttrue\nVmStk:\t     132 kB\nVmExe:\t      16 kB\n"));
	/* The process is ending, or the text is truncated. */
	assert_false(writer_parse_exec("Name:\ttrue\nThreads:\t1\n"));
	assert_int_equal(writer_process(getpid(), &in_exec), getpid());
	assert_false(in_exec);
	in_exec = true;
	assert_int_equal(writer_process(0, &in_exec), 0);
	assert_false(in_exec);
}

static void test_fdinfo(void **state)
{
	static const struct {
		const char *text;
		int err;
		bool writable;
		uint64_t ino;
	} rows[] = {
		{"pos:\t0\nflags:\t0100001\nmnt_id:\t30\nino:\t99\n", 0, true, 99},
		{"pos:\t0\nflags:\t02100002\nino:\t18446744073709551615\n", 0, true, UINT64_MAX},
		{"pos:\t0\nflags:\t0100000\nino:\t99\n", 0, false, 99},
		/* A descriptor with O_PATH is open, but can't be used for writing. */
		{"pos:\t0\nflags:\t010000001\nino:\t99\n", 0, false, 99},
		{"pos:\t0\nflags:\t0100001\nmnt_id:\t30\n", -EINVAL, false, 0},
		{"pos:\t0\nino:\t1\n", -EINVAL, false, 0},
		{"", -EINVAL, false, 0},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct writer_fd fd;

		assert_int_equal(writer_parse_fdinfo(rows[i].text, &fd), rows[i].err);
		if (rows[i].err == 0) {
			assert_int_equal(fd.writable, rows[i].writable);
			assert_true(fd.ino == rows[i].ino);
		}
	}
}

static void *thread_process(void *data)
{
	pid_t *ret = data;

	*ret = writer_process((pid_t)syscall(SYS_gettid), NULL);
	return NULL;
}

static void test_process(void **state)
{
	pthread_t thread;
	pid_t pid = 0;

	assert_int_equal(pthread_create(&thread, NULL, thread_process, &pid), 0);
	pthread_join(thread, NULL);
	assert_int_equal(pid, getpid());
	assert_int_equal(writer_process(0, NULL), 0);
	assert_int_equal(writer_process(-1, NULL), 0);
}

static void test_holds(void **state)
{
	char path[] = "/tmp/kxfs-writer-XXXXXX";
	int fd = mkstemp(path);
	int readable = open(path, O_RDONLY | O_CLOEXEC), copy;
	struct stat st;
	pid_t child;

	assert_true(fd >= 0 && readable >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(writer_holds(getpid(), st.st_ino, "/tmp"), 1);
	copy = dup(fd);
	assert_int_equal(writer_holds(getpid(), st.st_ino, "/tmp"), 2);
	close(copy);
	/* A file with the same inode number on another filesystem is a different file. */
	assert_int_equal(writer_holds(getpid(), st.st_ino, "/proc"), 0);
	/* In doubt it counts as the same file. */
	assert_int_equal(writer_holds(getpid(), st.st_ino, "/nonexistent"), 1);
	close(fd);
	assert_int_equal(writer_holds(getpid(), st.st_ino, "/tmp"), 0);
	close(readable);
	unlink(path);

	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(writer_holds(child, st.st_ino, "/tmp"), -ENOENT);
}

/*
 * --- the close after which a real writer counts as done ---
 *
 * A story is a list of events. A letter is a process. "S" means that S closes a descriptor, and
 * "S!" that it writes. "?!" means that the file changes and the writer is unknown. "S=" is a close
 * that must count as the end. At every other close, the writer must not count as done.
 */

static const char *const stories[] = {
	/* cp, tee, an editor, Python: one process opens, writes and closes. */
	"C! C! C=",
	/*
	 * dd, and a shell's child for `cat a > f`: the process first moves the descriptor to
	 * another number.
	 */
	"D D! D! D=",
	/*
	 * A shell's `{ a; b; } > f`: the shell saves its stdout and redirects it, its children
	 * write and exit, and the shell restores its stdout.
	 */
	"S A! A B! B S=",
	/* The same with built-in commands. */
	"S S! B! B S! S=",
	/* The shell also starts a program that has the file open and exits without writing. */
	"S S! X B! B Y S=",
	/* One process writes. Others that inherited the file exit meanwhile. */
	"P! X P! Y P=",
	/* A child of the writer also writes. */
	"P! A! A P! P=",
	/*
	 * subprocess.run(stdout=f): the child closes its copy when it starts, and is the only
	 * process that writes.
	 */
	"A A! A= P=",
	/* sh -c 'a; b' instead of that child. */
	"A B! B C! C A=",
	/*
	 * Popen(stdout=f), then f.close(): the process that closes first may only have moved the
	 * descriptor, so the end is the release.
	 */
	"A P A! A",
	/*
	 * exec 3> f; a >&3; b >&3: nothing shows that the shell still has the file open. What b
	 * writes counts as new contents.
	 */
	"A! A= A= B! B= B= S=",
	/* ftruncate, and nothing else. */
	"?! P=",
	/* One process reads, and closes after another one has written. */
	"A! B A=",
};

static void test_stories(void **state)
{
	for (size_t i = 0; i < array_size(stories); i++) {
		struct holders h = {0};

		for (const char *p = stories[i]; *p; p += strcspn(p, " "), p += *p == ' ') {
			uint64_t who = *p == '?' ? 0 : (uint64_t)*p;

			if (p[1] == '!')
				holders_wrote(&h, who);
			else if (holders_closed(&h, who) != (p[1] == '='))
				fail_msg("%s: at %s", stories[i], p);
		}
	}
}

/* If there are more writers than kxfs records, it is unknown which one is the last. */
static void test_crowd(void **state)
{
	struct holders h = {0};

	for (uint64_t who = 1; who <= HOLDERS_MAX; who++)
		holders_wrote(&h, who);
	for (uint64_t who = 1; who < HOLDERS_MAX; who++)
		assert_false(holders_closed(&h, who));
	assert_true(holders_closed(&h, HOLDERS_MAX));
	for (uint64_t who = 1; who <= HOLDERS_MAX + 1; who++)
		holders_wrote(&h, who);
	for (uint64_t who = 1; who <= HOLDERS_MAX + 1; who++)
		assert_false(holders_closed(&h, who));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stories), cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_tgid),	cmocka_unit_test(test_exec),
		cmocka_unit_test(test_fdinfo),	cmocka_unit_test(test_process),
		cmocka_unit_test(test_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
