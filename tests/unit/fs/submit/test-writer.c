/* SPDX-License-Identifier: MIT */
/* fs/submit/writer.c: what texts of /proc say, and what this very process's /proc says. */
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
	assert_int_equal(writer_parse_tgid("Name:\tcp\nUmask:\t0022\nTgid:\t4711\nNgid:\t0\n"),
			 4711);
	assert_int_equal(writer_parse_tgid("Tgid: 1\n"), 1);
	assert_int_equal(writer_parse_tgid(""), 0);
	assert_int_equal(writer_parse_tgid("Name:\tcp\n"), 0);
	assert_int_equal(writer_parse_tgid("Name:\tTgid:\t12\nTgid:\t34\n"), 34);
	assert_int_equal(writer_parse_tgid("NoTgid:\t12\n"), 0);
	assert_int_equal(writer_parse_tgid("Tgid:\t-5\n"), 0);
	assert_int_equal(writer_parse_tgid("Tgid:\t12x\n"), 0);
	assert_int_equal(writer_parse_tgid("Tgid:\t99999999999999999999999\n"), 0);
	assert_int_equal(writer_parse_tgid("Tgid:\t2147483647\n"), INT32_MAX);
	assert_int_equal(writer_parse_tgid("Tgid:\t4294967297\n"), 0); /* it is not taken for 1 */
}

static void test_exec(void **state)
{
	bool in_exec = true;

	assert_true(writer_parse_exec("Name:\ttrue\nVmStk:\t     132 kB\nVmExe:\t       0 kB\n"));
	assert_false(writer_parse_exec("Name:\ttrue\nVmStk:\t     132 kB\nVmExe:\t      16 kB\n"));
	/* It is ending, or the text is cut off. */
	assert_false(writer_parse_exec("Name:\ttrue\nThreads:\t1\n"));
	assert_int_equal(writer_process(getpid(), &in_exec), getpid());
	assert_false(in_exec);
	in_exec = true;
	assert_int_equal(writer_process(0, &in_exec), 0);
	assert_false(in_exec);
}

static void test_fdinfo(void **state)
{
	struct writer_fd fd;

	assert_int_equal(writer_parse_fdinfo("pos:\t0\nflags:\t0100001\nmnt_id:\t30\nino:\t99\n",
					     &fd),
			 0);
	assert_true(fd.writable);
	assert_int_equal(fd.ino, 99);
	assert_int_equal(writer_parse_fdinfo("pos:\t0\nflags:\t02100002\nmnt_id:\t30\n"
					     "ino:\t18446744073709551615\n",
					     &fd),
			 0);
	assert_true(fd.writable);
	assert_true(fd.ino == UINT64_MAX);
	assert_int_equal(writer_parse_fdinfo("flags:\t0100000\nino:\t99\n", &fd), 0);
	assert_false(fd.writable);
	/* A descriptor with O_PATH is open, but can't be used to write. */
	assert_int_equal(writer_parse_fdinfo("flags:\t010000001\nino:\t99\n", &fd), 0);
	assert_false(fd.writable);
	assert_int_equal(writer_parse_fdinfo("pos:\t0\nflags:\t0100001\nmnt_id:\t30\n", &fd),
			 -EINVAL);
	assert_int_equal(writer_parse_fdinfo("ino:\t1\n", &fd), -EINVAL);
	assert_int_equal(writer_parse_fdinfo("", &fd), -EINVAL);
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
	/* A file of the same number on another filesystem is another file. */
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
 * --- at which close a real writer counts as done. A story is a list of words: a letter stands for a process, "S" means
 * that it closes a descriptor, "S!" that it writes, "?!" that the file changes and it is not known by whom. "S=" is a
 * close that has to be the end; at any other close the writer must not count as done ---
 */

static const char *const stories[] = {
	/* cp, tee, an editor, Python: one process opens, writes and closes. */
	"C! C! C=",
	/* dd, and a shell's child for `cat a > f`: it first puts the descriptor in the place of another one. */
	"D D! D! D=",
	/*
	 * A shell's `{ a; b; } > f`: the shell puts the file aside, its children write and end, and it takes its output
	 * back.
	 */
	"S A! A B! B S=",
	/* The same with commands that are built in. */
	"S S! S! S=",
	"S S! B! B S! S=",
	/* A program that the shell starts in between has the file too, and ends without having written. */
	"S S! X B! B Y S=",
	/* One process writes, and others that have inherited the file end meanwhile. */
	"P! X P! Y P=",
	/* A child of the writer writes in between. */
	"P! A! A P! P=",
	/* subprocess.run(stdout=f): the child closes its copy when it begins, and is the only process that writes. */
	"A A! A= P=",
	/* sh -c 'a; b' in the place of that child. */
	"A B! B C! C A=",
	/*
	 * Popen(stdout=f), and then f.close(): the process that closes first may only have put the file aside, so the
	 * end is the release.
	 */
	"A P A! A",
	/* exec 3> f; a >&3; b >&3: nothing tells that the shell still has the file. What b writes is a new content. */
	"A! A= A= B! B= B= S=",
	/* ftruncate, and nothing else. */
	"?! P=",
	/* One process reads and closes after another has written. */
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

/* When more processes write than are noted, nobody knows which is the last. */
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
