/* SPDX-License-Identifier: MIT */
/* fs/submit/upload: names, bounds, and which content was launched, also over the end of a mount. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fs/submit/upload.h"
#include "spec/base/limits.h"
#include "spec/base/sha256.h"
#include "tests/unit/scratch.h"

/* Of some other content. */
#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct fixture {
	char dir[64];
	int fd;
	struct uploads *all;
};

static const struct record_owner us = {1000, 1000};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/kxfs-test-upload-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return uploads_new(f->dir, f->fd, us, &f->all);
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

/* A file NAME with TEXT; a reference, not held. */
static struct upload *made(struct uploads *all, const char *name, const char *text)
{
	struct upload *u = NULL;

	assert_int_equal(upload_make(all, name, 0644, us, &u), 0);
	assert_int_equal(upload_write(u, text, strlen(text), 0), 0);
	upload_close(u);
	return u;
}

static void rewrite(struct upload *u, const char *text)
{
	assert_int_equal(upload_open(u), 0);
	assert_int_equal(upload_truncate(u, 0), 0);
	assert_int_equal(upload_write(u, text, strlen(text), 0), 0);
	upload_close(u);
}

/* TEXT, which is in U, is launched and accepted. */
static void launch(struct upload *u, uint64_t number, const char *text)
{
	char digest[RECORD_DIGEST];
	uint64_t content = upload_launching(u, NULL, number);

	assert_true(upload_is_busy(u));
	spec_sha256(text, strlen(text), digest);
	upload_concluded(u, number, content, digest);
	assert_false(upload_is_busy(u));
}

static void test_names(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f->all, "x.yaml", "one"), *other = made(f->all, "y.yaml", "two"),
		      *found;
	char name[NAME_MAX + 1];

	assert_int_equal(upload_make(f->all, "x.yaml", 0644, us, &found), -EEXIST);
	found = upload_find(f->all, "x.yaml");
	assert_ptr_equal(found, u);
	upload_unref(found);
	assert_int_equal(upload_rename(u, "y.yaml"), 0);
	assert_null(upload_find(f->all, "x.yaml"));
	assert_true(upload_name(u, name));
	assert_string_equal(name, "y.yaml");
	/* The one that lost its name lives on for who has it, and can't be opened again. */
	assert_false(upload_name(other, name));
	assert_int_equal(upload_open(other), -ESTALE);
	assert_int_equal(upload_remove(u), 0);
	assert_null(upload_find(f->all, "y.yaml"));
	assert_int_equal(upload_remove(u), -ENOENT);
	upload_unref(u);
	upload_unref(other);
}

static void test_bounds(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f->all, "x.yaml", "x"),
		      *scratch[SPEC_MAX_SCRATCH_ALL / SPEC_MAX_SCRATCH + 1];
	const size_t n = array_size(scratch) - 1;

	assert_int_equal(upload_open(u), 0);
	assert_int_equal(upload_truncate(u, SPEC_MAX_FILE), 0);
	assert_int_equal(upload_truncate(u, SPEC_MAX_FILE + 1), -EFBIG);
	assert_int_equal(upload_flaw(u), 0);
	assert_int_equal(upload_write(u, "x", 1, SPEC_MAX_FILE), -EFBIG);
	assert_int_equal(upload_flaw(u), EFBIG);
	assert_int_equal(upload_truncate(u, 0), 0);
	assert_int_equal(upload_flaw(u), 0);
	upload_close(u);
	for (size_t i = 0; i <= n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "scratch%zu", i);
		assert_int_equal(upload_make(f->all, name, 0600, us, &scratch[i]), 0);
		assert_int_equal(upload_truncate(scratch[i], SPEC_MAX_SCRATCH + 1), -ENOSPC);
		assert_int_equal(upload_truncate(scratch[i], SPEC_MAX_SCRATCH),
				 i < n ? 0 : -ENOSPC);
	}
	/* A file that has no name counts as long as it is open. */
	assert_int_equal(upload_remove(scratch[0]), 0);
	assert_int_equal(upload_truncate(scratch[n], 1), -ENOSPC);
	upload_close(scratch[0]);
	assert_int_equal(upload_truncate(scratch[n], 1), 0);
	for (size_t i = 0; i <= n; i++) {
		if (i)
			upload_close(scratch[i]);
		upload_unref(scratch[i]);
	}
	upload_unref(u);
}

static void test_launched(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f->all, "x.yaml", "one");
	uint64_t content;

	assert_false(upload_is_launched(u));
	launch(u, 1, "one");
	assert_true(upload_is_launched(u));
	rewrite(u, "two");
	assert_false(upload_is_launched(u));
	/* The verdict on what is not in it any more says nothing of what is. */
	content = upload_launching(u, NULL, 2);
	rewrite(u, "three");
	assert_false(upload_is_current(u, content));
	upload_concluded(u, 2, content, DIGEST);
	assert_false(upload_is_launched(u));
	upload_unref(u);
}

