/* SPDX-License-Identifier: MIT */
/*
 * fs/submit/upload.h: contents, their limits, and what is on disk at which time. Contents of
 * several writers are in tests/mount/test_submit.py and test_submit_slow.py.
 */
#include <errno.h>
#include <fcntl.h>

#include "backend/base/file.h"
#include "fs/submit/upload.h"
#include "spec/base/limits.h"
#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

struct fixture {
	char dir[64];
	int fd;
	struct lock lock;
	struct uploads *all;
};

/* SHA-256 of "Jel" */
#define JEL "c841db597c7ff403f242245038ab4bda18b5eb8bf128b722659e9031ecaa6d74"

static const struct file_owner us = {1000, 1000};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/kxfs-test-upload-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->lock = (struct lock)LOCK_INIT;
	f->all = uploads_new(f->fd, us, &f->lock);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int err;

	uploads_free(f->all);
	close(f->fd);
	err = scratch_remove(f->dir);
	free(f);
	return err;
}

static void set_name(struct fixture *f, struct upload *u, const char *name)
{
	lock_scope(&f->lock);
	upload_set_name(u, name);
}

/* Create and open a file NAME. */
static struct upload *made(struct fixture *f, const char *name)
{
	struct upload *u = upload_new(f->all, name, 0644, us);

	set_name(f, u, name);
	assert_int_equal(upload_open(u, false), 0);
	return u;
}

/* Return a file of SIZE bytes that was found on disk. */
static struct upload *found(struct fixture *f, off_t size)
{
	const struct stat st = {.st_mode = 0644, .st_size = size};
	struct upload *u = upload_found(f->all, "x", &st, CONTENT_FOUND);

	set_name(f, u, "x");
	return u;
}

static void unmade(struct fixture *f, struct upload *u)
{
	upload_close(u);
	set_name(f, u, NULL);
	upload_unref(u);
}

/* Write TEXT as one process that then closes the file. */
static void put(struct upload *u, const char *text, off_t off)
{
	struct upload_writer w = {0};

	upload_add_writer(u, &w, 1, 0, false);
	assert_int_equal(upload_write(u, &w, text, strlen(text), off), 0);
	upload_show(u, &w);
	upload_remove_writer(u, &w);
}

static void assert_seen(struct upload *u, const struct upload_writer *w, const char *want)
{
	char buf[64] = "";

	assert_int_equal(upload_read(u, w, buf, sizeof(buf) - 1, 0), strlen(want));
	assert_string_equal(buf, want);
	assert_int_equal(upload_look(u, w).size, strlen(want));
}

static void assert_bytes(struct upload *u, const char *want)
{
	assert_seen(u, NULL, want);
}

/*
 * Assert that the file NAME on disk has the contents WANT. If WANT is NULL, assert that it does not
 * exist.
 */
static void assert_on_disk(const struct fixture *f, const char *name, const char *want)
{
	char path[128], *text = NULL;
	size_t len;
	int err;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	err = file_read(path, 100, &text, &len);
	assert_int_equal(err, want ? 0 : -ENOENT);
	if (want)
		assert_string_equal(text, want);
	free(text);
}

/* A failed write makes the contents incomplete until they are emptied. */
static void test_largest_file(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	struct upload_writer w = {0};

	upload_add_writer(u, &w, 1, 0, false);
	assert_int_equal(upload_truncate(u, &w, SPEC_MAX_FILE), 0);
	assert_int_equal(upload_truncate(u, &w, SPEC_MAX_FILE + 1), -EFBIG);
	assert_int_equal(upload_look(u, &w).flaw, 0);
	assert_int_equal(upload_write(u, &w, "x", 1, SPEC_MAX_FILE), -EFBIG);
	assert_int_equal(upload_look(u, &w).flaw, EFBIG);
	assert_int_equal(upload_truncate(u, &w, 0), 0);
	assert_int_equal(upload_look(u, &w).flaw, 0);
	upload_remove_writer(u, &w);
	unmade(f, u);
}

