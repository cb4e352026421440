/* SPDX-License-Identifier: MIT */
/*
 * fs/submit/names.h: the newest launch of a name counts; the text of an error; the limit on names.
 * tests/mount/test_submit_slow.py has writers that lose their file.
 */
#include <errno.h>

#include "fs/submit/names.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

struct fixture {
	struct lock lock;
	struct uploads *files;
	struct names *names;
};

static const struct file_owner us = {1000, 1000};

static int setup(void **state)
{
	struct fixture *f = new0(struct fixture);

	f->lock = (struct lock)LOCK_INIT;
	f->files = uploads_new(-1, us, &f->lock);
	f->names = names_new(&f->lock);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	names_free(f->names);
	uploads_free(f->files);
	free(f);
	return 0;
}

static void assert_error(const struct fixture *f, const char *name, const char *text)
{
	struct name_error e = {0};

	assert_int_equal(names_error(f->names, name, &e), text ? 0 : -ENOENT);
	assert_true(streq(e.text, text));
	free(e.text);
}

static void refuse(struct fixture *f, const char *name, const char *text)
{
	names_explain(f->names, name, text, us);
}

static void test_newest_launch_decides(void **state)
{
	struct fixture *f = *state;
	struct names *all = f->names;
	uint64_t first = names_begin(all, "x.yaml"), second = names_begin(all, "x.yaml"), third;

	assert_true(second > first);
	/* The reply to the second launch arrives first. */
	names_end(all, "x.yaml", second, "bad", us);
	names_end(all, "x.yaml", first, NULL, us);
	assert_error(f, "x.yaml", "bad\n");
	third = names_begin(all, "x.yaml");
	names_end(all, "x.yaml", names_begin(all, "x.yaml"), NULL, us);
	assert_error(f, "x.yaml", NULL);
	names_end(all, "x.yaml", third, "bad", us);
	assert_error(f, "x.yaml", NULL);
	refuse(f, "x.yaml", "worse");
	names_begin(all, "x.yaml");
	names_end(all, "x.yaml", 0, NULL, us);
	assert_error(f, "x.yaml", "worse\n");
	assert_int_equal(names_remove_error(all, "x.yaml"), 0);
	assert_int_equal(names_remove_error(all, "x.yaml"), -ENOENT);
}

static void test_error_text(void **state)
{
	struct fixture *f = *state;
	char *longest = new0_n(char, 2 * NAMES_MAX_ERROR);
	struct name_error e;

	refuse(f, "x.yaml", "line\n\x1b[31mred");
	assert_error(f, "x.yaml", "line\n\\x1b[31mred\n");
	memset(longest, 'a', 2 * NAMES_MAX_ERROR - 1);
	refuse(f, "x.yaml", longest);
	assert_int_equal(names_error(f->names, "x.yaml", &e), 0);
	assert_int_equal(strlen(e.text), NAMES_MAX_ERROR);
	assert_string_equal(e.text + NAMES_MAX_ERROR - 5, "a...\n");
	free(e.text);
	/* A cut is never within a character. */
	memcpy(longest + NAMES_MAX_ERROR - 6, "\xe2\x82\xac", 3);
	refuse(f, "x.yaml", longest);
	assert_int_equal(names_error(f->names, "x.yaml", &e), 0);
	assert_string_equal(e.text + NAMES_MAX_ERROR - 7, "a...\n");
	free(e.text);
	free(longest);
}

/* Create the file NAME, which is empty and not open. The result is borrowed. */
static struct upload *made(struct fixture *f, const char *name)
{
	struct upload *u;

	assert_int_equal(names_make(f->names, f->files, name, 0644, us, &u), 0);
	upload_unref(u);
	return u;
}

static void test_move(void **state)
{
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml"), *y = upload_ref(made(f, "y.yaml")), *again;
	char name[NAME_MAX + 1];
	struct name_loss loss;

	refuse(f, "y.yaml", "bad");
	names_move(f->names, u, "y.yaml", 0, &loss);
	assert_int_equal(loss.writer, 0);
	assert_true(names_of(f->names, u, name));
	assert_string_equal(name, "y.yaml");
	/* The replaced file remains for the processes that have it open. */
	assert_false(names_of(f->names, y, name));
	upload_unref(y);
	/* A result belongs to a name, not to a file. */
	names_move(f->names, u, "scratch", 0, &loss);
	assert_error(f, "y.yaml", "bad\n");
	/* A new file with the first name is another node. */
	again = made(f, "x.yaml");
	assert_int_not_equal(upload_id(again), upload_id(u));
	assert_int_equal(names_make(f->names, f->files, "x.yaml", 0644, us, &again), -EEXIST);
	names_move(f->names, u, NULL, 0, &loss);
	assert_int_equal(loss.writer, 0);
	assert_null(names_file(f->names, "scratch"));
}

/*
 * Another process renames a file while it is written. A rename to a submitting name leaves it to its
 * writer. Any other rename takes it away, and reports the writer that has changed it.
 */
static void test_renamed_while_it_is_written(void **state)
{
	const pid_t writer = 1, idle = 2, other = 3;
	struct fixture *f = *state;
	struct upload *u = made(f, "x.yaml");
	struct upload_writer w = {0}, i = {0};
	struct name_loss loss;

	assert_int_equal(upload_open(u, false), 0);
	upload_add_writer(u, &w, writer, 0, false);
	upload_add_writer(u, &i, idle, 0, false);
	assert_int_equal(upload_write(u, &w, "three", 5, 0), 0);
	names_move(f->names, u, "y.yaml", other, &loss);
	assert_int_equal(loss.writer, 0);
	assert_false(upload_look(u, &w).is_lost);
	names_move(f->names, u, "y.yaml~", other, &loss);
	assert_int_equal(loss.writer, writer);
	assert_string_equal(loss.name, "y.yaml");
	assert_true(upload_look(u, &w).is_lost);
	names_end(f->names, loss.name, loss.number, "lost", us);
	assert_error(f, "y.yaml", "lost\n");
	upload_remove_writer(u, &w);
	upload_remove_writer(u, &i);
	upload_close(u);
}

static void test_bound(void **state)
{
	struct fixture *f = *state;
	struct upload *u;
	char name[32];

	for (int i = 0; i < NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "%d.yaml", i);
		if (i % 2)
			refuse(f, name, "bad"); /* errors without a file count too */
		else
			made(f, name);
	}
	assert_int_equal(names_make(f->names, f->files, "x.yaml", 0644, us, &u), -ENOSPC);
	assert_int_equal(names_remove_error(f->names, "1.yaml"), 0);
	made(f, "x.yaml");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_newest_launch_decides, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_move, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renamed_while_it_is_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
