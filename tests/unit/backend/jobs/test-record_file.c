/* SPDX-License-Identifier: MIT */
/* The files of records, on a real disk. */
#include <errno.h>

#include "tests/unit/backend/jobs/record_rig.h"

#define FILE_A "jobs/" KEY_A

static void make(enum record_state state, const char *hold)
{
	struct spec_head *h cleanup(spec_head_freep) = head_of(KEY_A, state);
	bool left;

	h->more->parts[RECORD_HOLD] = hold ? text_copy(hold) : NULL;
	assert_int_equal(record_file_make(dir, h, &rest_of_test, &left), 0);
	assert_false(left);
}

static int read_a(struct spec_head **ret)
{
	*ret = NULL;
	return record_file_read(dir, KEY_A, ret);
}

static void expect_rest(bool manifest, const char *text)
{
	cleanup_free char *found = NULL;
	size_t len;

	assert_int_equal(record_file_read_rest(dir, KEY_A, manifest, &found, &len), 0);
	assert_string_equal(found, text);
}

/*
 * A rewrite keeps the document and all other parts that it does not replace. The manifest is
 * removed after the launch.
 */
static void test_write(void **state)
{
	struct spec_head *h cleanup(spec_head_freep) = NULL, *next cleanup(spec_head_freep) = NULL;

	make(RECORD_HELD, "{\"hold\":true}");
	expect_rest(false, "name: a\n");
	expect_rest(true, "manifest");
	assert_int_equal(read_a(&h), 0);
	spec_head_free(h);
	h = head_of(KEY_A, RECORD_SUBMITTING);
	h->held = true;
	h->more->parts[RECORD_SNAPSHOT] = text_copy("{}");
	assert_int_equal(record_file_write(dir, h), 0);
	expect_rest(true, "manifest");
	h->state = RECORD_LIVE;
	free(take_ptr(h->more->parts[RECORD_SNAPSHOT]));
	h->more->parts[RECORD_HOLD] = text_copy("");
	assert_int_equal(record_file_write(dir, h), 0);
	expect_rest(false, "name: a\n");
	expect_rest(true, "");
	assert_int_equal(read_a(&next), 0);
	assert_int_equal(next->state, RECORD_LIVE);
	assert_null(next->more->parts[RECORD_HOLD]);
	assert_string_equal(next->more->parts[RECORD_SNAPSHOT], "{}");
}

/* A rewrite keeps what memory has forgotten about a job that was launched. */
static void test_forgotten(void **state)
{
	struct spec_head *h cleanup(spec_head_freep) = head_of(KEY_A, RECORD_LIVE),
			    *next cleanup(spec_head_freep) = NULL;
	bool left;

	spec_set(&h->more->submitter, "ann@host");
	h->more->seed[1] = 7;
	assert_int_equal(record_file_make(dir, h, &rest_of_test, &left), 0);
	spec_head_forget(h);
	assert_null(h->more);
	next = spec_head_copy(h);
	next->dropped = true;
	assert_int_equal(record_file_write(dir, next), 0);
	spec_head_free(take_ptr(next));
	assert_int_equal(read_a(&next), 0);
	assert_true(next->dropped);
	assert_string_equal(next->more->submitter, "ann@host");
	assert_int_equal(next->more->seed[1], 7);
}

/* A head that is larger than the first read. */
static void test_large(void **state)
{
	struct spec_head *h cleanup(spec_head_freep) = NULL;
	cleanup_free char *spaces = text_print("{%*s}", 100000, "");

	make(RECORD_LIVE, spaces);
	assert_int_equal(read_a(&h), 0);
	assert_string_equal(h->more->parts[RECORD_HOLD], spaces);
	expect_rest(false, "name: a\n");
}

/* The mark letter and its time are changed in place. A rewrite of the record keeps them. */
static void test_mark(void **state)
{
	struct spec_head *h cleanup(spec_head_freep) = NULL;
	const int64_t time = INT64_C(1795252120000000000);

	make(RECORD_LIVE, NULL);
	assert_int_equal(record_file_mark(dir, KEY_A, time), 0);
	for (int i = 0; i < 2; i++) {
		spec_head_free(take_ptr(h));
		assert_int_equal(read_a(&h), 0);
		assert_int_equal(h->state, RECORD_HISTORY);
		assert_true(h->since == time);
		h->dropped = true;
		assert_int_equal(record_file_write(dir, h), 0);
	}
	assert_int_equal(record_file_mark(dir, KEY_B, time), -ENOENT);
}