/* A scratch file without a name counts while it is open. */
static void test_scratch_without_name(void **state)
{
	struct fixture *f = *state;
	struct upload *scratch[SPEC_MAX_SCRATCH_ALL / SPEC_MAX_SCRATCH + 1];
	const size_t n = array_size(scratch) - 1;

	for (size_t i = 0; i <= n; i++) {
		scratch[i] = made(f, "scratch");
		assert_int_equal(upload_truncate(scratch[i], NULL, SPEC_MAX_SCRATCH + 1), -ENOSPC);
		assert_int_equal(upload_truncate(scratch[i], NULL, SPEC_MAX_SCRATCH),
				 i < n ? 0 : -ENOSPC);
	}
	set_name(f, scratch[0], NULL);
	assert_int_equal(upload_truncate(scratch[n], NULL, 1), -ENOSPC);
	upload_close(scratch[0]);
	assert_int_equal(upload_truncate(scratch[n], NULL, 1), 0);
	upload_unref(scratch[0]);
	for (size_t i = 1; i <= n; i++)
		unmade(f, scratch[i]);
}

/* The bytes of an open file count before they are loaded. */
static void test_memory(void **state)
{
	struct fixture *f = *state;
	struct upload *u[] = {found(f, UPLOADS_MAX_MEMORY / 2 + 1),
			      found(f, UPLOADS_MAX_MEMORY / 2 + 1)};

	assert_int_equal(upload_open(u[0], false), -EAGAIN);
	assert_int_equal(upload_open(u[0], false), -EAGAIN);
	assert_int_equal(upload_open(u[1], false), -ENFILE);
	upload_close(u[0]);
	upload_close(u[0]);
	assert_int_equal(upload_open(u[1], false), -EAGAIN);
	/* An open that empties the file needs no memory. */
	assert_int_equal(upload_open(u[0], true), 0);
	for (size_t i = 0; i < array_size(u); i++)
		unmade(f, u[i]);
}

/* After an interrupted write, a close launches nothing, until the writer has emptied the file. */
static void test_interrupted(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	struct upload_writer w = {0};

	put(u, "old", 0);
	upload_add_writer(u, &w, 1, 0, false);
	upload_fail(u, &w, -EINTR);
	assert_true(upload_look(u, &w).is_dirty);
	assert_int_equal(upload_write(u, &w, "new", 3, 0), 0);
	assert_int_equal(upload_look(u, &w).flaw, EINTR);
	assert_int_equal(upload_look(u, NULL).flaw, 0);
	assert_int_equal(upload_truncate(u, &w, 0), 0);
	assert_int_equal(upload_look(u, &w).flaw, 0);
	upload_set_flaw(u, &w, ECANCELED);
	upload_fail(u, &w, -EINTR);
	assert_int_equal(upload_look(u, &w).flaw, ECANCELED);
	upload_remove_writer(u, &w);
	unmade(f, u);
}

/* An open with O_TRUNC empties the file even if there is no memory for anything else. */
static void test_memory_for_nothing(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml"), *large[] = {found(f, UPLOADS_MAX_MEMORY / 2),
							  found(f, UPLOADS_MAX_MEMORY / 2 - 4)};
	struct upload_writer grows = {0}, empties = {0};

	upload_add_writer(u, &grows, 1, 0, false);
	upload_add_writer(u, &empties, 2, 0, false);
	assert_int_equal(upload_write(u, &grows, "abc", 3, 0), 0);
	for (size_t i = 0; i < array_size(large); i++)
		assert_int_equal(upload_open(large[i], false), -EAGAIN);
	/* The room of growing contents doubles, here beyond the limit. */
	assert_int_equal(upload_write(u, &grows, "d", 1, 3), 0);
	assert_int_equal(upload_truncate(u, &empties, 0), 0);
	assert_int_equal(upload_look(u, &empties).size, 0);
	upload_remove_writer(u, &grows);
	upload_remove_writer(u, &empties);
	for (size_t i = 0; i < array_size(large); i++)
		unmade(f, large[i]);
	unmade(f, u);
}

/*
 * A hole contains zeros, whatever was there before. Each change creates a new version. A truncated
 * file is recognizable.
 */
