/* SPDX-License-Identifier: MIT */
/* The state directory: its default path, what is refused and with which error, and its lock. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#include "backend/base/file.h"
#include "fs/mount/state.h"

#define FOREVER_MS 120000

static char top[64];

static const char *at(const char *name)
{
	static char path[4][256];
	static int next;

	next = (next + 1) % 4;
	snprintf(path[next], sizeof(path[0]), "%s%s%s", top, name[0] ? "/" : "", name);
	return path[next];
}

static int setup(void **state)
{
	snprintf(top, sizeof(top), "/tmp/kxfs-test-state-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	return scratch_remove(top);
}

static struct state *opened(const char *dir, const char *mountpoint)
{
	struct state *s = NULL;
	char *why = NULL;

	if (state_open(dir, mountpoint, 0, &s, &why) < 0)
		fail_msg("%s: %s", dir, why);
	return s;
}

/* Assert that opening DIR is refused with ERR and WHY. "%s" in WHY is the test's directory. */
static void assert_refused(const char *dir, const char *mountpoint, int err, const char *why)
{
	struct state *s = NULL;
	char *text = NULL;
	char *want = NULL;
	const char *rest = strstr(why, "%s");

	assert_int_equal(state_open(dir, mountpoint, 0, &s, &text), err);
	assert_null(s);
	assert_true(asprintf(&want, "%.*s%s%s", (int)(rest - why), why, top, rest + 2) > 0);
	assert_string_equal(text, want);
	free(text);
	free(want);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static char *read_lock(const char *dir)
{
	char *path = NULL;
	char *text = calloc(1, 512);
	FILE *f;

	assert_true(asprintf(&path, "%s/lock", dir) > 0);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_true(fread(text, 1, 511, f) > 0);
	fclose(f);
	free(path);
	return text;
}

static void test_default(void **state)
{
	char *dir = NULL;
	char *why = NULL;

	setenv("XDG_STATE_HOME", "/xdg", 1);
	assert_int_equal(state_default("local", &dir, &why), 0);
	assert_string_equal(dir, "/xdg/kxfs/local");
	free(dir);
	setenv("XDG_STATE_HOME", "relative", 1); /* must be ignored */
	setenv("HOME", "/h/ada", 1);
	assert_int_equal(state_default("local", &dir, &why), 0);
	assert_string_equal(dir, geteuid() == 0 ? "/var/lib/kxfs/local"
						: "/h/ada/.local/state/kxfs/local");
	free(dir);
}

static void test_made_private(void **state)
{
	struct stat st;
	struct state *s;

	s = opened(at("a/b/c//"), "/mnt");
	assert_string_equal(state_dir(s), at("a/b/c"));
	assert_int_equal(stat(at("a"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(at("a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	state_close(s);
	/* A directory that was used before, with other permissions. */
	assert_int_equal(chmod(at("a/b/c"), 0755), 0);
	s = opened(at("a/b/c"), "/mnt");
	assert_int_equal(stat(at("a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	state_close(s);
}

static void test_relative(void **state)
{
	char *cwd = getcwd(NULL, 0);
	struct state *s;

	assert_int_equal(chdir(top), 0);
	s = opened("new/dir", "/mnt");
	assert_string_equal(state_dir(s), at("new/dir"));
	state_close(s);
	assert_int_equal(chdir(cwd), 0);
	free(cwd);
}

static void test_not_ours(void **state)
{
	assert_int_equal(mkdir(at("full"), 0755), 0);
	write_file(at("full/thesis.tex"), "x");
	assert_refused(
		at("full"), "/mnt", -ENOTEMPTY,
		"%s/full: not empty, and not a state directory of kxfs: give an empty directory with "
		"-o state=DIR");
	write_file(at("file"), "x");
	assert_refused(at("file"), "/mnt", -ENOTDIR,
		       "%s/file: kxfs can't store its state here: Not a directory: give another "
		       "directory with -o state=DIR");
	assert_refused(
		at("file/below"), "/mnt", -ENOTDIR,
		"%s/file/below: kxfs can't store its state here: Not a directory: give another "
		"directory with -o state=DIR");
	if (geteuid() == 0) {
		assert_int_equal(mkdir(at("theirs"), 0777), 0);
		assert_int_equal(chown(at("theirs"), 7, 7), 0);
		assert_refused(
			at("theirs"), "/mnt", -EPERM,
			"%s/theirs: belongs to another user (uid 7), who could change your jobs: "
			"give a directory of your own with -o state=DIR");
	}
}

/* A directory that is not a state directory of kxfs is not changed, whatever it contains. */
static void test_not_ours_stays(void **state)
{
	static const char *const names[] = {"lock", "jobs", "submit", "version"};
	struct stat st;

	for (size_t i = 0; i < array_size(names); i++) {
		char *dir = strdup(at(names[i]));
		char *inside = NULL;
		struct state *s = NULL;
		char *text = NULL;

		assert_true(asprintf(&inside, "%s/%s", dir, names[i]) > 0);
		assert_int_equal(mkdir(dir, 0755), 0);
		assert_int_equal(chmod(dir, 0755), 0);
		if (i % 3)
			assert_int_equal(mkdir(inside, 0755), 0);
		else
			write_file(inside, "1.2\n");
		assert_int_equal(state_open(dir, "/mnt", 0, &s, &text), -ENOTEMPTY);
		assert_non_null(strstr(text, "not a state directory of kxfs"));
		assert_int_equal(stat(dir, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0755);
		assert_int_equal(st.st_nlink, i % 3 ? 3 : 2);
		assert_int_equal(remove(inside), 0);
		assert_int_equal(rmdir(dir), 0); /* this succeeds only if nothing was added */
		free(text);
		free(inside);
		free(dir);
	}
}

/* If the first start is killed, what it leaves behind does not make the next start fail. */
static void test_killed_first_start(void **state)
{
	struct state *s;

	assert_int_equal(mkdir(at("state"), 0700), 0);
	write_file(at("state/probe"), "");
	write_file(at("state/.version.new"), "kxfs");
	write_file(at("state/lock"), "");
	s = opened(at("state"), "/mnt");
	assert_int_not_equal(access(at("state/probe"), F_OK), 0);
	state_close(s);
}

/*
 * A version file that can't be parsed is reported as damaged, and the message explains the fix.
 * Nothing is changed.
 */
static void test_damaged_version(void **state)
{
	static const char *const texts[] = {"", "kxfs statE 2\n", "kxfs state 5", "kxfs state 5\nx",
					    NULL};
	struct state *s = opened(at("state"), "/mnt");

	state_close(s);
	for (size_t i = 0; i < array_size(texts); i++) {
		char *text = NULL, *want = NULL;

		assert_int_equal(unlink(at("state/version")), 0);
		if (texts[i])
			write_file(at("state/version"), texts[i]);
		else
			assert_int_equal(symlink("lock", at("state/version")), 0);
		assert_int_equal(state_open(at("state"), "/mnt", 0, &s, &text), -EBADMSG);
		assert_true(asprintf(&want, "%s/state/version: damaged: ", top) > 0);
		assert_memory_equal(text, want, strlen(want));
		assert_non_null(strstr(text, "write the line 'kxfs state 5' into "));
		free(text);
		free(want);
	}
	assert_int_equal(unlink(at("state/version")), 0);
	write_file(at("state/version"), "kxfs state 5\n");
	s = opened(at("state"), "/mnt");
	state_close(s);
}

/* A state directory of another version is refused, and not changed. */
static void test_version(void **state)
{
	struct state *s = opened(at("state"), "/mnt");
	static const char *const others[] = {"kxfs state 4\n", "kxfs state 6\n"};
	char *text = NULL, *kept = NULL;
	size_t len;

	state_close(s);
	assert_int_equal(access(at("state/version"), F_OK), 0);
	s = opened(at("state"), "/mnt"); /* it has the current version */
	state_close(s);
	for (size_t i = 0; i < array_size(others); i++) {
		write_file(at("state/version"), others[i]);
		assert_int_equal(state_open(at("state"), "/mnt", 0, &s, &text), -ENOTSUP);
		assert_non_null(strstr(text, "/state: another version of kxfs uses this state "
					     "directory: end its jobs with that version and run "
					     "'mv "));
		assert_non_null(strstr(text, "/state.old', or give another directory with -o "
					     "state=DIR"));
		free(take_ptr(text));
		assert_int_equal(file_read(at("state/version"), 64, &kept, &len), 0);
		assert_string_equal(kept, others[i]);
		free(take_ptr(kept));
	}
}

static void test_in_each_other(void **state)
{
	char *why = NULL;
	struct state *s = NULL;

	assert_int_equal(mkdir(at("mnt"), 0755), 0);
	assert_int_equal(state_open(at("mnt/state"), at("mnt"), 0, &s, &why), -EINVAL);
	assert_non_null(strstr(why, "must not be inside or above the mount point"));
	free(why);
	assert_int_equal(access(at("mnt/state"), F_OK), -1);
	assert_int_equal(state_open(at("mnt"), at("mnt/jobs"), 0, &s, &why), -EINVAL);
	free(why);
	/* The name of the mount point only starts with the name of the state directory. */
	s = opened(at("mnt2"), at("mnt"));
	state_close(s);
}

/* A full file system: a small tmpfs. */
static void test_full(void **state)
{
	pid_t pid;
	int status;

	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	assert_int_equal(mkdir(at("small"), 0700), 0);
	assert_int_equal(mount("kxfs-test", at("small"), "tmpfs", 0, "size=16k"), 0);
	pid = fork();
	if (pid == 0) {
		struct state *s = NULL;
		char *why = NULL;

		if (state_open(at("small/state"), "/mnt", 0, &s, &why) != -ENOSPC)
			_exit(1);
		if (!strstr(why, "/small/state: no space for the state (No space left on "
				 "device): free some space, or give another directory with -o "
				 "state=DIR"))
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(umount2(at("small"), MNT_DETACH), 0);
	assert_int_equal(status, 0);
}

static void test_lock(void **state)
{
	struct state *s = opened(at("state"), "/mnt/first");
	char *want = NULL;
	char *text;

	text = read_lock(at("state"));
	assert_true(asprintf(&want, "pid %d\nphase starting\nwhere ", getpid()) > 0);
	assert_memory_equal(text, want, strlen(want));
	assert_non_null(strstr(text, "]\nmountpoint /mnt/first\n"));
	free(text);
	free(want);
	assert_true(
		asprintf(&want,
			 "%%s/state: in use by process %d, which is about to mount on "
			 "/mnt/first: use its mount, or give another directory with -o state=DIR",
			 getpid()) > 0);
	assert_refused(at("state"), "/mnt/second", -EBUSY, want);
	free(want);
	state_close(s);
	s = opened(at("state"), "/mnt/second");
	state_close(s);
}

/*
 * The lock is on the directory itself. If somebody removes a file in it, as a program that cleans
 * /tmp does, the lock remains.
 */
static void test_lock_removed(void **state)
{
	struct state *s = opened(at("state"), "/mnt/first");

	assert_int_equal(unlink(at("state/lock")), 0);
	assert_refused(
		at("state"), "/mnt/second", -EBUSY,
		"%s/state: in use by another kxfs: use its mount, or give another directory with -o "
		"state=DIR");
	assert_refused(
		at("state"), "/mnt/third", -EBUSY,
		"%s/state: in use by another kxfs: use its mount, or give another directory with -o "
		"state=DIR");
	state_close(s);
	s = opened(at("state"), "/mnt/second");
	state_close(s);
}

/*
 * The process that has the lock may be invisible, because it runs in another container or on
 * another machine. Then the error uses what that process has written.
 */
static void test_lock_elsewhere(void **state)
{
	struct state *s = opened(at("state"), "/mnt/first");

	write_file(at("state/lock"),
		   "pid 1\nphase mounted\nwhere elsewhere/pid:[1]\nmountpoint /mnt/first\n");
	assert_refused(
		at("state"), "/mnt/second", -EBUSY,
		"%s/state: in use by process 1 of another container or machine, which serves the mount on "
		"/mnt/first: use its mount, or give another directory with -o state=DIR");
	write_file(at("state/lock"),
		   "pid 1\nphase ending\nwhere elsewhere/pid:[1]\nmountpoint /mnt/first\n");
	assert_refused(
		at("state"), "/mnt/second", -EBUSY,
		"%s/state: process 1 of another container or machine is still ending its mount "
		"on /mnt/first: try again later");
	state_close(s);
}

/* After a fork the child has the lock, even if the parent closes its own descriptor. */
static void test_lock_after_fork(void **state)
{
	struct state *s = opened(at("state"), "/mnt/first");
	char *want = NULL;
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	state_close(s);
	assert_true(
		asprintf(&want,
			 "%%s/state: in use by process %d, which is about to mount on "
			 "/mnt/first: use its mount, or give another directory with -o state=DIR",
			 getpid()) > 0);
	assert_refused(at("state"), "/mnt/second", -EBUSY, want);
	free(want);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	s = opened(at("state"), "/mnt/second");
	state_close(s);
}

/* If a process has the lock but its mount is gone, kxfs waits for that process to end. */
static void test_wait_for_ending(void **state)
{
	struct state *s = opened(at("state"), "/mnt/first");
	char *why = NULL;
	char *want = NULL;
	int go[2];
	int status;
	char c;
	pid_t pid;

	/* The state is "mounted", but nothing is mounted there: somebody has unmounted it. */
	state_enter(s, STATE_MOUNTED);
	assert_true(asprintf(&want,
			     "%%s/state: process %d is still ending its mount on /mnt/first: "
			     "try again later, or kill -9 %d",
			     getpid(), getpid()) > 0);
	assert_refused(at("state"), "/mnt", -EBUSY, want);
	free(want);
	state_enter(s, STATE_ENDING);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		/* Keep the lock until the parent waits for it, and a little longer. */
		close(go[1]);
		(void)!read(go[0], &c, 1);
		usleep(300 * 1000);
		_exit(0);
	}
	state_close(s);
	close(go[0]);
	close(go[1]);
	assert_int_equal(state_open(at("state"), "/mnt", FOREVER_MS, &s, &why), 0);
	state_close(s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test_setup_teardown(test_made_private, setup, teardown),
		cmocka_unit_test_setup_teardown(test_relative, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_ours_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed_first_start, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged_version, setup, teardown),
		cmocka_unit_test_setup_teardown(test_version, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock_after_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wait_for_ending, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