static void test_writers(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f->all, "x.yaml", "one");
	struct upload_writer a = {0}, b = {0}, c = {0}, d = {0}, e = {0};
	uint64_t content;

	upload_add_writer(u, &a, 1);
	upload_add_writer(u, &b, 1);
	upload_add_writer(u, &c, 2);
	upload_add_writer(u, &d, 0);
	upload_add_writer(u, &e, 0);
	assert_ptr_equal(upload_sibling(u, &a), &b);
	assert_null(upload_sibling(u, &c));
	assert_null(upload_sibling(u, &d)); /* of processes that are not known none is the same */
	upload_set_dirty(&b);
	upload_set_dirty(&c);
	assert_true(upload_is_dirty(u, &a));
	assert_false(upload_is_dirty(u, &d));
	content = upload_launching(u, &a, 5);
	assert_false(b.dirty);
	assert_true(c.dirty && upload_is_busy(u));
	assert_true(upload_is_spent(u, &b) && !upload_is_spent(u, &a));
	upload_concluded(u, 5, content, NULL);
	assert_false(upload_is_spent(u, &b) || upload_is_launched(u));
	content = upload_launching(u, &c, 6);
	upload_concluded(u, 6, content, DIGEST);
	assert_true(upload_is_spent(u, &c));
	for (size_t i = 0; i < 5; i++)
		upload_remove_writer(u, (struct upload_writer *[]){&a, &b, &c, &d, &e}[i]);
	upload_unref(u);
}

/* The next mount: the record of NAME, as RECORDED, is all that it has beside the files. */
static void remount(struct fixture *f, const char *name, const char *recorded)
{
	struct record r = {0};

	uploads_fill_record(f->all, recorded, &r);
	uploads_free(f->all);
	assert_int_equal(uploads_new(f->dir, f->fd, us, &f->all), 0);
	uploads_take_record(f->all, name, &r);
}

static void assert_launched(struct fixture *f, const char *name, bool want)
{
	struct upload *u cleanup_upload = upload_find(f->all, name);

	assert_int_equal(upload_is_launched(u), want);
}

static void test_over_a_mount(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f->all, "x.yaml", "one");
	char path[128];
	FILE *file;

	launch(u, 1, "one");
	upload_unref(u);
	upload_unref(made(f->all, "same.yaml", "one"));
	remount(f, "x.yaml", "x.yaml");
	assert_launched(f, "x.yaml", true);
	assert_launched(f, "same.yaml", false); /* another file with the same bytes */
	/* Nobody has asked before this mount ends: it is known all the same. */
	remount(f, "x.yaml", "x.yaml");
	remount(f, "x.yaml", "x.yaml");
	assert_launched(f, "x.yaml", true);
	/* Renamed, and killed before the record of the new name was written. */
	u = upload_find(f->all, "x.yaml");
	assert_int_equal(upload_rename(u, "scratch"), 0);
	upload_unref(u);
	remount(f, "x.yaml", "scratch");
	assert_launched(f, "scratch", true);
	/* Written, and killed: the digest is not that of the bytes. */
	snprintf(path, sizeof(path), "%s/scratch", f->dir);
	file = fopen(path, "ae");
	assert_non_null(file);
	fputs("more", file);
	fclose(file);
	remount(f, "scratch", "scratch");
	assert_launched(f, "scratch", false);
}

static void test_recover(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f->all, "x.yaml", "one"), *other = made(f->all, "y.yaml", "two");
	struct upload *unknown = made(f->all, "z.yaml", "three");

	upload_recover(u, "one", 3);
	assert_true(upload_is_launched(u));
	upload_recover(other, "one", 3);
	assert_false(upload_is_launched(other));
	upload_recover(unknown, NULL, 0);
	assert_true(upload_is_launched(unknown));
	rewrite(unknown, "four");
	assert_false(upload_is_launched(unknown));
	upload_unref(u);
	upload_unref(other);
	upload_unref(unknown);
}

static void test_replace(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f->all, "x.yaml", "a document");
	uint64_t content = upload_launching(u, NULL, 1);
	char *text;
	size_t len;

	assert_int_equal(upload_open(u), 0);
	assert_int_equal(upload_replace(u, content, "made\n"), 0);
	assert_true(upload_is_launched(u));
	assert_int_equal(upload_bytes(u, &text, &len), 0);
	assert_string_equal(text, "made\n");
	assert_int_equal(len, 5);
	free(text);
	/* There is other content by now. */
	assert_int_equal(upload_replace(u, content, "older\n"), 0);
	assert_int_equal(upload_size(u), 5);
	upload_close(u);
	upload_unref(u);
	remount(f, "x.yaml", "x.yaml");
	assert_launched(f, "x.yaml", true);
}

static void test_expire(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f->all, "x.yaml", "one");

	assert_int_equal(upload_expire(u), -EBUSY); /* not launched */
	launch(u, 1, "one");
	assert_int_equal(upload_open(u), 0);
	assert_int_equal(upload_expire(u), -EBUSY); /* open */
	upload_close(u);
	assert_int_equal(upload_expire(u), 0);
	assert_null(upload_find(f->all, "x.yaml"));
	upload_unref(u);
	remount(f, "x.yaml", "x.yaml");
	assert_null(upload_find(f->all, "x.yaml"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_launched, setup, teardown),
		cmocka_unit_test_setup_teardown(test_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_over_a_mount, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recover, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_expire, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