static void test_content(void **state)
{
	static const struct {
		const char *text;
		bool whole;
	} ends[] = {{"a: 1\n", true}, {"{}", true},	 {"[1]", true},
		    {"a: 1", false},  {"{\"a\"", false}, {"", false}};
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	const struct upload_writer w = {0};
	char buf[8], *copy;
	uint64_t version;
	size_t len;

	put(u, "abcdefg", 0);
	assert_int_equal(upload_truncate(u, NULL, 0), 0);
	put(u, "x", 5);
	assert_int_equal(upload_read(u, NULL, buf, sizeof(buf), 0), 6);
	assert_memory_equal(buf, "\0\0\0\0\0x", 6);
	upload_copy(u, NULL, &copy, &len, &version);
	free(copy);
	assert_int_equal(upload_look(u, NULL).version, version);
	put(u, "x", 5); /* the same contents again */
	assert_int_not_equal(upload_look(u, NULL).version, version);
	for (size_t i = 0; i < array_size(ends); i++) {
		assert_int_equal(upload_truncate(u, NULL, 0), 0);
		put(u, ends[i].text, 0);
		assert_int_equal(upload_look(u, &w).is_whole, ends[i].whole);
	}
	assert_int_equal(upload_truncate(u, NULL, 9), 0);
	assert_false(upload_look(u, &w).is_whole); /* the last byte is a NUL */
	unmade(f, u);
}

static void test_disk(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	char digest[UPLOAD_DIGEST];
	uint64_t version;

	put(u, "hello", 0);
	assert_true(upload_want_save(u));
	assert_false(upload_want_save(u)); /* it is already being saved */
	assert_on_disk(f, "x.yaml", NULL);
	assert_int_equal(upload_save(u), 0);
	assert_true(upload_look(u, NULL).is_saved);
	assert_on_disk(f, "x.yaml", "hello");
	put(u, "J", 0);
	put(u, "!", 5);
	assert_bytes(u, "Jello!");
	assert_int_equal(upload_truncate(u, NULL, 3), 0);
	assert_int_equal(upload_save_name(u, "y.yaml"), 0);
	assert_int_equal(upload_save(u), 0);
	assert_on_disk(f, "y.yaml", "Jel");
	assert_on_disk(f, "x.yaml", NULL);
	/*
	 * When no process has the file open, its contents are dropped from memory. They are loaded
	 * when it is opened.
	 */
	upload_close(u);
	assert_int_equal(upload_open(u, false), -EAGAIN);
	assert_int_equal(upload_load(u, &version, digest), 0);
	assert_int_equal(upload_look(u, NULL).version, version);
	assert_string_equal(digest, JEL);
	assert_bytes(u, "Jel");
	upload_close(u);
	assert_int_equal(upload_open(u, true), 0);
	assert_int_equal(upload_truncate(u, NULL, 0), 0);
	assert_bytes(u, "");
	assert_int_equal(upload_save(u), 0);
	assert_on_disk(f, "y.yaml", "");
	assert_int_equal(upload_save_name(u, NULL), 0);
	assert_on_disk(f, "y.yaml", NULL);
	set_name(f, u, NULL);
	put(u, "who has it open keeps it", 0);
	assert_int_equal(upload_save(u), 0);
	assert_bytes(u, "who has it open keeps it");
	unmade(f, u);
}

