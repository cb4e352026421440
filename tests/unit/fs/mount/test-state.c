/* SPDX-License-Identifier: MIT */
/*
 * The state directory: its default path, what is refused and with which error, and its lock.
 * tests/mount/test_life.py has a full disk, a removed lock, and a mount that waits for another.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#include "backend/base/file.h"
#include "fs/mount/state.h"
#include "spec/base/mem.h"

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

/* Assert that opening the test's directory NAME is refused with ERR and "DIRECTORY: WHY". */
static void printf_like(3, 4) assert_refused(const char *name, int err, const char *why, ...)
{
	struct state *s = NULL;
	cleanup_free char *reason = text_of_args(why);
	cleanup_free char *want = text_print("%s: %s", at(name), reason);
	cleanup_free char *text = NULL;

	assert_int_equal(state_open(at(name), "/mnt/second", 0, &s, &text), err);
	assert_null(s);
	assert_string_equal(text, want);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
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

/* The path may be relative. The state directory and those above it become private. */
static void test_made_private(void **state)
{
	char *cwd = getcwd(NULL, 0);
	struct stat st;
	struct state *s;

	assert_int_equal(chdir(top), 0);
	s = opened("a/b/c//", "/mnt");
	assert_string_equal(state_dir(s), at("a/b/c"));
	assert_int_equal(stat(at("a"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(at("a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	state_close(s);
	assert_int_equal(chdir(cwd), 0);
	free(cwd);
	/* A directory that was used before, with other permissions. */
	assert_int_equal(chmod(at("a/b/c"), 0755), 0);
	s = opened(at("a/b/c"), "/mnt");
	assert_int_equal(stat(at("a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	state_close(s);
}

static void test_not_ours(void **state)
{
	write_file(at("file"), "x");
	assert_refused("file/below", -ENOTDIR,
		       "kxfs can't store its state here: Not a directory: give another "
		       "directory with -o state=DIR");
	if (geteuid() == 0) {
		assert_int_equal(mkdir(at("theirs"), 0777), 0);
		assert_int_equal(chown(at("theirs"), 7, 7), 0);
		assert_refused("theirs", -EPERM,
			       "belongs to another user (uid 7), who could change your jobs: "
			       "give a directory of your own with -o state=DIR");
	}
}

/* A directory that is not a state directory of kxfs is not changed, whatever it contains. */
static void test_not_ours_stays(void **state)
{
	static const char *const names[] = {"lock", "jobs/", "submit/", "version", "thesis.tex"};
	struct stat st;

	for (size_t i = 0; i < array_size(names); i++) {
		cleanup_free char *dir = text_print("%s/%zu", top, i);
		cleanup_free char *inside = text_print("%s/%s", dir, names[i]);

		assert_int_equal(mkdir(dir, 0755), 0);
		assert_int_equal(chmod(dir, 0755), 0);
		if (strchr(names[i], '/'))
			assert_int_equal(mkdir(inside, 0755), 0);
		else
			write_file(inside, "1.2\n");
		assert_refused(strrchr(dir, '/') + 1, -ENOTEMPTY,
			       "not empty, and not a state directory of kxfs: give an empty "
			       "directory with -o state=DIR");
		assert_int_equal(stat(dir, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0755);
		assert_int_equal(remove(inside), 0);
		assert_int_equal(rmdir(dir), 0); /* this succeeds only if nothing was added */
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
 * A version file that can't be parsed is reported as damaged, and the message explains the fix. If
 * it has another version, the message explains how to continue. Neither is changed.
 */
static void test_version(void **state)
{
	static const struct {
		const char *text; /* NULL: a symbolic link */
		int err;
	} files[] = {
		{"", -EBADMSG},
		{"kxfs statE 2\n", -EBADMSG},
		{"kxfs state 5", -EBADMSG},
		{"kxfs state 5\nx", -EBADMSG},
		{NULL, -EBADMSG},
		{"kxfs state 4\n", -ENOTSUP},
		{"kxfs state 6\n", -ENOTSUP},
		{"kxfs state 5\n", 0},
	};
	struct state *s = opened(at("state"), "/mnt");

	state_close(s);
	for (size_t i = 0; i < array_size(files); i++) {
		cleanup_free char *why = NULL, *kept = NULL;
		size_t len;

		assert_int_equal(unlink(at("state/version")), 0);
		if (files[i].text)
			write_file(at("state/version"), files[i].text);
		else
			assert_int_equal(symlink("lock", at("state/version")), 0);
		assert_int_equal(state_open(at("state"), "/mnt", 0, &s, &why), files[i].err);
		if (files[i].err == 0)
			state_close(s);
		else if (files[i].err == -EBADMSG)
			assert_non_null(strstr(why, "/state/version: damaged: "));
		else
			assert_non_null(strstr(why, "/state: another version of kxfs uses this"));
		if (files[i].err == -EBADMSG)
			assert_non_null(strstr(why, "write the line 'kxfs state 5' into "));
		if (files[i].text) {
			assert_int_equal(file_read(at("state/version"), 64, &kept, &len), 0);
			assert_string_equal(kept, files[i].text);
		}
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

/*
 * The directory is in use. The message says by which process, and what that process is doing. If
 * that process is invisible, because it runs in another container or on another machine, the
 * message uses what it has written.
 */
static void test_in_use(void **state)
{
	struct state *s = opened(at("state"), "/mnt/first");

	assert_refused("state", -EBUSY,
		       "in use by process %d, which is about to mount on /mnt/first: use its "
		       "mount, or give another directory with -o state=DIR",
		       getpid());
	/* The state is "mounted", but nothing is mounted there: somebody has unmounted it. */
	state_enter(s, STATE_MOUNTED);
	assert_refused("state", -EBUSY,
		       "process %d is still ending its mount on /mnt/first: try again later, or "
		       "kill -9 %d",
		       getpid(), getpid());
	write_file(at("state/lock"),
		   "pid 1\nphase mounted\nwhere elsewhere/pid:[1]\nmountpoint /mnt/first\n");
	assert_refused("state", -EBUSY,
		       "in use by process 1 of another container or machine, which serves the "
		       "mount on /mnt/first: use its mount, or give another directory with -o "
		       "state=DIR");
	write_file(at("state/lock"),
		   "pid 1\nphase ending\nwhere elsewhere/pid:[1]\nmountpoint /mnt/first\n");
	assert_refused("state", -EBUSY,
		       "process 1 of another container or machine is still ending its mount on "
		       "/mnt/first: try again later");
	state_close(s);
	s = opened(at("state"), "/mnt/second");
	state_close(s);
}

/* After a fork the child has the lock, even if the parent closes its own descriptor. */
static void test_in_use_by_a_child(void **state)
{
	struct state *s = opened(at("state"), "/mnt/first");
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	state_close(s);
	assert_refused("state", -EBUSY,
		       "in use by process %d, which is about to mount on /mnt/first: use its "
		       "mount, or give another directory with -o state=DIR",
		       getpid());
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	s = opened(at("state"), "/mnt/second");
	state_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test_setup_teardown(test_made_private, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_ours_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed_first_start, setup, teardown),
		cmocka_unit_test_setup_teardown(test_version, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_use_by_a_child, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
