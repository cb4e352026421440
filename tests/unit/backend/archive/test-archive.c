/* SPDX-License-Identifier: MIT */
/* An archive in a directory: whole objects by name, however its disk behaves. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "backend/archive/archive.h"
#include "spec/base/mem.h"
#include "tests/unit/backend/base/loop_rig.h"

static char dir[64];
static struct archive *archive;
static struct hang sync_hang;
static atomic_bool sync_hangs;
static atomic_int sync_err;

int fsync(int fd)
{
	if (sync_hangs)
		hang(&sync_hang);
	errno = sync_err;
	return sync_err ? -1 : (int)syscall(SYS_fsync, fd);
}

/* One call, and what it ended with. */
struct call {
	const char *name, *after;
	const char *bytes;
	size_t n;
	uint64_t off;
	int err;
	char *text;
	char *got; /* the bytes, or the names with their sizes */
	size_t n_got;
	bool more;
	sem_t done;
};

static void on_done(void *data, int err, const char *text)
{
	struct call *c = data;

	c->err = err;
	c->text = text_copy(text);
	sem_post(&c->done);
}

static void on_bytes(void *data, int err, const char *text, const char *bytes, size_t n)
{
	struct call *c = data;

	c->got = bytes ? mem_copy(bytes, n) : text_copy("");
	c->n_got = n;
	on_done(c, err, text);
}

static void on_list(void *data, int err, const char *text, const struct archive_object *objects,
		    size_t n, bool more)
{
	struct call *c = data;

	c->got = text_copy("");
	for (size_t i = 0; i < n; i++)
		text_set(&c->got, "%s%s %llu\n", n > 10 ? "" : c->got, objects[i].name,
			 (unsigned long long)objects[i].size);
	c->n_got = n;
	c->more = more;
	on_done(c, err, text);
}

static void put(void *data)
{
	struct call *c = data;

	archive_put(archive, c->name, mem_copy(c->bytes, c->n), c->n, on_done, c);
}

static void get(void *data)
{
	struct call *c = data;

	archive_get(archive, c->name, c->off, c->n, on_bytes, c);
}

static void list(void *data)
{
	struct call *c = data;

	archive_list(archive, c->name, c->after, on_list, c);
}

static void stop(void *data)
{
	archive_stop(archive, post_sem, data);
}

static void begin(struct call *c, loop_fn fn)
{
	sem_init(&c->done, 0, 0);
	call(fn, c);
}

static void finish(struct call *c)
{
	free(c->text);
	free(c->got);
	c->text = c->got = NULL;
}

static int do_put(const char *name, const char *text)
{
	struct call c = {.name = name, .bytes = text, .n = strlen(text)};

	begin(&c, put);
	sem_wait_or_fail(&c.done);
	assert_true(!c.err == (*c.text == '\0'));
	finish(&c);
	return c.err;
}

static void assert_get(const char *name, uint64_t off, size_t n, int err, const char *text)
{
	struct call c = {.name = name, .off = off, .n = n};

	begin(&c, get);
	sem_wait_or_fail(&c.done);
	assert_int_equal(c.err, err);
	assert_string_equal(c.got, text);
	finish(&c);
}

static void assert_list(const char *prefix, const char *after, const char *text)
{
	struct call c = {.name = prefix, .after = after};

	begin(&c, list);
	sem_wait_or_fail(&c.done);
	assert_int_equal(c.err, 0);
	assert_false(c.more);
	assert_string_equal(c.got, text);
	finish(&c);
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
	assert_int_equal(archive_new(loop, &(struct archive_place){.where = dir}, "me", &archive,
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

/* A whole object or the one before, and nothing is left of what could not be written. */
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

/* What belongs to somebody else is neither shown nor followed. */
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

/* The end does not wait for a directory that hangs, and nobody is told of what comes later. */
static void test_stop_while_it_hangs(void **state)
{
	struct call c = {.name = "a/b", .bytes = "x", .n = 1};
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
	/* That thread has ended when another of the same directory is let in. */
	for (unsigned i = 0; i < 100; i++)
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