/* If the disk refuses some contents, they are written again completely. */
static void test_refused_by_the_disk(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	char path[128];

	put(u, "hello", 0);
	snprintf(path, sizeof(path), "%s/x.yaml", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(upload_save(u), -EEXIST);
	assert_false(upload_look(u, NULL).is_saved);
	upload_close(u);
	/* The memory has what is missing on disk. */
	assert_int_equal(upload_open(u, false), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(upload_save(u), 0);
	assert_on_disk(f, "x.yaml", "hello");
	unmade(f, u);
}

/* A manifest that arrives late does not replace newer contents, and these are saved again. */
static void test_replace(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	uint64_t version;
	size_t len;
	char *text;

	put(u, "a document", 0);
	assert_int_equal(upload_save(u), 0);
	upload_copy(u, NULL, &text, &len, &version);
	assert_string_equal(text, "a document");
	free(text);
	assert_int_equal(upload_save_text(u, "made\n"), 0);
	assert_on_disk(f, "x.yaml", "made\n");
	assert_int_not_equal(upload_replace(u, version, "made\n"), 0);
	assert_bytes(u, "made\n");
	/* The disk now has other contents, and gets the current ones back. */
	assert_int_equal(upload_save_text(u, "older\n"), 0);
	assert_int_equal(upload_replace(u, version, "older\n"), 0);
	assert_int_equal(upload_save(u), 0);
	assert_on_disk(f, "x.yaml", "made\n");
	unmade(f, u);
}

/*
 * A file gets a name that does not submit while its writer has it open. A write of another process
 * that does not fit keeps the contents, but they are not launched.
 */
static void test_scratch_without_space(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	struct upload_writer a = {0}, b = {0};

	upload_add_writer(u, &a, 1, 0, false);
	assert_int_equal(upload_write(u, &a, "one", 3, 0), 0);
	assert_true(upload_show(u, &a));
	set_name(f, u, "x.bak");
	upload_add_writer(u, &b, 2, 0, false);
	assert_int_equal(upload_write(u, &b, "x", 1, SPEC_MAX_SCRATCH), -ENOSPC);
	assert_bytes(u, "one");
	assert_seen(u, &a, "one");
	assert_int_equal(upload_look(u, NULL).flaw, ENOSPC);
	upload_remove_writer(u, &a);
	upload_remove_writer(u, &b);
	unmade(f, u);
}

/* A late result does not apply to what was written after it. */
static void test_state(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	struct upload_writer w = {0};
	uint64_t version;

	put(u, "one", 0);
	version = upload_look(u, NULL).version;
	assert_int_equal(upload_look(u, NULL).state, CONTENT_NEW);
	assert_false(upload_look(u, NULL).is_busy);
	upload_set_state(u, version, CONTENT_LAUNCHING);
	assert_true(upload_look(u, NULL).is_busy);
	upload_add_writer(u, &w, 1, 0, false);
	assert_int_equal(upload_write(u, &w, "two", 3, 0), 0);
	/* Contents that are still being written are not shown yet. */
	upload_set_state(u, version, CONTENT_LAUNCHED);
	assert_int_equal(upload_look(u, NULL).state, CONTENT_LAUNCHED);
	assert_true(upload_look(u, NULL).is_busy);
	assert_true(upload_show(u, &w));
	assert_int_equal(upload_look(u, NULL).state, CONTENT_NEW);
	upload_set_state(u, version, CONTENT_LAUNCHED);
	assert_int_equal(upload_look(u, NULL).state, CONTENT_NEW);
	upload_remove_writer(u, &w);
	unmade(f, u);
}

static pid_t displace(struct fixture *f, struct upload *u, pid_t process)
{
	lock_scope(&f->lock);
	return upload_displace(u, process);
}

/*
 * If an open arrives after the file was taken away, the process may mean the old name. So its close
 * must not return 0.
 */
static void test_opened_late(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	struct upload_writer late = {0}, next = {0};

	displace(f, u, 1);
	upload_add_writer(u, &late, 2, 0, false);
	assert_false(upload_look(u, &late).may_write);
	assert_int_equal(upload_truncate(u, &late, 0), 0); /* O_TRUNC */
	assert_true(upload_look(u, &late).is_lost);
	upload_add_writer(u, &next, 3, upload_look(u, NULL).taken, false);
	assert_true(upload_look(u, &next).may_write);
	upload_remove_writer(u, &late);
	upload_remove_writer(u, &next);
	unmade(f, u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_largest_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scratch_without_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_for_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_interrupted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_content, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_by_the_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scratch_without_space, setup, teardown),
		cmocka_unit_test_setup_teardown(test_state, setup, teardown),
		cmocka_unit_test_setup_teardown(test_opened_late, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