/*
 * A job with a plan has disk space reserved for its end. The space is released with the last
 * change, or with the record.
 */
static void test_room(void **state)
{
	static const char room[] = "jobs/." KEY_A ".room";
	struct spec_head *h cleanup(spec_head_freep) = head_of(KEY_A, RECORD_SUBMITTING);
	bool left;

	h->more->parts[RECORD_PLAN] = text_copy("{}");
	assert_int_equal(record_file_make(dir, h, &rest_of_test, &left), 0);
	assert_true(exists(room));
	h->state = RECORD_LIVE;
	h->over = true;
	assert_int_equal(record_file_write(dir, h), 0);
	assert_false(exists(room));
	h->state = RECORD_SUBMITTING;
	h->over = false;
	assert_int_equal(record_file_make(dir, h, &rest_of_test, &left), 0);
	assert_int_equal(record_file_remove(dir, KEY_A, true), 0);
	assert_false(exists(room) || exists(FILE_A));
	assert_int_equal(record_file_remove(dir, KEY_A, true), 0);
	/* A job that was held gets its plan later. */
	make(RECORD_HELD, NULL);
	assert_false(exists(room));
	assert_int_equal(record_file_write(dir, h), 0);
	assert_true(exists(room));
}

/* Flip the byte at OFF, which counts from the file's end if negative. Then read the file. */
static int read_with_flip(long off)
{
	cleanup_free char *path = path_of(FILE_A);
	FILE *f = fopen(path, "r+");
	struct spec_head *h;
	int c, err;

	assert_non_null(f);
	assert_int_equal(fseek(f, off, off < 0 ? SEEK_END : SEEK_SET), 0);
	c = fgetc(f);
	assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
	fputc(c ^ 1, f);
	fclose(f);
	err = read_a(&h);
	spec_head_free(h);
	return err;
}

/* A flipped byte of the document is an error only when the document is about to be used. */
static void test_damage(void **state)
{
	cleanup_free char *text = NULL;
	struct spec_head *h;
	size_t len;

	make(RECORD_HELD, NULL);
	assert_int_equal(read_with_flip(100), -EINVAL);
	make(RECORD_HELD, NULL);
	assert_int_equal(read_with_flip(-1), -EINVAL);
	make(RECORD_LIVE, NULL);
	assert_int_equal(read_with_flip(-1), 0);
	assert_int_equal(record_file_read_rest(dir, KEY_A, false, &text, &len), -EINVAL);
	/* The end of a job is recorded. Rewriting the record does not hide the damage. */
	h = head_of(KEY_A, RECORD_LIVE);
	h->over = true;
	assert_int_equal(record_file_write(dir, h), 0);
	spec_head_free(h);
	assert_int_equal(read_a(&h), 0);
	assert_true(h->over);
	spec_head_free(h);
	assert_int_equal(record_file_read_rest(dir, KEY_A, false, &text, &len), -EINVAL);
	h = head_of(KEY_A, RECORD_NEVER);
	assert_int_equal(record_file_write(dir, h), -EINVAL);
	spec_head_free(h);
	write_text(FILE_A, "");
	assert_int_equal(read_a(&h), -EINVAL);
	write_text(
		FILE_A,
		"kxfs job 2 j and so on, longer than a line that this version of kxfs has written");
	assert_int_equal(read_a(&h), -ENOTSUP);
}

/*
 * A copy of a record does not count as another job. A file that grew or shrank does not count as a
 * record.
 */
static void test_other_files(void **state)
{
	cleanup_free char *text = NULL, *longer = NULL;
	struct spec_head *h;

	make(RECORD_LIVE, NULL);
	text = read_text(FILE_A);
	write_text("jobs/" KEY_B, text);
	assert_int_equal(record_file_read(dir, KEY_B, &h), -EINVAL);
	longer = text_print("%sx", text);
	write_text(FILE_A, longer);
	assert_int_equal(read_a(&h), -EINVAL);
	text[strlen(text) - 1] = '\0';
	write_text(FILE_A, text);
	assert_int_equal(read_a(&h), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mark, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_files, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
