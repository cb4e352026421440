/* SPDX-License-Identifier: MIT */
/* An archive in a directory: whole objects by name, however its disk behaves. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/backend/archive/calls.h"

static char dir[64];
static struct hang sync_hang;
static atomic_bool sync_hangs;
static pid_t sync_thread; /* the thread that hangs in fsync */
static atomic_int sync_err;

int fsync(int fd)
{
	if (sync_hangs) {
		sync_thread = gettid();
		hang(&sync_hang);
	}
	errno = sync_err;
	return sync_err ? -1 : (int)syscall(SYS_fsync, fd);
}

static int begin_archive(void **state)
{
	char *text;

	sync_hangs = false;
	sync_err = 0;
	hang_init(&sync_hang);
	strcpy(dir, "/tmp/kxfs-archive-XXXXXX");
	assert_non_null(mkdtemp(dir));
	setup_started(state);
	assert_int_equal(archive_new(loop, &(struct archive_address){.where = dir}, "me", &archive,
				     &text),
			 0);
	return 0;
}

static int end_archive(void **state)
{
	cleanup_free char *remove = text_print("rm -rf %s", dir);
	sem_t stopped;

	sem_init(&stopped, 0, 0);
	if (archive) {
		call(stop, &stopped);
		sem_wait_or_fail(&stopped);
	}
	teardown(state);
	archive_free(archive);
	archive = NULL;
	return system(remove); /* NOLINT(cert-env33-c) */
}

static void test_objects(void **state)
{
	assert_int_equal(do_put("ns/2026-11-25/job/status.json", "one"), 0);
	assert_int_equal(do_put("ns/2026-11-25/job/status.json", "more"), 0);
	assert_int_equal(do_put("ns/2026-11-25/job/w-0/log.0/0", ""), 0);
	assert_int_equal(do_put("ns/2026-11-25/list.jsonl", "{}\n"), 0);
	assert_get("ns/2026-11-25/job/status.json", 0, 100, 0, "more");
	assert_get("ns/2026-11-25/job/status.json", 1, 2, 0, "or");
	assert_get("ns/2026-11-25/job/status.json", 9, 2, 0, "");
	assert_get("ns/2026-11-25/job/w-0/log.0/0", 0, 2, 0, "");
	assert_get("ns/2026-11-25/job/why", 0, 100, -ENOENT, "");
	assert_get("ns/2026-11-25/job", 0, 100, -EIO, "");
	assert_list("", NULL, "ns/ 0\n");
	assert_list("ns/2026-11-25/", NULL, "job/ 0\nlist.jsonl 3\n");
	assert_list("ns/2026-11-25/", "job/", "list.jsonl 3\n");
	assert_list("ns/2026-11-25/job/", NULL, "status.json 4\nw-0/ 0\n");
	assert_list("ns/2026-11-26/", NULL, "");
}

/* Behind the name stands the whole object or the one before, and nothing is left of what could not be written. */
static void test_disk_fails(void **state)
{
	cleanup_free char *path = text_print("%s/a", dir);
	struct stat st;

	assert_int_equal(do_put("a/b", "old"), 0);
	sync_err = ENOSPC;
	assert_int_equal(do_put("a/b", "new"), -ENOSPC);
	sync_err = EDQUOT;
	assert_int_equal(do_put("a/b", "new"), -ENOSPC);
	sync_err = EROFS;
	assert_int_equal(do_put("a/b", "new"), -EACCES);
	sync_err = ESTALE;
	assert_int_equal(do_put("a/b", "new"), -EHOSTUNREACH);
	sync_err = ELOOP;
	assert_int_equal(do_put("a/b", "new"), -EIO);
	sync_err = 0;
	assert_get("a/b", 0, 9, 0, "old");
	text_set(&path, "%s/.b.me", path);
	assert_int_equal(stat(path, &st), -1);
}

/* Files, links and directories of other people are neither shown nor followed. */
static void test_strangers(void **state)
{
	cleanup_free char *make = text_print(
		"mkdir %s/a; cd %s/a; ln -s /etc etc; ln -s /etc/passwd p; mkfifo f; echo x > .b.you",
		dir, dir);

	assert_int_equal(system(make), 0); /* NOLINT(cert-env33-c) */
	assert_list("a/", NULL, "");
	assert_get("a/p", 0, 9, -EIO, "");
	assert_get("a/etc/passwd", 0, 9, -EIO, "");
	assert_get("a/f", 0, 9, -EIO, "");
	assert_int_equal(do_put("a/etc/kxfs", "x"), -EIO);
	assert_int_equal(do_put("a/p", "mine"), 0);
	assert_get("a/p", 0, 9, 0, "mine");
}

static void test_many(void **state)
{
	cleanup_free char *make =
		text_print("mkdir %s/d; cd %s/d; seq 10000 12000 | xargs touch", dir, dir);
	struct call c = {.name = "d/"};

	assert_int_equal(system(make), 0); /* NOLINT(cert-env33-c) */
	begin(&c, list);
	sem_wait_or_fail(&c.done);
	assert_true(c.more);
	assert_int_equal(c.n_got, ARCHIVE_MAX_LIST);
	assert_string_equal(c.got, "10999 0\n");
	finish(&c);
	c.after = "11000";
	begin(&c, list);
	sem_wait_or_fail(&c.done);
	assert_false(c.more);
	assert_string_equal(c.got, "12000 0\n");
	finish(&c);
}

static void test_away(void **state)
{
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(do_put("a/b", "x"), -EHOSTUNREACH);
	assert_get("a/b", 0, 9, -EHOSTUNREACH, "");
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(do_put("a/b", "x"), 0);
}

/* The end does not wait for a directory that hangs, and what comes of the call later is not told. */
static void test_stop_while_it_hangs(void **state)
{
	struct call c = {.name = "a/b", .bytes = "x", .n = 1};
	cleanup_free char *thread = NULL;
	sem_t stopped;

	sync_hangs = true;
	begin(&c, put);
	sem_wait_or_fail(&sync_hang.began);
	sem_init(&stopped, 0, 0);
	call(stop, &stopped);
	sem_wait_or_fail(&stopped);
	archive_free(archive);
	archive = NULL;
	sync_hangs = false;
	sem_post(&sync_hang.go);
	thread = text_print("/proc/self/task/%d", sync_thread);
	while (access(thread, F_OK) == 0)
		call(nothing, NULL);
	assert_int_equal(sem_trywait(&c.done), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_objects, begin_archive, end_archive),
		cmocka_unit_test_setup_teardown(test_disk_fails, begin_archive, end_archive),
		cmocka_unit_test_setup_teardown(test_strangers, begin_archive, end_archive),
		cmocka_unit_test_setup_teardown(test_many, begin_archive, end_archive),
		cmocka_unit_test_setup_teardown(test_away, begin_archive, end_archive),
		cmocka_unit_test_setup_teardown(test_stop_while_it_hangs, begin_archive,
						end_archive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
